//! Glue, one folder for each capability: event -> facts -> pure decision -> effects.

use std::sync::Arc;

use consistency::Permit;
use interlock_core::api::object::NamespacedName;
use kube::Client;
use observe::{Observer, Store};
use pool::Pool;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cluster::apply::{Bookkeeping, Objects};
use crate::cluster::events::EventPublisher;
use crate::cluster::guard::{GuardState, PolicyState};
use crate::cluster::kinds::Kinds;
use crate::cluster::lease::Leadership;
use crate::cluster::queue::Queue;
use crate::cluster::supervisor::Handle;
use crate::telemetry::metrics::Metrics;

pub mod capabilities;
pub mod consistency;
pub mod flavor_sources;
pub mod instance;
pub mod interlock;
pub mod live_specs;
pub mod observe;
pub mod pool;
pub mod revisions;
pub mod rollouts;
pub mod turns;

/// The context of the controllers.
#[derive(Clone)]
pub struct ControllersContext {
    /// Writes of the process itself: planExecution, status, stamp, finalizer.
    pub client: Client,
    /// Acts for packages, under their own identity.
    pub effects: Client,
    /// The service account that packages act as where the settings name no other.
    pub packages: NamespacedName,
    /// The cluster cache; the watches fill it.
    pub store: Arc<Store>,
    /// Requests watches for packages and Instances.
    pub watches: Arc<Observer>,
    /// Assigns work, and publishes the watch states of kinds.
    pub supervisor: Handle,
    /// Instances with new events; the watches fill it.
    pub queue: Arc<Queue<NamespacedName>>,
    /// Whether this process may act; checked before each reconcile.
    pub leadership: watch::Receiver<Leadership>,
    /// The namespace of the process.
    pub namespace: String,
    /// The state of the policy that guards requests.
    pub verbs: watch::Receiver<PolicyState>,
    /// The state of the policy that guards references into other namespaces.
    pub versions: watch::Receiver<GuardState>,
    /// Threads for work whose cost depends on the content of a package.
    pub pool: Arc<Pool>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Runs the controllers until `stop`; returns when no write is in flight any more.
pub async fn run(context: ControllersContext, stop: CancellationToken) {
    let Some(work) = context.supervisor.work(capabilities::INSTANCES) else { return };
    let gateways = context.watches.gateways();
    let permit = Permit { leadership: context.leadership.clone(), snapshot: context.supervisor.snapshot() };
    let (client, store, metrics) = (context.client.clone(), context.store.clone(), context.metrics.clone());
    let consistency = consistency::ConsistencyContext::new(client, store, gateways, permit, metrics);
    let bookkeeping = Bookkeeping::new(context.client.clone());
    let kinds = Arc::new(Kinds::new(context.supervisor.definitions().clone()));
    let references = instance::references::References::new(&context.client, context.versions);
    let instance = instance::InstanceContext {
        own_namespace: context.namespace,
        requests: instance::requests::Requests::new(context.verbs),
        references,
        objects: Objects::new(context.effects, kinds.clone(), context.packages),
        events: EventPublisher::new(context.client.clone()).within(&bookkeeping),
        bookkeeping,
        client: context.client,
        kinds,
        store: context.store,
        watches: context.watches,
        supervisor: context.supervisor,
        work,
        queue: context.queue,
        leadership: context.leadership,
        status_cache: instance::status_cache::StatusCache::default(),
        pool: context.pool,
        metrics: context.metrics,
    };
    tokio::join!(
        instance::run(Arc::new(instance), stop.clone()),
        consistency::run(Arc::new(consistency), stop),
    );
}
