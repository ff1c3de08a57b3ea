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

pub struct TamperMonitor {
    /// A client that may read the guard objects.
    pub client: Client,
    /// Observations of the watch of the webhook configurations.
    pub webhooks: mpsc::UnboundedReceiver<Observation>,
    pub notifier: TamperNotifier,
}

impl TamperMonitor {
    /// Watches the installed objects, and those that an installation may go without, forever; calls `on_change` with each
    /// change.
    pub async fn run(
        self,
        installed: Vec<Value>,
        optional: Vec<Value>,
        mut on_change: impl FnMut(&GuardStates),
    ) {
        let Self { client, mut webhooks, mut notifier } = self;
        let mut leadership = notifier.leadership.clone();
        let mut states = GuardStates::with_optional(installed, optional);
        let mut policies = follow(&client, GuardKind::Policy, states.names(GuardKind::Policy));
        let mut bindings = follow(&client, GuardKind::Binding, states.names(GuardKind::Binding));
        let mut failing = FailingWatches::default();
        loop {
            let again = notifier.notify(&states).await;
            let timer = tokio::time::sleep(again.unwrap_or(Duration::MAX));
            let seen = tokio::select! {
                Some(result) = policies.next() => failing.observe(GuardKind::Policy, result),
                Some(result) = bindings.next() => failing.observe(GuardKind::Binding, result),
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
struct FailingWatches(Vec<GuardKind>);

impl FailingWatches {
    fn observe(&mut self, kind: GuardKind, result: WatchResult) -> Vec<Observation> {
        match result {
            Ok(seen) => {
                // A list that begins has no objects yet, and does not prove that the kind can be read.
                if !seen.is_empty() {
                    self.0.retain(|other| *other != kind);
                }
                seen
            }
            Err(error) => {
                if self.0.contains(&kind) {
                    tracing::debug!(kind = kind.as_str(), %error, "guard objects still cannot be watched");
                } else {
                    let remedy = "if a right is missing, apply `interlock render rbac`";
                    tracing::warn!(kind = kind.as_str(), %error, remedy, "guard objects cannot be watched; retrying");
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
    alarms: BTreeMap<GuardId, GuardAlarm>,
}

#[derive(Default)]
struct GuardAlarm {
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
        Self { metrics, events, leadership, began: Instant::now(), alarms: BTreeMap::new() }
    }

    /// Reports changes; returns when to check again, if nothing happens before.
    async fn notify(&mut self, states: &GuardStates) -> Option<Duration> {
        let now = self.began.elapsed();
        let leads = self.leadership.borrow().holds();
        let mut again: Option<Duration> = None;
        for (id, guard) in states.each() {
            let guard_alarm = self.alarms.entry(id.clone()).or_default();
            let was_broken = guard_alarm.is_broken();
            match guard_alarm.alarm.check(guard, now) {
                Notification::Unchanged => {}
                Notification::Wait(due) => again = Some(again.map_or(due, |again| again.min(due))),
                Notification::Report(guard) => {
                    self.metrics.guard(id.kind.as_str(), &id.name, guard.holds());
                    log(id, guard, was_broken);
                }
            }
            if let Some(due_event) = guard_alarm.due_event(id, leads) {
                let uid = states.found(id).flatten().and_then(|found| found["metadata"]["uid"].as_str());
                self.events.publish_on_guard(id.kind.as_str(), &id.name, uid, due_event).await;
            }
        }
        again.map(|due| due.saturating_sub(now))
    }
}

impl GuardAlarm {
    fn is_broken(&self) -> bool {
        matches!(self.alarm.reported(), Some(GuardState::Broken(_)))
    }

    /// The Event that is due, once; only a leader publishes one.
    fn due_event(&mut self, id: &GuardId, leads: bool) -> Option<Note> {
        let (severity, reason, message) = match (self.alarm.reported()?, leads) {
            (GuardState::Broken(why), true) if !self.published => {
                (Severity::Warning, event::GUARD_NOT_INTACT, why.clone())
            }
            (GuardState::Intact, true) if self.published => {
                (Severity::Normal, event::GUARD_INTACT, format!("{id} is as installed again"))
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
            tracing::warn!(object = %id, why, "a guard object is not as installed")
        }
        GuardState::Intact if was_broken => log_restored(id),
        GuardState::Intact | GuardState::Unknown => {}
    }
}

fn log_restored(id: &GuardId) {
    tracing::info!(object = %id, "a guard object is as installed again");
}
