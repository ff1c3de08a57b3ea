//! One process that leads: the real reconciler on what its watches have shown, and the API server in memory.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName};
use interlock_core::topology::Epoch;
use interlock_kudo::engine::run::PipeHelper;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::super::context::InstanceContext;
use super::super::gate::InstanceTerm;
use super::super::reconcile;
use super::super::references::References;
use super::super::request_guard::{EnforcementPhase, Requests, RevisionState};
use super::super::view::InstanceView;
use super::api::{Answer, Api, LEASE, PROCESS, Sent};
use super::cluster::Cluster;
use super::objects::LATER_VERSION;
use super::package::{NAMESPACE, key, operator_version};
use super::rules::Without;
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::discovery::KindDiscovery;
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::lease::{Leadership, LeaseHolder, LeaseName};
use crate::cluster::requests::{Fence, JSON};
use crate::cluster::supervisor::{
    Assignment, CapabilityStatus, Handle, Sink as _, WatchState, Watches, Watching, Work,
};
use crate::cluster::tamper::{GuardState, PolicyState};
use crate::cluster::watch::WatchChange;
use crate::runtime::controller::{Action, Controller as _};
use crate::runtime::executor::Executor;
use crate::runtime::index::{Observer, Store};
use crate::runtime::pool::Pool;
use crate::runtime::queue::Queue;
use crate::telemetry::metrics::Metrics;

/// Processor time of one rendering; the model renders nothing that takes any.
const RENDER_LIMIT: Duration = Duration::from_secs(60);

/// A path at which nothing is ever answered.
const HELD: &str = "/api/v1/namespaces/ns/held";

/// The leader epoch.
const EPOCH: u64 = 1;
/// How long a process leads.
const TERM: Duration = Duration::from_secs(3600);

/// What processes share, as it depends on nothing that they do.
pub struct SharedParts {
    runtime: tokio::runtime::Runtime,
    pool: Arc<Pool>,
    kinds: Arc<KindDiscovery>,
    metrics: Arc<Metrics>,
    /// The OperatorVersion.
    pub version: Arc<Value>,
    pub without: Option<Without>,
}

impl SharedParts {
    pub fn new(without: Option<Without>) -> Self {
        let metrics = Arc::new(Metrics::new());
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(),
            pool: Pool::start(RENDER_LIMIT, metrics.clone()).unwrap(),
            kinds: Arc::default(),
            metrics,
            version: operator_version(),
            without,
        }
    }

    /// Runs the reconciler of a process whose watches have shown `cached`, until it ends by itself.
    pub fn pass(&self, cached: &Cluster, api: Api) -> (Api, Action) {
        self.pass_on(cached, None, api)
    }

    /// The same by a process that has written the status of the Instance in `written`.
    pub fn pass_on(&self, cached: &Cluster, written: Option<&Cluster>, api: Api) -> (Api, Action) {
        self.runtime.block_on(async {
            let api = Arc::new(Mutex::new(api));
            let context = self.context(client(api.clone()), cached);
            if let Some(object) = written.and_then(|written| written.objects.instance()) {
                context.status_cache.record_write(&InstanceView::read(&key(), object.clone()).unwrap());
            }
            let ended = reconcile::reconcile(&context.within(EPOCH), &key()).await;
            let mut api = api.lock().unwrap().clone();
            api.end();
            (api, ended)
        })
    }

    /// One reconcile by a process whose watches have shown `cached`, and whose supervisor assigns this work, as these
    /// capabilities are so.
    pub fn assigned(
        &self,
        cached: &Cluster,
        api: Api,
        work: Work,
        capabilities: Vec<CapabilityStatus>,
    ) -> (Api, Action) {
        self.runtime.block_on(async {
            let api = Arc::new(Mutex::new(api));
            let context = self.context(client(api.clone()), cached);
            let assignment = Assignment { work, epoch: Epoch(1) };
            let context = InstanceContext {
                work: watch::channel(assignment).1,
                supervisor: context.supervisor.clone().with_capabilities(capabilities),
                ..context
            };
            let term = InstanceTerm { epoch: EPOCH, work };
            let action = context.reconcile(&key(), term).await;
            let api = api.lock().unwrap().clone();
            (api, action)
        })
    }

    /// One reconcile by a process whose leader epoch ends while its first write waits for its turn.
    pub fn outlasted(&self, cached: &Cluster, api: Api) -> (Api, Action) {
        self.runtime.block_on(async {
            let api = Arc::new(Mutex::new(api));
            let (leads, leadership) = watch::channel(leader());
            let lead = Fence { leadership, epoch: None };
            let context = InstanceContext { lead, ..self.context(client(api.clone()), cached) };
            let (requests, all_shares) = (context.bookkeeping.requests(), json!("x".repeat(64 << 10)));
            let mut held = Box::pin(requests.send(None, Method::PUT, HELD, JSON, Some(&all_shares)));
            assert!(futures::poll!(&mut held).is_pending());
            let ends = async {
                while !self.metrics.encode(0).contains("requests_put_off_total{why=\"in_flight\"} 1") {
                    tokio::task::yield_now().await;
                }
                leads.send_replace(Leadership::Standby);
                drop(held);
            };
            let (led, key) = (context.within(EPOCH), key());
            let (action, ()) = tokio::join!(reconcile::reconcile(&led, &key), ends);
            let api = api.lock().unwrap().clone();
            (api, action)
        })
    }

    fn context(&self, client: Client, cached: &Cluster) -> InstanceContext {
        let (store, queue) = (Store::new(crate::kinds::all(), true), Arc::<Queue<NamespacedName>>::default());
        let watches = Observer::new(store.clone(), Arc::default(), Some(queue.clone()), self.metrics.clone());
        let config_maps = Gvk::new("v1", "ConfigMap");
        let whole = Watching { watch_state: WatchState::Synced, whole: true, terminating: false };
        let supervisor = Handle::of_watches(Watches::from([(config_maps.clone(), whole)]));
        watches.ask(supervisor.clone());
        store.set_reconciling(true);
        let show = |kind: Gvk, objects: Vec<Arc<Value>>| {
            let everywhere: Arc<str> = "".into();
            let listed = objects.into_iter().map(WatchChange::Listed);
            let all = [WatchChange::Listing(everywhere.clone())].into_iter().chain(listed);
            all.chain([WatchChange::Synced(everywhere)])
                .for_each(|change| watches.observe(&kind, Epoch(1), change));
        };
        let instance = cached.objects.instance().map(|object| Arc::new(Api::seen(self.without, object)));
        show(Gvk::new(meta::KUDO_API_VERSION, "OperatorVersion"), versions(&self.version, cached));
        show(Gvk::new(meta::KUDO_API_VERSION, "Instance"), instance.into_iter().collect());
        show(config_maps, cached.objects.config_maps().cloned().collect());
        let bookkeeping = Bookkeeping::counted(client.clone(), self.metrics.clone());
        let packages = NamespacedName::new(NAMESPACE, "interlock-packages");
        let lease = LeaseName { namespace: NAMESPACE.to_owned(), name: LEASE.to_owned() };
        let lease = LeaseHolder::new(client.clone(), &lease, PROCESS.to_owned());
        InstanceContext {
            own_namespace: NAMESPACE.to_owned(),
            requests: guarded().into(),
            references: References::new(&client, watch::channel(GuardState::Intact).1).into(),
            objects: Executor::new(client.clone(), self.kinds.clone(), packages, Arc::default()),
            events: EventPublisher::new(client.clone()).within(&bookkeeping),
            reports: FailureReports::new(EventPublisher::new(client.clone()).within(&bookkeeping)).into(),
            bookkeeping,
            client,
            kinds: self.kinds.clone(),
            store,
            watches,
            supervisor,
            work: watch::channel(Assignment::default()).1,
            queue,
            lead: Fence { leadership: watch::channel(leader()).1, epoch: None },
            lease,
            status_cache: Arc::default(),
            inventories: Arc::default(),
            no_room: Arc::default(),
            pipe_helper: Arc::new(PipeHelper::default()),
            pool: self.pool.clone(),
            template_key: Arc::new(OnceLock::new()),
            pod_failures: Arc::default(),
            made_keys: Arc::default(),
            metrics: self.metrics.clone(),
        }
    }
}

fn leader() -> Leadership {
    Leadership::Leader { leader_epoch: EPOCH, until: Instant::now() + TERM }
}

/// The OperatorVersions.
fn versions(first: &Arc<Value>, cached: &Cluster) -> Vec<Arc<Value>> {
    std::iter::once(first).chain(cached.objects.get(LATER_VERSION)).cloned().collect()
}

/// The policy that guards requests is in force since before there were any.
fn guarded() -> Requests {
    let revision = "in-force".to_owned();
    let policy = PolicyState { guard: GuardState::Intact, revision: revision.clone() };
    let requests = Requests::new(watch::channel(policy).1);
    let phase = EnforcementPhase::Enforced([].into());
    *requests.state() = RevisionState { revision, phase, recorded: true };
    requests
}

/// A client whose requests are answered from memory.
fn client(api: Arc<Mutex<Api>>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let api = api.clone();
        async move {
            if request.uri().path() == HELD {
                std::future::pending::<()>().await;
            }
            let sent = read(request).await;
            let answer = api.lock().unwrap().answer(&sent);
            Ok::<_, Infallible>(response(answer))
        }
    });
    Client::new(service, NAMESPACE)
}

async fn read(request: Request<Body>) -> Sent {
    let (head, body) = request.into_parts();
    let body: Bytes = body.collect_bytes().await.unwrap();
    let content_type = head.headers.get(http::header::CONTENT_TYPE);
    Sent {
        path: head.uri.path().to_owned(),
        content_type: content_type.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default(),
        body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() },
        method: head.method,
    }
}

fn response(answer: Answer) -> Response<Body> {
    let (code, body) = match answer {
        Ok(body) => (200, body),
        Err((code, reason)) => {
            let message = format!("the request is answered {code} {reason}");
            (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code}),
            )
        }
    };
    let body = Body::from(serde_json::to_vec(&body).unwrap());
    let json = (http::header::CONTENT_TYPE, "application/json");
    Response::builder().status(code).header(json.0, json.1).body(body).unwrap()
}
