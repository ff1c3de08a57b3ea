//! Watches what guards, and tells people when it does not: a gauge and the log in every process,
//! an Event by the one that leads.

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

use super::alarm::{Alarm, Look};
use super::follow::{Told, follow};
use super::object::{Id, Kind, Seen};
use super::standing::{Guard, Standing};
use crate::cluster::events::Events;
use crate::cluster::lease::Leadership;
use crate::telemetry::metrics::Metrics;

/// Watches.
pub struct Warden {
    /// Who may read what guards.
    pub client: Client,
    /// What the watch of the webhook configurations sees.
    pub webhooks: mpsc::UnboundedReceiver<Seen>,
    /// Who tells.
    pub teller: Teller,
}

impl Warden {
    /// Watches what was installed so, for ever; `heard` is called with each change.
    pub async fn run(self, installed: Vec<Value>, mut heard: impl FnMut(&Standing)) {
        let Self { client, mut webhooks, mut teller } = self;
        let mut leadership = teller.leadership.clone();
        let mut standing = Standing::of(installed);
        let mut policies = follow(&client, Kind::Policy, standing.names(Kind::Policy));
        let mut bindings = follow(&client, Kind::Binding, standing.names(Kind::Binding));
        let mut troubles = Troubles::default();
        loop {
            let again = teller.tell(&standing).await;
            let timer = tokio::time::sleep(again.unwrap_or(Duration::MAX));
            let seen = tokio::select! {
                Some(told) = policies.next() => troubles.take(Kind::Policy, told),
                Some(told) = bindings.next() => troubles.take(Kind::Binding, told),
                Some(seen) = webhooks.recv() => vec![seen],
                Ok(()) = leadership.changed() => Vec::new(),
                () = timer => Vec::new(),
            };
            let mut changed = false;
            seen.into_iter().for_each(|seen| changed |= standing.see(seen));
            if changed {
                heard(&standing);
            }
        }
    }
}

/// Kinds that cannot be watched now; each is told once, until it can be.
#[derive(Default)]
struct Troubles(Vec<Kind>);

impl Troubles {
    fn take(&mut self, kind: Kind, told: Told) -> Vec<Seen> {
        match told {
            Ok(seen) => {
                // The beginning of a list names nothing, and is no sign that it can be read.
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

/// Tells people.
pub struct Teller {
    metrics: Arc<Metrics>,
    events: Events,
    leadership: watch::Receiver<Leadership>,
    began: Instant,
    told: BTreeMap<Id, One>,
}

#[derive(Default)]
struct One {
    alarm: Alarm,
    /// Whether an Event of this process says that it is broken.
    published: bool,
}

impl Teller {
    /// Nothing is told yet.
    pub fn new(metrics: Arc<Metrics>, events: Events, leadership: watch::Receiver<Leadership>) -> Self {
        Self { metrics, events, leadership, began: Instant::now(), told: BTreeMap::new() }
    }

    /// Tells what is new; answers when to look again, if nothing happens before.
    async fn tell(&mut self, standing: &Standing) -> Option<Duration> {
        let now = self.began.elapsed();
        let leads = self.leadership.borrow().holds();
        let mut again: Option<Duration> = None;
        for (id, guard) in standing.each() {
            let one = self.told.entry(id.clone()).or_default();
            let was_broken = one.is_broken();
            match one.alarm.look(guard, now) {
                Look::Still => {}
                Look::Wait(due) => again = Some(again.map_or(due, |again| again.min(due))),
                Look::Tell(guard) => {
                    self.metrics.guard(id.kind.as_str(), &id.name, guard.holds());
                    log(id, guard, was_broken);
                }
            }
            if let Some(note) = one.note(id, leads) {
                let uid = standing.found(id).flatten().and_then(|found| found["metadata"]["uid"].as_str());
                self.events.publish_on_guard(id.kind.as_str(), &id.name, uid, note).await;
            }
        }
        again.map(|due| due.saturating_sub(now))
    }
}

impl One {
    fn is_broken(&self) -> bool {
        matches!(self.alarm.told(), Some(Guard::Broken(_)))
    }

    /// The Event that is due, once; only a leader has one.
    fn note(&mut self, id: &Id, leads: bool) -> Option<Note> {
        let (severity, reason, message) = match (self.alarm.told()?, leads) {
            (Guard::Broken(why), true) if !self.published => {
                (Severity::Warning, event::GUARD_NOT_INTACT, why.clone())
            }
            (Guard::Intact, true) if self.published => {
                (Severity::Normal, event::GUARD_INTACT, format!("{id} is as it was installed again"))
            }
            _ => return None,
        };
        self.published = severity == Severity::Warning;
        Some(Note { severity, reason: reason.to_owned(), message })
    }
}

fn log(id: &Id, guard: &Guard, was_broken: bool) {
    match guard {
        Guard::Broken(why) => tracing::warn!(object = %id, why, "what guards is not as it was installed"),
        Guard::Intact if was_broken => log_mended(id),
        Guard::Intact | Guard::Unknown => {}
    }
}

fn log_mended(id: &Id) {
    tracing::info!(object = %id, "what guards is as it was installed again");
}
