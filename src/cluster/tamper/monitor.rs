//! Monitors the guard objects and reports when one is not intact: by a gauge and the log in every process,
//! by an Event of the leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use interlock_core::api::meta::event;
use interlock_core::effect::{Note, Severity};
use kube::Client;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::notify::{Notification, TamperAlarm};
use super::object::{GuardId, GuardKind, Observation};
use super::state::{GuardState, GuardStates};
use super::watch::{WatchResult, follow};
use crate::cluster::events::EventPublisher;
use crate::cluster::lease::Leadership;
use crate::telemetry::metrics::Metrics;

/// The monitor.
pub struct TamperMonitor {
    /// A client that may read the guard objects.
    pub client: Client,
    /// Observations of the watch of the webhook configurations.
    pub webhooks: mpsc::UnboundedReceiver<Observation>,
    /// The notifier.
    pub notifier: TamperNotifier,
}

impl TamperMonitor {
    /// Watches the installed objects, for ever; calls `on_change` with each change.
    pub async fn run(self, installed: Vec<Value>, mut on_change: impl FnMut(&GuardStates)) {
        let Self { client, mut webhooks, mut notifier } = self;
        let mut leadership = notifier.leadership.clone();
        let mut states = GuardStates::of(installed);
        let mut policies = follow(&client, GuardKind::Policy, states.names(GuardKind::Policy));
        let mut bindings = follow(&client, GuardKind::Binding, states.names(GuardKind::Binding));
        let mut troubles = Troubles::default();
        loop {
            let again = notifier.notify(&states).await;
            let timer = tokio::time::sleep(again.unwrap_or(Duration::MAX));
            let seen = tokio::select! {
                Some(told) = policies.next() => troubles.take(GuardKind::Policy, told),
                Some(told) = bindings.next() => troubles.take(GuardKind::Binding, told),
                Some(seen) = webhooks.recv() => vec![seen],
                Ok(()) = leadership.changed() => Vec::new(),
                () = timer => Vec::new(),
            };
            let mut changed = false;
            seen.into_iter().for_each(|seen| changed |= states.observe(seen));
            if changed {
                on_change(&states);
            }
        }
    }
}

/// Kinds whose watch fails; each is logged once, until it recovers.
#[derive(Default)]
struct Troubles(Vec<GuardKind>);

impl Troubles {
    fn take(&mut self, kind: GuardKind, told: WatchResult) -> Vec<Observation> {
        match told {
            Ok(seen) => {
                // A list that begins has no objects yet, and does not prove that the kind can be read.
                if !seen.is_empty() {
                    self.0.retain(|other| *other != kind);
                }
                seen
            }
            Err(error) => {
                if self.0.contains(&kind) {
                    tracing::debug!(kind = kind.as_str(), %error, "what guards still cannot be watched");
                } else {
                    let remedy = "where a right is missing, `interlock render rbac` has it";
                    tracing::warn!(kind = kind.as_str(), %error, remedy, "what guards cannot be watched; trying again");
                    self.0.push(kind);
                }
                Vec::new()
            }
        }
    }
}

/// The notifier: gauge, log and Events.
pub struct TamperNotifier {
    metrics: Arc<Metrics>,
    events: EventPublisher,
    leadership: watch::Receiver<Leadership>,
    began: Instant,
    told: BTreeMap<GuardId, One>,
}

#[derive(Default)]
struct One {
    alarm: TamperAlarm,
    /// Whether an Event of this process reported it as broken.
    published: bool,
}

impl TamperNotifier {
    /// A notifier that has reported nothing.
    pub fn new(
        metrics: Arc<Metrics>,
        events: EventPublisher,
        leadership: watch::Receiver<Leadership>,
    ) -> Self {
        Self { metrics, events, leadership, began: Instant::now(), told: BTreeMap::new() }
    }

    /// Reports changes; returns when to check again, if nothing happens before.
    async fn notify(&mut self, states: &GuardStates) -> Option<Duration> {
        let now = self.began.elapsed();
        let leads = self.leadership.borrow().holds();
        let mut again: Option<Duration> = None;
        for (id, guard) in states.each() {
            let one = self.told.entry(id.clone()).or_default();
            let was_broken = one.is_broken();
            match one.alarm.look(guard, now) {
                Notification::Still => {}
                Notification::Wait(due) => again = Some(again.map_or(due, |again| again.min(due))),
                Notification::Tell(guard) => {
                    self.metrics.guard(id.kind.as_str(), &id.name, guard.holds());
                    log(id, guard, was_broken);
                }
            }
            if let Some(note) = one.note(id, leads) {
                let uid = states.found(id).flatten().and_then(|found| found["metadata"]["uid"].as_str());
                self.events.publish_on_guard(id.kind.as_str(), &id.name, uid, note).await;
            }
        }
        again.map(|due| due.saturating_sub(now))
    }
}

impl One {
    fn is_broken(&self) -> bool {
        matches!(self.alarm.told(), Some(GuardState::Broken(_)))
    }

    /// The Event that is due, once; only a leader publishes one.
    fn note(&mut self, id: &GuardId, leads: bool) -> Option<Note> {
        let (severity, reason, message) = match (self.alarm.told()?, leads) {
            (GuardState::Broken(why), true) if !self.published => {
                (Severity::Warning, event::GUARD_NOT_INTACT, why.clone())
            }
            (GuardState::Intact, true) if self.published => {
                (Severity::Normal, event::GUARD_INTACT, format!("{id} is as it was installed again"))
            }
            _ => return None,
        };
        self.published = severity == Severity::Warning;
        Some(Note { severity, reason: reason.to_owned(), message })
    }
}

fn log(id: &GuardId, guard: &GuardState, was_broken: bool) {
    match guard {
        GuardState::Broken(why) => {
            tracing::warn!(object = %id, why, "what guards is not as it was installed")
        }
        GuardState::Intact if was_broken => log_mended(id),
        GuardState::Intact | GuardState::Unknown => {}
    }
}

fn log_mended(id: &GuardId) {
    tracing::info!(object = %id, "what guards is as it was installed again");
}
