//! Archives the specs of live pods of DataPlanes that are too large for the stamp.
//!
//! Event of a DataPlane -> its stamp refers to a spec -> a ControllerRevision that it owns (leader).
//! Until a change is staged, the DataPlane itself holds that spec.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use interlock_core::api::revision;
use interlock_core::api::revision::RevisionOwner;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::{ApiFailure, Effect, Note, Severity};
use interlock_core::reconcile::{Lookup, RefusedWrite};
use interlock_kong::api as kong;
use interlock_kong::data_plane::flavor::gateway::referenced_spec;
use interlock_kong::data_plane::live_spec;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::revisions;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::requests::Fence;
use crate::runtime::controller::WorkerLimits;
use crate::runtime::controller::{Action, Controller};
use crate::runtime::gate::LeaderEpoch;
use crate::runtime::queue::Queue;
use crate::runtime::reconciler::DescribedKind;

/// Pause before another attempt to archive a spec.
const AGAIN: Duration = Duration::from_secs(30);
/// Archived earlier specs of a DataPlane, as many as a Deployment keeps ReplicaSets.
const HISTORY: usize = 10;
/// How long a running write may take to end.
const DRAIN: Duration = Duration::from_secs(10);

pub struct Archive {
    /// DataPlanes and their stamps, and their refused writes: their reconciler says in a condition what is not archived.
    pub kind: Arc<DescribedKind>,
    /// DataPlanes whose live spec may not be archived yet.
    pub queue: Arc<Queue<NamespacedName>>,
    /// Writes.
    pub bookkeeping: Bookkeeping,
    /// Publishes Events.
    pub events: EventPublisher,
    /// Events about specs that could not be archived.
    pub reports: FailureReports,
    /// DataPlanes to reconcile.
    pub data_planes: Arc<Queue<NamespacedName>>,
    /// What this process has archived, or found archived, in its leader epoch.
    pub archived: Mutex<BTreeSet<ArchivedSpec>>,
}

fn key_of(name: &NamespacedName) -> ObjectKey {
    let gvk = Gvk::new(kong::API_VERSION, "DataPlane");
    ObjectKey { gvk, namespace: Some(name.namespace.clone()), name: name.name.clone() }
}

/// Uid of a DataPlane and hash of its live spec.
pub type ArchivedSpec = (String, SpecHash);

impl Controller for Archive {
    type Key = NamespacedName;
    type Term = LeaderEpoch;

    fn name(&self) -> &'static str {
        "live-specs"
    }

    fn limits(&self) -> WorkerLimits {
        WorkerLimits::of(1, DRAIN)
    }

    fn keys(&self) -> Vec<(NamespacedName, Duration)> {
        self.due().map(|name| (name, Duration::ZERO)).collect()
    }

    /// The next staged change replaces the only source, so it does not wait for a burst to end.
    async fn beside(&self, _: Option<LeaderEpoch>) {
        let mut changes = self.kind.store.flavor_changes();
        // The store lives as long as the process.
        while changes.changed().await.is_ok() {
            self.due().for_each(|name| self.queue.add(name));
        }
        std::future::pending().await
    }

    async fn reconcile(&self, data_plane: &NamespacedName, epoch: LeaderEpoch) -> Action {
        let fence = Fence { leadership: self.kind.leadership.clone(), epoch: Some(epoch) };
        match self.archive(data_plane, &self.bookkeeping.within(fence)).await {
            Ok(archived) => {
                self.reports.settle(&key_of(data_plane));
                self.archived().extend(archived);
                self.say(data_plane, None);
                Action::AwaitChange
            }
            Err(failure) => {
                tracing::warn!(dataplane = %data_plane, error = failure.message, "its live spec was not archived");
                let referenced =
                    self.kind.store.referenced_specs().into_iter().find(|(name, ..)| name == data_plane);
                let Some((_, uid, hash)) = referenced else { return Action::Requeue(AGAIN) };
                let what = "the spec that the live pods are made from, which is too large for the annotation, was not \
                            kept in a ControllerRevision";
                self.reports.failed(&key_of(data_plane), &uid, what, &failure).await;
                self.say(data_plane, Some((&uid, &hash, failure)));
                Action::Requeue(AGAIN)
            }
        }
    }

    fn end(&self) {
        self.archived().clear();
    }
}

impl Archive {
    fn archived(&self) -> MutexGuard<'_, BTreeSet<ArchivedSpec>> {
        // Changes of the set do not panic half-way.
        self.archived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the reconciler of DataPlanes say what was not archived.
    fn say(&self, data_plane: &NamespacedName, refused: Option<(&str, &SpecHash, ApiFailure)>) {
        let now = Timestamp::now();
        let refused = refused.map(|(uid, hash, failure)| {
            let name = revision::name(&data_plane.name, uid, hash, 0);
            let namespace = data_plane.namespace.clone();
            let object = json!({
                "apiVersion": revision::API_VERSION, "kind": revision::KIND,
                "metadata": {"namespace": namespace, "name": name},
            });
            let gvk = Gvk::new(revision::API_VERSION, revision::KIND);
            let key = ObjectKey { gvk, namespace: Some(namespace), name };
            (key, RefusedWrite { effect: Effect::Create { object }, failure, since: now, retry: now })
        });
        if self.kind.refused.elsewhere(data_plane, refused) {
            self.data_planes.add(data_plane.clone());
        }
    }

    /// DataPlanes whose stamp refers to a spec that is not known to be archived.
    fn due(&self) -> impl Iterator<Item = NamespacedName> {
        let referenced = self.kind.store.referenced_specs();
        let mut archived = self.archived();
        archived.retain(|(uid, hash)| referenced.iter().any(|(_, of, wanted)| of == uid && wanted == hash));
        let due =
            referenced.into_iter().filter(|(_, uid, hash)| !archived.contains(&(uid.clone(), hash.clone())));
        due.map(|(name, ..)| name).collect::<Vec<_>>().into_iter()
    }

    /// Archives the live spec of a DataPlane; returns its key, where the stamp refers to one.
    async fn archive(
        &self,
        name: &NamespacedName,
        bookkeeping: &Bookkeeping,
    ) -> Result<Option<ArchivedSpec>, ApiFailure> {
        let Lookup::Found(object) = self.kind.sources().look_up(&key_of(name)).await? else {
            return Ok(None);
        };
        let Some(hash) = referenced_spec(&object) else { return Ok(None) };
        let uid = meta_str(&object, "uid").unwrap_or_default();
        let owner = RevisionOwner {
            api_version: kong::API_VERSION,
            kind: "DataPlane",
            key: name,
            uid,
            revision: object["metadata"]["generation"].as_i64().unwrap_or_default(),
        };
        let spec = live_spec::after(None, &object["spec"]).to_string();
        if SpecHash::of(&spec) == hash {
            revisions::write(bookkeeping, &owner, &hash, &spec).await?;
            revisions::prune(bookkeeping, &owner, |short| short == hash.short(), HISTORY).await?;
            tracing::debug!(dataplane = %name, %hash, "its live spec is archived");
        } else if revisions::read(bookkeeping, &owner, &hash).await?.is_none() {
            self.publish_lost(&object, &owner, &hash).await;
        }
        Ok(Some((uid.to_owned(), hash)))
    }

    async fn publish_lost(&self, object: &Value, owner: &RevisionOwner<'_>, hash: &SpecHash) {
        let name = revision::name(&owner.key.name, owner.uid, hash, 0);
        let message = format!(
            "the spec that the live pods are made from was replaced before it was kept in ControllerRevision \
             {name}: promote what is staged (`interlock rollout promote {} -n {}`), or write the spec of the live pods back",
            owner.key.name, owner.key.namespace
        );
        tracing::warn!(dataplane = %owner.key, message);
        let reason = meta::event::LIVE_SPEC_LOST.to_owned();
        self.events.publish_on_gateway(object, Note { severity: Severity::Warning, reason, message }).await;
    }
}
