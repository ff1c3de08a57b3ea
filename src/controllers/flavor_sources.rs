//! Labels the ConfigMaps, and if configured the Secrets, that are sources of flavors of gateways, so that
//! the API server sends changes of only these to admission.
//!
//! Event -> referenced sources, labelled objects -> labels (leader). A flavor whose source was unreadable
//! at admission is checked again once its source is labelled and cached, or, where it is not to be labelled, read once: a
//! Warning Event reports one that admission would have denied. Missing data removes no label; Secrets are never listed, so one whose last
//! gateway was deleted while no process led keeps its label, and admission still gets and allows its
//! changes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_kong::data_plane::GatewayLister as _;
use interlock_kong::data_plane::flavor::guarded_sources;
use interlock_kong::data_plane::flavor::sources::{FlavorSource, GivenSources, SourceKind};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;

use super::capabilities::FLAVORS;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::crds::Absence;
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::path;
use crate::cluster::read::get;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, WatchState};
use crate::runtime::controller::WorkerLimits;
use crate::runtime::controller::{Action, Controller};
use crate::runtime::gate::LeaderEpoch;
use crate::runtime::index::Store;
use crate::runtime::queue::Queue;

/// Collects a burst of changes into one pass.
const BURST: Duration = Duration::from_millis(100);
/// Pause before another attempt to label a missing or unlabelled source: without the label no event
/// arrives.
const AGAIN: Duration = Duration::from_secs(30);
/// How long a running pass may take to end.
const DRAIN: Duration = Duration::from_secs(10);

/// The kinds of gateways and of labelled sources.
const READ: [&str; 3] = ["dataplanes.gateway-operator.konghq.com", "deployments.apps", "configmaps"];

/// Maintains the labels.
pub struct Labeller {
    /// Gateways and their sources.
    pub store: Arc<Store>,
    /// The watch states of the kinds.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    /// Reads sources that are not labelled.
    pub client: Client,
    /// Its only key.
    pub queue: Arc<Queue<AllSources>>,
    /// Writes.
    pub bookkeeping: Bookkeeping,
    /// Publishes Events.
    pub events: EventPublisher,
    /// Events about sources that could not be labelled.
    pub reports: FailureReports,
    /// Whether Secrets are labelled as well, which needs rights on all of them.
    pub secrets: bool,
    /// Secrets that this process has labelled in its leader epoch, which no watch reports.
    pub labelled_secrets: Mutex<BTreeSet<FlavorSource>>,
}

/// The one key of the controller: whether a label is due depends on all gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllSources;

impl fmt::Display for AllSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("all sources of router flavors")
    }
}

/// Why a source is not guarded.
const OF_CLUSTER: &str =
    "belongs to the cluster: changes of it are not guarded; keep the flavor in a ConfigMap of your own";
/// The same, where it may be.
const NOT_LISTED: &str = "is not guarded, as nobody who may update it has asked for that: it is read after a change of the \
     gateway, and changes of it are not looked at";

/// The same, where every author of a gateway could write the annotation.
const NO_POLICY: &str = "is not guarded, as policy interlock-guarded-flavor-sources is not in force; \
     install it again: `interlock render policies | kubectl apply --server-side -f -`";

/// Whether a source is not to be guarded.
enum Unguarded {
    No,
    /// Whether the policy is in force is not known yet.
    Unknown,
    Because(&'static str),
}

impl Controller for Labeller {
    type Key = AllSources;
    type Term = LeaderEpoch;

    fn name(&self) -> &'static str {
        "flavor-sources"
    }

    fn limits(&self) -> WorkerLimits {
        WorkerLimits::of(1, DRAIN)
    }

    fn keys(&self) -> Vec<(AllSources, Duration)> {
        vec![(AllSources, Duration::ZERO)]
    }

    fn begin(&self, _term: LeaderEpoch) {
        // What was seen long before is the former leader's.
        self.store.leave_unread(Timestamp::now());
    }

    async fn beside(&self, term: Option<LeaderEpoch>) {
        let (mut changes, mut snapshot) = (self.store.flavor_changes(), self.snapshot.clone());
        loop {
            if term.is_none() {
                // The leader publishes its own findings.
                drop(self.store.take_deferred_checks(&GivenSources::default()));
                self.store.leave_unread(Timestamp::now());
            }
            // Both senders live as long as the process.
            tokio::select! {
                _ = changes.changed() => {}
                _ = snapshot.changed() => {}
            }
            self.queue.add_after(AllSources, BURST);
        }
    }

    async fn reconcile(&self, _: &AllSources, _: LeaderEpoch) -> Action {
        self.publish_deferred(&GivenSources::default()).await;
        match self.sees_all() {
            true => match (self.label_all().await, self.read_unlabelled().await) {
                (Action::AwaitChange, after) => after,
                (again, _) => again,
            },
            false => Action::AwaitChange,
        }
    }

    fn end(&self) {
        self.labelled_secrets().clear();
    }
}

impl Labeller {
    fn labelled_secrets(&self) -> MutexGuard<'_, BTreeSet<FlavorSource>> {
        // Changes of the set do not panic half-way.
        self.labelled_secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes changes that admission would have denied, had it read their sources. Only the leader
    /// does; an earlier leader has published its own findings.
    async fn publish_deferred(&self, read: &GivenSources) {
        for deferred in self.store.take_deferred_checks(read) {
            let reason = meta::event::ROUTER_FLAVOR_OVERLOOKED.to_owned();
            let note = Note { severity: Severity::Warning, reason, message: deferred.message() };
            tracing::warn!(message = note.message, "a router flavor was overlooked");
            self.events.publish_on_gateway(&deferred.object, note).await;
        }
    }

    fn sees_all(&self) -> bool {
        let snapshot = self.snapshot.borrow();
        let Some(flavors) = snapshot.get(FLAVORS) else { return false };
        let seen = |watch_state: &WatchState| {
            matches!(watch_state, WatchState::Synced | WatchState::Absent(Absence::Missing))
        };
        let mut read = flavors.kinds.iter().filter(|kind| READ.contains(&kind.name.as_str()));
        matches!(flavors.state, CapabilityPhase::Running(_)) && read.all(|kind| seen(&kind.watch_state))
    }

    /// Judges changes whose flavor comes from what is not to be labelled by what that holds now.
    async fn read_unlabelled(&self) -> Action {
        let now = Timestamp::now();
        let (mut wanted, again) = self.store.unread_sources(now);
        wanted.retain(|source| self.can_read(source));
        let mut read = GivenSources::default();
        for source in wanted {
            match self.read(&source).await {
                Ok(object) => object.iter().for_each(|object| read.add(object, &source.name.namespace)),
                Err(failure) => {
                    tracing::debug!(%source, error = failure.message, "a source of router flavors was not read");
                    let what = format!("{source}, where its router flavor comes from, could not be read");
                    self.tell_failed(&source, &what, &failure).await;
                }
            }
        }
        self.publish_deferred(&read).await;
        // What does not exist yet is looked for again, a few times.
        let after = again.and_then(|again| Duration::try_from(again.duration_since(now)).ok());
        after.map_or(Action::AwaitChange, Action::Requeue)
    }

    async fn read(&self, source: &FlavorSource) -> Result<Option<Value>, ApiFailure> {
        let (namespace, (_, plural)) = (source.name.namespace.as_str(), source.kind());
        get(&self.client, &path::of("v1", Some(namespace), plural, &[&source.name.name])?).await
    }

    /// Whether there is a right to read it.
    fn can_read(&self, source: &FlavorSource) -> bool {
        self.secrets || source.kind != SourceKind::Secret
    }

    /// Adds and removes labels as far as they are due.
    async fn label_all(&self) -> Action {
        let known = self.labelled_secrets().clone();
        let (wanted, due, unused) = self.store.sources_due(&known);
        let mut after = Action::AwaitChange;
        for source in due.into_iter().filter(|source| self.can_read(source)) {
            match self.unguarded(&source) {
                Unguarded::No => {}
                // Its news is a change.
                Unguarded::Unknown => continue,
                Unguarded::Because(why) => {
                    self.tell_unguarded(&source, why).await;
                    continue;
                }
            }
            match self.set_label(&source, true).await {
                Some(true) if source.kind == SourceKind::Secret => {
                    self.labelled_secrets().insert(source);
                }
                Some(true) => {}
                Some(false) | None => after = Action::Requeue(AGAIN),
            }
        }
        let secrets = known.into_iter().filter(|source| !wanted.contains(source));
        for source in unused.into_iter().chain(secrets) {
            match self.set_label(&source, false).await {
                Some(_) => drop(self.labelled_secrets().remove(&source)),
                None => after = Action::Requeue(AGAIN),
            }
        }
        after
    }

    /// Whether the source exists; `None` where the request failed.
    async fn set_label(&self, source: &FlavorSource, wanted: bool) -> Option<bool> {
        let label = (meta::FLAVOR_SOURCE, meta::FLAVOR_SOURCE_OURS);
        match self.bookkeeping.mark(source.kind(), &source.name, label, wanted).await {
            Ok(there) => {
                self.dependents(source).iter().for_each(|(key, _)| self.reports.settle(key));
                tracing::debug!(%source, wanted, there, "a source of router flavors was looked at");
                Some(there)
            }
            Err(failure) => {
                tracing::warn!(%source, error = failure.message, "a source of router flavors was not labelled");
                let what = format!(
                    "{source}, where its router flavor comes from, could not be labelled, so that changes of it are not guarded"
                );
                self.tell_failed(source, &what, &failure).await;
                None
            }
        }
    }

    /// Whether it is not for us to guard a source: a gateway has to list it, which the API server lets only those write
    /// who may update it.
    fn unguarded(&self, source: &FlavorSource) -> Unguarded {
        if guarded_sources::is_of_cluster(source) {
            return Unguarded::Because(OF_CLUSTER);
        }
        let lists = |gateway: &Value| guarded_sources::is_listed(gateway, source);
        match self.store.are_sources_guarded() {
            None => Unguarded::Unknown,
            Some(true) if self.store.dependents(source).iter().any(|found| lists(&found.stored)) => {
                Unguarded::No
            }
            Some(true) => Unguarded::Because(NOT_LISTED),
            Some(false) => Unguarded::Because(NO_POLICY),
        }
    }

    async fn tell_unguarded(&self, source: &FlavorSource, why: &str) {
        for gateway in self.store.dependents(source) {
            let Some(key) = ObjectKey::of(&gateway.stored) else { continue };
            let uid = meta_str(&gateway.stored, "uid").unwrap_or_default().to_owned();
            let mut message = format!("{source}, where its router flavor comes from, {why}");
            if why == NOT_LISTED
                && let Some(list) = guarded_sources::with(&gateway.stored, source)
            {
                message.push_str(&format!(
                    "; let somebody who may update it list it on the gateway: `kubectl annotate {} {} -n {} --overwrite {}={list}`",
                    key.gvk.kind.to_lowercase(),
                    key.name,
                    source.name.namespace,
                    meta::GUARDED_SOURCES
                ));
            }
            self.reports.report(&key, &uid, meta::event::ROUTER_FLAVOR_OVERLOOKED, message).await;
        }
    }

    async fn tell_failed(&self, source: &FlavorSource, what: &str, failure: &ApiFailure) {
        for (key, uid) in self.dependents(source) {
            self.reports.failed(&key, &uid, what, failure).await;
        }
    }

    /// The gateways whose flavor comes from a source, with their uids.
    fn dependents(&self, source: &FlavorSource) -> Vec<(ObjectKey, String)> {
        let objects = self.store.dependents(source).into_iter().map(|dependent| dependent.stored);
        let uid = |object: &Value| meta_str(object, "uid").unwrap_or_default().to_owned();
        objects.filter_map(|object| Some((ObjectKey::of(&object)?, uid(&object)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::capabilities::CAPABILITIES;

    #[test]
    fn the_kinds_that_are_waited_for_are_declared() {
        let flavors = CAPABILITIES.iter().find(|capability| capability.declared.name == FLAVORS);
        let names: Vec<String> =
            flavors.into_iter().flat_map(|c| &c.optional).map(|kind| kind.name()).collect();
        assert!(READ.iter().all(|read| names.iter().any(|name| name == read)), "{names:?}");
    }
}
