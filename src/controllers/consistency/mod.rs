//! Whether the pods behind one Service run with one router flavor: condition
//! `RouterFlavorConsistent` on DataPlanes, and a Warning Event where they do not.
//!
//! Event of a gateway -> queue -> its pods, as listed and as probed ([`list`]) ->
//! [`running::consistency`] -> condition, Event. Only the leader checks, while the capability `flavors`
//! runs; nothing else depends on the result. The topology selects gateways that an event
//! affects (a pod that starts, stops or turns ready changes its status); a gateway whose pods did not agree
//! yet is checked a few times more.

mod list;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::condition;
use interlock_core::api::condition::Condition;
use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_kong::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use interlock_kong::data_plane::flavor::running;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::lease::Leadership;
use crate::cluster::requests::Fence;
use crate::runtime::controller::WorkerLimits;
use crate::runtime::controller::{Action, Controller};
use crate::runtime::gate::LeaderEpoch;
use crate::runtime::index::Store;
use crate::runtime::index::gateways::GATEWAY_BURST;

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

/// The controller.
pub struct Consistency {
    client: Client,
    bookkeeping: Bookkeeping,
    leadership: watch::Receiver<Leadership>,
    events: EventPublisher,
    /// Events about checks that failed.
    reports: FailureReports,
    store: Arc<Store>,
    unsettled: Mutex<HashMap<GatewayRef, Unsettled>>,
}

impl Consistency {
    /// A controller without any state.
    pub fn new(client: Client, store: Arc<Store>, leadership: watch::Receiver<Leadership>) -> Self {
        let (bookkeeping, events) = (Bookkeeping::new(client.clone()), EventPublisher::new(client.clone()));
        let reports = FailureReports::new(events.clone());
        Self { client, bookkeeping, leadership, events, reports, store, unsettled: Mutex::default() }
    }
}

impl Controller for Consistency {
    type Key = GatewayRef;
    type Term = LeaderEpoch;

    fn name(&self) -> &'static str {
        "gateway"
    }

    /// A check is given up at once: nothing else depends on it.
    fn limits(&self) -> WorkerLimits {
        WorkerLimits::of(WORKERS, Duration::ZERO)
    }

    fn keys(&self) -> Vec<(GatewayRef, Duration)> {
        self.store.gateways().into_iter().map(|gateway| (gateway, GATEWAY_BURST)).collect()
    }

    async fn reconcile(&self, gateway: &GatewayRef, epoch: LeaderEpoch) -> Action {
        match self.check(gateway, epoch).await {
            Ok(action) => {
                self.reports.settle(&list::key_of(gateway));
                action
            }
            Err(failure) => {
                debug!(%gateway, error = failure.message, "the pods of a gateway were not checked");
                let what = "whether its pods run with one router flavor could not be found out";
                let key = list::key_of(gateway);
                let uid = list::kept_uid(&self.store, &key).unwrap_or_default();
                self.reports.failed(&key, &uid, what, &failure).await;
                Action::Retry
            }
        }
    }

    fn end(&self) {
        self.unsettled().clear();
    }
}

impl Consistency {
    async fn check(&self, subject: &GatewayRef, epoch: LeaderEpoch) -> Result<Action, ApiFailure> {
        let Some(seen) = list::at(&self.client, &self.store, subject).await? else {
            self.unsettled().remove(subject);
            return Ok(Action::AwaitChange);
        };
        let found = running::consistency(&seen.pods, &seen.services, seen.wanted);
        let is_known =
            conditions(&seen.object).iter().any(|it| it.type_ == meta::condition::ROUTER_FLAVOR_CONSISTENT);
        // Of a new one whose pods start, nothing is known that would not be written anew in a moment.
        let starts = !is_known && (seen.starting || seen.pods.is_empty()) && found.is_settled();
        if subject.kind == GatewayKind::DataPlane && !starts {
            let fence = Fence { leadership: self.leadership.clone(), epoch: Some(epoch) };
            self.write(&self.bookkeeping.within(fence), subject, &seen.object, &found).await?;
        }
        self.warn(subject, &seen.object, &found).await;
        Ok(self.after(subject, &found))
    }

    fn unsettled(&self) -> MutexGuard<'_, HashMap<GatewayRef, Unsettled>> {
        // Changes of the map do not panic half-way.
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An unsettled gateway is checked a few times more.
    fn after(&self, subject: &GatewayRef, found: &running::FlavorConsistency) -> Action {
        let mut unsettled = self.unsettled();
        if found.is_settled() {
            unsettled.remove(subject);
            return Action::AwaitChange;
        }
        let state = unsettled.entry(subject.clone()).or_default();
        if state.tries >= TRIES {
            return Action::AwaitChange;
        }
        state.tries += 1;
        Action::Requeue(PAUSE * (1 << (state.tries - 1)))
    }

    /// Publishes one Event each time that flavors become mixed; the condition keeps a new leader from
    /// repeating it.
    async fn warn(&self, subject: &GatewayRef, object: &Value, found: &running::FlavorConsistency) {
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
        bookkeeping: &Bookkeeping,
        subject: &GatewayRef,
        object: &Value,
        found: &running::FlavorConsistency,
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
        match bookkeeping.patch_data_plane_status(&subject.name, version, status).await {
            Err(ApiFailure { code: 404, .. }) => Ok(()),
            written => written,
        }
    }
}

fn conditions(object: &Value) -> Vec<Condition> {
    let listed = object["status"]["conditions"].as_array().into_iter().flatten();
    listed.filter_map(|condition| serde_json::from_value(condition.clone()).ok()).collect()
}
