//! Handles the supervisor's notifications: publishes Events when a capability starts or stops, or a kind of
//! it comes or goes, and wakes work that may continue.

use std::sync::Arc;

use interlock_core::api::object::Gvk;
use interlock_core::effect::{Note, Severity};

use crate::cluster::events::EventPublisher;
use crate::cluster::supervisor::{CapabilityTransition, KindRequester, Listener, WatchState};
use crate::runtime::index::Observer;

/// Listens to the supervisor.
pub struct CapabilityTurns {
    observer: Arc<Observer>,
    /// Where controllers run: one publisher for each process is enough.
    events: Option<EventPublisher>,
}

impl CapabilityTurns {
    /// Wakes what `observer` knows; publishes where there are `events`.
    pub fn new(observer: Arc<Observer>, events: Option<EventPublisher>) -> Self {
        Self { observer, events }
    }

    /// Publishes on a definition.
    fn publish(&self, kind: &str, severity: Severity, reason: &str, message: String) {
        let Some(events) = self.events.clone() else { return };
        let note = Note { severity, reason: reason.to_owned(), message };
        let kind = kind.to_owned();
        tokio::spawn(async move { events.publish_on_definition(&kind, note).await });
    }
}

impl Listener for CapabilityTurns {
    fn transitioned(&self, capability: &'static str, turn: CapabilityTransition, kind: &str, why: &str) {
        // A capability without definitions has none to attach an Event to.
        if kind.is_empty() {
            return;
        }
        let (severity, reason, verb) = match turn {
            CapabilityTransition::Started => (Severity::Normal, "CapabilityStarted", "runs"),
            CapabilityTransition::Stopped => (Severity::Warning, "CapabilityStopped", "has stopped"),
        };
        let message = format!("{capability} {verb}: CustomResourceDefinition {kind} {why}");
        self.publish(kind, severity, reason, message);
    }

    fn kind_changed(&self, capability: &'static str, kind: &str, watch_state: &WatchState) {
        let (severity, reason, verb) = match watch_state {
            WatchState::Synced => (Severity::Normal, "KindAvailable", "goes on with"),
            _ => (Severity::Warning, "KindUnavailable", "goes on without"),
        };
        self.publish(kind, severity, reason, format!("{capability} {verb} {kind}: it {watch_state}"));
    }

    fn changed(&self, kind: &Gvk, requesters: Vec<KindRequester>) {
        requesters.into_iter().for_each(|requester| self.observer.wake(kind, requester));
    }
}
