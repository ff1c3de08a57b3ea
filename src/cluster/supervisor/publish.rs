//! What the supervisor publishes after each step: the watches, the capabilities, and whom a change concerns.

use std::sync::Arc;

use interlock_core::api::object::Gvk;
use tokio::time::Instant;

use super::capability_state::TrackedCapability;
use super::driver::Supervisor;
use super::handle::{Watches, Watching};
use super::kind::WatchedKind;
use super::optional;
use super::state::{
    CapabilityPhase, CapabilitySnapshot, CapabilityStatus, KindStatus, UnavailableAnswer, WatchState,
};
use super::watch_request::KindRequester;
use super::watch_task::gvk;

impl Supervisor {
    /// Publishes the states as they are now, and reports what changed.
    pub(super) fn publish(&mut self, now: Instant) {
        let required_kinds = self.watches_now(now);
        let before = self.watches.borrow().clone();
        let changed_kinds =
            self.published_versions().filter(|(_, _, gvk)| required_kinds.get(gvk) != before.get(gvk));
        let changed: Vec<(Gvk, Vec<KindRequester>)> = changed_kinds
            .map(|(watched, version, gvk)| (gvk, watched.requesters(&version).cloned().collect()))
            .collect();
        self.watches.send_if_modified(|old| replace(old, Arc::new(required_kinds)));
        let snapshot = Arc::new(self.snapshot_now(now));
        for CapabilityStatus { name, state, .. } in &snapshot.capabilities {
            self.setup.metrics.capability(
                name,
                &CapabilityPhase::NAMES,
                state.name(),
                state.epoch().map(|e| e.0),
            );
        }
        for optional::OptionalKind { capability, kind, watch_state } in self.optional.step(&snapshot) {
            self.setup.listener.kind_changed(capability, &kind, &watch_state);
        }
        self.snapshot.send_if_modified(|old| replace(old, snapshot));
        for (kind, requesters) in changed {
            if let Some(Watching { watch_state, .. }) = self.watches.borrow().get(&kind) {
                let name = watch_state.name();
                tracing::info!(%kind, to = name, why = %watch_state, "watch state changed");
            }
            self.setup.listener.changed(&kind, requesters);
        }
        for tracked in &self.capabilities {
            tracked.work.send_if_modified(|old| replace(old, tracked.assignment));
        }
    }

    /// Watched kinds that lookups may name, each at every such version.
    fn published_versions(&self) -> impl Iterator<Item = (&WatchedKind, String, Gvk)> {
        // Requesters on demand need all objects of a kind, or those that packages made.
        self.kinds.iter().filter(|(requested, _)| requested.labelled.is_none()).flat_map(
            |(requested, kind)| {
                let versions = kind.watched.published_versions().into_iter();
                versions.map(move |version| {
                    let gvk = gvk(requested, &version);
                    (&kind.watched, version, gvk)
                })
            },
        )
    }

    fn watches_now(&self, now: Instant) -> Watches {
        let each = |(watched, version, gvk): (&WatchedKind, String, Gvk)| {
            let watching = Watching {
                watch_state: watched.state_at(&version, now),
                whole: watched.is_whole(&version),
                terminating: watched.is_terminating(),
            };
            (gvk, watching)
        };
        self.published_versions().map(each).collect()
    }

    fn snapshot_now(&self, now: Instant) -> CapabilitySnapshot {
        let status = |tracked: &TrackedCapability| {
            let state = tracked.machine.state().clone();
            let requester = KindRequester::Capability(tracked.declared.name);
            let kinds = tracked.requested.iter().map(|(requested, kind, required)| {
                let watched = self.kinds.get(requested).map(|kind| &kind.watched);
                KindStatus {
                    name: kind.name(),
                    required: *required,
                    terminating: watched.is_some_and(WatchedKind::is_terminating),
                    watch_state: watched.map_or(WatchState::Listing, |w| w.state_for(&requester, now)),
                }
            });
            CapabilityStatus {
                name: tracked.declared.name,
                answer: UnavailableAnswer::of(tracked.declared.name, &state, now - tracked.since),
                state,
                mode: tracked.mode,
                since: tracked.since_wall,
                kinds: kinds.collect(),
            }
        };
        CapabilitySnapshot { capabilities: self.capabilities.iter().map(status).collect() }
    }
}

fn replace<T: PartialEq>(old: &mut T, new: T) -> bool {
    let changed = *old != new;
    *old = new;
    changed
}
