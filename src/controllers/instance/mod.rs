//! The Instance controller: runs the plans of Instances and repairs those that bypassed admission.
//!
//! Event -> queue -> [`view`] -> [`interlock_kudo::instance::change::next`] -> patches ([`patches`]) or a pass of the
//! engine ([`pass`]).

pub mod api_calls;
mod cluster_objects;
pub mod context;
pub mod enforcement;
mod engine;
pub mod execute;
mod gate;
pub mod inventory;
pub mod inventory_cache;
mod no_room;
pub mod no_room_cache;
pub mod package_health;
pub mod pass;
pub mod patches;
pub mod plan_intent;
pub mod plan_request;
pub mod pod_failures;
pub mod reconcile;
pub mod record;
pub mod references;
pub mod refusal;
pub mod request_guard;
mod spec_archive;
pub mod status_cache;
pub mod status_patch;
#[cfg(test)]
mod tests;
pub mod unavailable;
pub mod view;

use std::time::Duration;

use interlock_core::api::object::NamespacedName;
use tracing::{Span, info_span};

use crate::cluster::supervisor::Work;
use crate::runtime::controller::WorkerLimits;
use crate::runtime::controller::{Action, Controller};
use crate::runtime::queue::FairnessGroup;
pub use context::InstanceContext;
pub use gate::{InstanceGate, InstanceTerm};

/// Reconciles at most this many Instances at once, besides slow ones.
pub const WORKERS: usize = 32;

/// Of these, at most this many of one OperatorVersion: the objects of its Instances may be behind a webhook
/// that hangs, and others must continue.
const SHARE: usize = 16;

/// Of these, at most this many of one namespace: its editors decide what its packages cost, and others must
/// continue.
const NAMESPACE_SHARE: usize = 24;

/// At most this many are slow at once, of which at most [`SLOW_SHARE`] of one namespace.
const SLOW_MOST: usize = 128;
const SLOW_SHARE: usize = 96;

/// How long running reconciles may take to end.
const DRAIN: Duration = Duration::from_secs(10);

impl Controller for InstanceContext {
    type Key = NamespacedName;
    type Term = InstanceTerm;

    fn name(&self) -> &'static str {
        "instance"
    }

    fn limits(&self) -> WorkerLimits {
        WorkerLimits { workers: WORKERS, slow: SLOW_MOST, slow_of_tenant: SLOW_SHARE, drain: DRAIN }
    }

    /// Instances of one OperatorVersion make objects of the same kinds, and wait for the same; those of one
    /// namespace wait for the same rendering threads.
    fn groups(&self, key: &NamespacedName) -> Vec<FairnessGroup> {
        let namespace = FairnessGroup { name: key.namespace.clone(), share: NAMESPACE_SHARE };
        let package =
            self.store.package_of(key).map(|name| FairnessGroup { name: name.to_string(), share: SHARE });
        [namespace].into_iter().chain(package).collect()
    }

    fn tenant<'k>(&self, key: &'k NamespacedName) -> &'k str {
        &key.namespace
    }

    fn span(&self, key: &NamespacedName) -> Span {
        info_span!("reconcile", controller = "instance", namespace = %key.namespace, name = %key.name)
    }

    fn begin(&self, _: InstanceTerm) {
        self.status_cache.clear();
        self.inventories.clear();
        self.store.set_reconciling(true);
    }

    fn keys(&self) -> Vec<(NamespacedName, Duration)> {
        self.store.to_reconcile().into_iter().map(|key| (key, Duration::ZERO)).collect()
    }

    async fn beside(&self, term: Option<InstanceTerm>) {
        let work = term.map_or(Work::None, |term| term.work);
        tokio::select! {
            () = enforcement::follow(self, work) => {}
            () = follow_references(self) => {}
            () = unavailable::follow(self) => {}
        }
    }

    async fn reconcile(&self, key: &NamespacedName, term: InstanceTerm) -> Action {
        let within = self.within(term.epoch);
        // The next leader reconciles every Instance.
        if !within.lead.holds() {
            return Action::AwaitChange;
        }
        let status_only = match self.assignment().work {
            Work::None | Work::Full => false,
            Work::StatusOnly => true,
            Work::Deletions => !self.is_deleted(key),
        };
        if status_only {
            let action = unavailable::say(&within, key).await;
            // The answer to its write may be the first that shows a deletion: its echo by the watch is no change.
            if self.assignment().work != Work::Deletions || !self.is_deleted(key) {
                return action;
            }
        }
        reconcile::reconcile(&within, key).await
    }

    fn end(&self) {
        self.store.set_reconciling(false);
    }
}

/// Enqueues all Instances that need reconciling whenever the policy changes that guards references into
/// other namespaces.
async fn follow_references(ctx: &InstanceContext) {
    let mut policy = ctx.references.policy();
    while policy.changed().await.is_ok() {
        ctx.store.to_reconcile().into_iter().for_each(|key| ctx.queue.add(key));
    }
    std::future::pending().await
}
