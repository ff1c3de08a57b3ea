//! Whether the pods behind one Service run with one router flavor: condition
//! `RouterFlavorConsistent` on DataPlanes, and a Warning Event where they do not.
//!
//! Event of a gateway -> queue -> its pods, as listed ([`list`]) and as probed ([`probe`]) ->
//! [`running::consistency`] -> condition, Event. Only the leader checks, while the capability `flavors`
//! runs ([`leader_gate`]); nothing else depends on the result. The topology selects gateways that an event
//! affects (a pod that starts, stops or turns ready changes its status); a gateway whose pods did not agree
//! yet is checked a few times more.

mod leader_gate;
mod list;
mod probe;
mod workers;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::condition::{self, Condition};
use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_core::kinds::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use interlock_core::kinds::data_plane::flavor::running;
use interlock_core::kinds::data_plane::flavor::running::Consistency;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;
use crate::runtime::index::Store;
use crate::runtime::queue::Queue;
use crate::telemetry::metrics::Metrics;

pub use self::leader_gate::Permit;

/// Concurrent checks of gateways.
const WORKERS: usize = 4;

/// Maximum number of checks of an unsettled gateway without a new event.
const TRIES: u32 = 8;
/// Pause before the first of these; doubled with each.
const PAUSE: Duration = Duration::from_secs(1);

/// State of an unsettled gateway.
#[derive(Debug, Default)]
struct Unsettled {
    tries: u32,
    warned: bool,
}

/// The context of the controller.
pub struct ConsistencyContext {
    client: Client,
    bookkeeping: Bookkeeping,
    events: EventPublisher,
    /// Gateways with new events; the watches fill it, while checks are permitted.
    queue: Arc<Queue<GatewayRef>>,
    store: Arc<Store>,
    permit: Permit,
    metrics: Arc<Metrics>,
    unsettled: Mutex<HashMap<GatewayRef, Unsettled>>,
}

impl ConsistencyContext {
    /// A context without any state.
    pub fn new(
        client: Client,
        store: Arc<Store>,
        queue: Arc<Queue<GatewayRef>>,
        permit: Permit,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (bookkeeping, events) = (Bookkeeping::new(client.clone()), EventPublisher::new(client.clone()));
        Self { client, bookkeeping, events, queue, store, permit, metrics, unsettled: Mutex::default() }
    }
}

/// Checks gateways until `stop`.
pub async fn run(context: Arc<ConsistencyContext>, stop: CancellationToken) {
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (context, stop) = (context.clone(), stop.clone());
        workers.spawn(async move {
            let look = |subject| {
                let context = context.clone();
                async move { context.look(&subject).await }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = workers::work(&context.queue, &context.metrics, context.permit.clone(), look) => {}
            }
        });
    }
    let forget = || context.unsettled().clear();
    tokio::select! {
        () = stop.cancelled() => {}
        // It returns only when the process ends.
        _ = workers::resume(&context.queue, context.permit.clone(), forget, || context.store.gateways()) => {}
    }
    while workers.join_next().await.is_some() {}
}

impl ConsistencyContext {
    async fn look(&self, subject: &GatewayRef) -> Result<(), ApiFailure> {
        let Some(seen) = list::at(&self.client, subject).await? else {
            self.unsettled().remove(subject);
            return Ok(());
        };
        let found = running::consistency(&seen.pods, &seen.services, seen.wanted);
        if subject.kind == GatewayKind::DataPlane {
            self.write(subject, &seen.object, &found).await?;
        }
        self.warn(subject, &seen.object, &found).await;
        self.look_again(subject, &found);
        Ok(())
    }

    fn unsettled(&self) -> MutexGuard<'_, HashMap<GatewayRef, Unsettled>> {
        // Changes of the map do not panic half-way.
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_again(&self, subject: &GatewayRef, found: &Consistency) {
        let mut unsettled = self.unsettled();
        if found.is_settled() {
            unsettled.remove(subject);
            return;
        }
        let state = unsettled.entry(subject.clone()).or_default();
        if state.tries < TRIES {
            self.queue.add_after(subject.clone(), PAUSE * (1 << state.tries));
            state.tries += 1;
        }
    }

    /// Publishes one Event each time that flavors become mixed; the condition keeps a new leader from
    /// repeating it.
    async fn warn(&self, subject: &GatewayRef, object: &Value, found: &Consistency) {
        let Some(message) = found.warning() else { return };
        let known = conditions(object).iter().any(|condition| {
            condition.type_ == meta::condition::ROUTER_FLAVOR_CONSISTENT && condition.reason == "Mixed"
        });
        let warned =
            std::mem::replace(&mut self.unsettled().entry(subject.clone()).or_default().warned, true);
        if warned || known {
            return;
        }
        warn!(gateway = %subject, message, "router flavors are mixed");
        let reason = meta::event::ROUTER_FLAVORS_MIXED.to_owned();
        self.events.publish_on_gateway(object, Note { severity: Severity::Warning, reason, message }).await;
    }

    /// Writes the condition if it differs, on exactly the version that was read.
    async fn write(
        &self,
        subject: &GatewayRef,
        object: &Value,
        found: &Consistency,
    ) -> Result<(), ApiFailure> {
        let before = conditions(object);
        let mut after = before.clone();
        let generation = object["metadata"]["generation"].as_i64();
        condition::set(&mut after, found.condition(), generation, &Time(Timestamp::now()));
        let version = meta_str(object, "resourceVersion").unwrap_or_default();
        if before == after {
            return Ok(());
        }
        let status = json!({"conditions": after});
        match self.bookkeeping.patch_data_plane_status(&subject.name, version, status).await {
            Err(ApiFailure { code: 404, .. }) => Ok(()),
            written => written,
        }
    }
}

fn conditions(object: &Value) -> Vec<Condition> {
    let listed = object["status"]["conditions"].as_array().into_iter().flatten();
    listed.filter_map(|condition| serde_json::from_value(condition.clone()).ok()).collect()
}
