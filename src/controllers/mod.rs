//! Glue, one folder for each capability: event -> facts -> pure decision -> effects.

use std::sync::{Arc, Mutex, OnceLock};

use consistency::Consistency;
use instance::{InstanceContext, InstanceGate};
use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::NamespacedName;
use interlock_kudo::engine::run::PipeHelper;
use interlock_kudo::engine::seed::SeedKey;
use kube::Client;
use live_specs::Archive;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::discovery::KindDiscovery;
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::lease::{Leadership, LeaseHolder};
use crate::cluster::requests::Fence;
use crate::cluster::supervisor::{Assignment, Handle};
use crate::cluster::tamper::{GuardState, PolicyState};
use crate::runtime::certificates::CertificateSigner;
use crate::runtime::executor::Executor;
use crate::runtime::gate::{self, LeaderGate};
use crate::runtime::index::{Observer, Store};
use crate::runtime::pool::Pool;
use crate::runtime::queue::Queue;
use crate::runtime::reconciler::DescribedKind;
use crate::runtime::runner;
use crate::telemetry::metrics::Metrics;

pub mod capabilities;
pub mod capability_events;
pub mod consistency;
pub mod flavor_sources;
pub mod instance;
pub mod interlock;
pub mod live_specs;
pub mod revisions;
pub mod rollout_backfill;
pub mod route_patterns;
mod template_key;

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
    /// The same, asked of the API server.
    pub lease: LeaseHolder,
    /// The namespace of the process.
    pub namespace: String,
    /// The state of the policy that guards requests.
    pub verbs: watch::Receiver<PolicyState>,
    /// The state of the policy that guards references into other namespaces.
    pub versions: watch::Receiver<GuardState>,
    /// The helper of Pipe tasks.
    pub pipe_helper: Arc<PipeHelper>,
    /// Threads for work whose cost depends on the content of a package.
    pub pool: Arc<Pool>,
    /// The key of which what templates generate follows, once it is read.
    pub template_key: Arc<OnceLock<SeedKey>>,
    /// What the domains keep of all objects.
    pub listers: KindListers,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Runs the controllers until `stop`; returns when no write is in flight any more.
pub async fn run(context: ControllersContext, stop: CancellationToken) {
    let Some(work) = context.supervisor.work(capabilities::INSTANCES) else { return };
    let (metrics, leadership) = (context.metrics.clone(), context.leadership.clone());
    let gateways = context.watches.gateways();
    let consistency = Consistency::new(context.client.clone(), context.store.clone(), leadership.clone());
    let snapshot = context.supervisor.snapshot();
    let gate_leadership = leadership.clone();
    let guards_gate = move || {
        let gate = LeaderGate::new(gate_leadership.clone());
        gate.while_capability(capabilities::FLAVORS, snapshot.clone(), gate::runs)
    };
    let bookkeeping = Bookkeeping::counted(context.client.clone(), metrics.clone());
    let kinds = Arc::new(KindDiscovery::new(context.supervisor.definitions().clone()));
    let described = described(&context, &bookkeeping, &kinds);
    let archives = described.iter().filter(|(kind, ..)| kind.resource.kind == "DataPlane");
    let archives: Vec<_> = archives.map(|(kind, queue, _)| archive(&context, kind, queue)).collect();
    let queue = context.queue.clone();
    let instance_gate = InstanceGate::new(context.supervisor.clone(), leadership, work.clone());
    let key =
        template_key::follow(context.client.clone(), context.namespace.clone(), context.template_key.clone());
    let instances = instances(context, work, bookkeeping, kinds);
    let key = stop.run_until_cancelled(key);
    tokio::join!(
        key,
        runner::run(Arc::new(instances), queue, instance_gate, metrics.clone(), stop.clone()),
        runner::run(Arc::new(consistency), gateways, guards_gate(), metrics.clone(), stop.clone()),
        futures::future::join_all(described.into_iter().map(|(controller, queue, gate)| {
            runner::run(controller, queue, gate, metrics.clone(), stop.clone())
        })),
        futures::future::join_all(archives.into_iter().map(|archive| {
            let queue = archive.queue.clone();
            runner::run(Arc::new(archive), queue, guards_gate(), metrics.clone(), stop.clone())
        })),
    );
}

/// The archive of live specs that are too large for the stamp.
fn archive(
    context: &ControllersContext,
    data_planes: &Arc<DescribedKind>,
    queue: &Arc<Queue<NamespacedName>>,
) -> Archive {
    Archive {
        kind: data_planes.clone(),
        queue: Arc::default(),
        bookkeeping: Bookkeeping::new(context.client.clone()),
        events: EventPublisher::new(context.client.clone()),
        reports: FailureReports::new(EventPublisher::new(context.client.clone())),
        data_planes: queue.clone(),
        archived: Mutex::default(),
    }
}

/// The controllers of the kinds that have a reconciler of their own.
fn described(
    context: &ControllersContext,
    bookkeeping: &Bookkeeping,
    kinds: &Arc<KindDiscovery>,
) -> Vec<(Arc<DescribedKind>, Arc<Queue<NamespacedName>>, LeaderGate)> {
    let executor = Executor::of_process(context.client.clone(), kinds.clone(), bookkeeping);
    let signer = Arc::new(CertificateSigner::new(executor.clone(), context.namespace.clone()));
    let described = context.watches.described().iter().filter_map(|(kind, queue)| {
        let reconciler = kind.reconciler?;
        let controller = DescribedKind {
            resource: kind.resource,
            reconciler,
            executor: executor.clone(),
            signer: signer.clone(),
            store: context.store.clone(),
            observer: context.watches.clone(),
            leadership: context.leadership.clone(),
            listers: context.listers.clone(),
            metrics: context.metrics.clone(),
            refused: Arc::default(),
            reports: FailureReports::new(EventPublisher::new(context.client.clone()).within(bookkeeping)),
        };
        let gate = LeaderGate::new(context.leadership.clone());
        let gate =
            gate.while_capability(reconciler.capability.name, context.supervisor.snapshot(), gate::runs);
        Some((Arc::new(controller), queue.clone(), gate))
    });
    described.collect()
}

fn instances(
    context: ControllersContext,
    work: watch::Receiver<Assignment>,
    bookkeeping: Bookkeeping,
    kinds: Arc<KindDiscovery>,
) -> InstanceContext {
    InstanceContext {
        own_namespace: context.namespace,
        requests: instance::request_guard::Requests::new(context.verbs).into(),
        references: instance::references::References::new(&context.client, context.versions).into(),
        objects: Executor::new(context.effects, kinds.clone(), context.packages, context.metrics.clone()),
        events: EventPublisher::new(context.client.clone()).within(&bookkeeping),
        reports: FailureReports::new(EventPublisher::new(context.client.clone()).within(&bookkeeping)).into(),
        bookkeeping,
        client: context.client,
        kinds,
        store: context.store,
        watches: context.watches,
        supervisor: context.supervisor,
        work,
        queue: context.queue,
        lead: Fence { leadership: context.leadership, epoch: None },
        lease: context.lease,
        status_cache: Arc::default(),
        inventories: Arc::default(),
        no_room: Arc::default(),
        pipe_helper: context.pipe_helper,
        pool: context.pool,
        template_key: context.template_key,
        pod_failures: Arc::default(),
        made_keys: Arc::default(),
        metrics: context.metrics,
    }
}
