//! Labels the ConfigMaps, and if configured the Secrets, that are sources of flavors of gateways, so that
//! the API server sends changes of only these to admission.
//!
//! Event -> referenced sources, labelled objects -> labels (leader). A flavor whose source was unreadable
//! at admission is checked again once its source is labelled and cached: a Warning Event reports one that
//! admission would have denied. Missing data removes no label; Secrets are never listed, so one whose last
//! gateway was deleted while no process led keeps its label, and admission still gets and allows its
//! changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::effect::{Note, Severity};
use interlock_core::kinds::data_plane::flavor::sources::{FlavorSource, SourceKind};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::capabilities::FLAVORS;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::crds::Absence;
use crate::cluster::events::EventPublisher;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, WatchState};
use crate::runtime::index::Store;

/// Collects a burst of changes into one pass.
const BURST: Duration = Duration::from_millis(100);
/// Pause before another attempt to label a missing or unlabelled source: without the label no event
/// arrives.
const AGAIN: Duration = Duration::from_secs(30);

/// The kinds of gateways and of labelled sources.
const READ: [&str; 3] = ["dataplanes.gateway-operator.konghq.com", "deployments.apps", "configmaps"];

/// Maintains the labels.
#[derive(Clone)]
pub struct Labeller {
    /// Gateways and their sources.
    pub store: Arc<Store>,
    /// The watch states of the kinds.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    /// Whether this process may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Writes.
    pub bookkeeping: Bookkeeping,
    /// Publishes Events.
    pub events: EventPublisher,
    /// Whether Secrets are labelled as well, which needs rights on all of them.
    pub secrets: bool,
}

/// Secrets that this process has labelled in its leader epoch, which no watch reports.
#[derive(Default)]
struct Term {
    secrets: BTreeSet<FlavorSource>,
}

impl Labeller {
    /// Labels sources, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.store.flavor_changes();
        let (mut snapshot, mut leadership) = (self.snapshot.clone(), self.leadership.clone());
        let mut term = Term::default();
        loop {
            let leads = self.leadership.borrow().holds();
            if !leads {
                term = Term::default();
            }
            self.judge_again(leads).await;
            let again = if leads && self.sees_all() { self.pass(&mut term).await } else { None };
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = changes.changed() => {}
                Ok(()) = snapshot.changed() => {}
                Ok(()) = leadership.changed() => {}
                () = tokio::time::sleep(again.unwrap_or(Duration::MAX)) => {}
            }
            tokio::time::sleep(BURST).await;
            changes.mark_unchanged();
        }
    }

    /// Only the leader publishes; an earlier leader has published its own findings.
    async fn judge_again(&self, leads: bool) {
        for overlooked in self.store.overlooked().into_iter().filter(|_| leads) {
            let reason = meta::event::ROUTER_FLAVOR_OVERLOOKED.to_owned();
            let note = Note { severity: Severity::Warning, reason, message: overlooked.message() };
            tracing::warn!(message = note.message, "a router flavor was overlooked");
            self.events.publish_on_gateway(&overlooked.object, note).await;
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

    /// One pass; returns when to run again without an event.
    async fn pass(&self, term: &mut Term) -> Option<Duration> {
        let (wanted, due, unused) = self.store.sources_due(&term.secrets);
        let mut again = None;
        let labelled = |source: &FlavorSource| self.secrets || source.kind != SourceKind::Secret;
        for source in due.into_iter().filter(labelled) {
            match self.mark(&source, true).await {
                Some(true) if source.kind == SourceKind::Secret => {
                    term.secrets.insert(source);
                }
                Some(true) => {}
                Some(false) | None => again = Some(AGAIN),
            }
        }
        let secrets = term.secrets.iter().filter(|source| !wanted.contains(source)).cloned();
        for source in unused.into_iter().chain(secrets.collect::<Vec<_>>()) {
            match self.mark(&source, false).await {
                Some(_) => drop(term.secrets.remove(&source)),
                None => again = Some(AGAIN),
            }
        }
        again
    }

    /// Whether the source exists; `None` where the request failed.
    async fn mark(&self, source: &FlavorSource, wanted: bool) -> Option<bool> {
        let kind = match source.kind {
            SourceKind::ConfigMap => ("ConfigMap", "configmaps"),
            SourceKind::Secret => ("Secret", "secrets"),
        };
        let label = (meta::FLAVOR_SOURCE, meta::FLAVOR_SOURCE_OURS);
        match self.bookkeeping.mark(kind, &source.name, label, wanted).await {
            Ok(there) => {
                tracing::debug!(%source, wanted, there, "a source of router flavors was looked at");
                Some(there)
            }
            Err(failure) => {
                tracing::warn!(%source, error = failure.message, "a source of router flavors was not labelled");
                None
            }
        }
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
