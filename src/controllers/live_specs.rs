//! Archives the specs of live pods of DataPlanes that are too large for the stamp.
//!
//! Event of a DataPlane -> its stamp refers to a spec -> a ControllerRevision that it owns (leader).
//! Until a change is staged, the DataPlane itself holds that spec.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::kong;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::revision::{self, RevisionOwner};
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_core::kinds::data_plane::flavor::gateway::referenced_spec;
use interlock_core::kinds::data_plane::live_spec;
use kube::Client;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::capabilities::FLAVORS;
use super::revisions;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot};
use crate::cluster::{path, read};
use crate::runtime::index::Store;

/// Pause before another attempt to archive a spec.
const AGAIN: Duration = Duration::from_secs(30);
/// Archived earlier specs of a DataPlane, as many as a Deployment keeps ReplicaSets.
const HISTORY: usize = 10;

/// The archive.
#[derive(Clone)]
pub struct Archive {
    /// DataPlanes and their stamps.
    pub store: Arc<Store>,
    /// The watch states of the kinds.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    /// Whether this process may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Reads.
    pub client: Client,
    /// Writes.
    pub bookkeeping: Bookkeeping,
    /// Publishes Events.
    pub events: EventPublisher,
}

/// Uid of a DataPlane and hash of its live spec.
type Kept = (String, SpecHash);

impl Archive {
    /// Archives referenced specs, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut changes = self.store.flavor_changes();
        let (mut snapshot, mut leadership) = (self.snapshot.clone(), self.leadership.clone());
        let mut kept = BTreeSet::new();
        loop {
            // The next staged change replaces the only source, so it does not wait for a burst to end.
            changes.mark_unchanged();
            let again = if self.may_write() { self.pass(&mut kept).await } else { None };
            if !self.leadership.borrow().holds() {
                kept.clear();
            }
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = changes.changed() => {}
                Ok(()) = snapshot.changed() => {}
                Ok(()) = leadership.changed() => {}
                () = tokio::time::sleep(again.unwrap_or(Duration::MAX)) => {}
            }
        }
    }

    fn may_write(&self) -> bool {
        let runs = |snapshot: &CapabilitySnapshot| {
            snapshot.get(FLAVORS).is_some_and(|flavors| matches!(flavors.state, CapabilityPhase::Running(_)))
        };
        self.leadership.borrow().holds() && runs(&self.snapshot.borrow())
    }

    /// One pass; returns when to run again without an event.
    async fn pass(&self, kept: &mut BTreeSet<Kept>) -> Option<Duration> {
        let referenced = self.store.referenced_specs();
        let known = |(uid, hash): &Kept| referenced.iter().any(|(_, of, wanted)| of == uid && wanted == hash);
        kept.retain(known);
        let mut again = None;
        for (name, uid, hash) in &referenced {
            if kept.contains(&(uid.clone(), hash.clone())) {
                continue;
            }
            match self.keep(name).await {
                Ok(Some(done)) => drop(kept.insert(done)),
                Ok(None) => {}
                Err(failure) => {
                    tracing::warn!(dataplane = %name, error = failure.message, "its live spec was not kept");
                    again = Some(AGAIN);
                }
            }
        }
        again
    }

    /// Archives the live spec of a DataPlane; returns its key, where the stamp refers to one.
    async fn keep(&self, name: &NamespacedName) -> Result<Option<Kept>, ApiFailure> {
        let path = path::of(kong::API_VERSION, Some(&name.namespace), "dataplanes", &[&name.name])?;
        let Some(object) = read::get(&self.client, &path).await? else { return Ok(None) };
        let Some(hash) = referenced_spec(&object) else { return Ok(None) };
        let uid = meta_str(&object, "uid").unwrap_or_default();
        let owner = RevisionOwner {
            api_version: kong::API_VERSION,
            kind: "DataPlane",
            key: name,
            uid,
            generation: object["metadata"]["generation"].as_i64().unwrap_or_default(),
        };
        let spec = live_spec::after(None, &object["spec"]).to_string();
        if SpecHash::of(&spec) == hash {
            revisions::write(&self.bookkeeping, &owner, &hash, &spec).await?;
            revisions::prune(&self.bookkeeping, &owner, |short| short == hash.short(), HISTORY).await?;
            tracing::debug!(dataplane = %name, %hash, "its live spec is kept");
        } else if revisions::read(&self.bookkeeping, &owner, &hash).await?.is_none() {
            self.lost(&object, &owner, &hash).await;
        }
        Ok(Some((uid.to_owned(), hash)))
    }

    async fn lost(&self, object: &Value, owner: &RevisionOwner<'_>, hash: &SpecHash) {
        let name = revision::name(&owner.key.name, owner.uid, hash, 0);
        let message = format!(
            "the spec that the live pods are made from was replaced before it was kept in ControllerRevision \
             {name}: promote what is staged, or write the spec of the live pods back"
        );
        tracing::warn!(dataplane = %owner.key, message);
        let reason = meta::event::LIVE_SPEC_LOST.to_owned();
        self.events.publish_on_gateway(object, Note { severity: Severity::Warning, reason, message }).await;
    }
}
