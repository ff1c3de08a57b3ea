//! The wiring of `interlock run`: starts all parts, each on its runtime ([`runtimes`]), and stops them in
//! order.
//!
//! Ports open first, so that probes get answers from the first moment; gates keep the webhook at 503 until
//! its data is known. At a signal the controllers stop and the election releases the lease while the webhook
//! still answers; then the ports close, and requests in flight finish.

mod certificates;
mod guards;
mod options;
mod runtimes;
mod settings;
mod signals;
mod start_supervisor;
mod webhook;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use interlock_core::admission;
use kube::Client;
pub use options::{CallerOptions, LeaseOptions, Roles, RunOptions, ServingCertificate};
pub use runtimes::Runtimes;
use runtimes::{Handles, restarted};
use signals::Signals;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::cluster::binding::BindingState;
use crate::cluster::client::{self, ClientError, Connection};
use crate::cluster::lease::{Election, Heartbeat, Leadership, LeaseHolder, LeaseName};
use crate::cluster::supervisor::{Handle, Modes};
use crate::cluster::tamper::{GuardState, PolicyState};
use crate::controllers;
use crate::runtime::index;
use crate::runtime::pool::Pool;
use crate::runtime::queue::Queue;
use crate::server::accept::DRAIN;
use crate::server::shutdown::Shutdown;
use crate::server::tls::CertificateResolver;
use crate::telemetry::build;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::readyz::{Check, Readyz};

/// Why the process ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A port is taken, or the address is not of this machine.
    #[error("cannot listen on {address}: {source}; choose another address with {flag}")]
    Listen {
        address: std::net::SocketAddr,
        /// The flag that changes it.
        flag: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// No client of the API server can be made.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The rendering threads cannot be started.
    #[error("the rendering threads could not be started: {0}")]
    Threads(std::io::Error),
    /// The handlers of SIGTERM and SIGINT cannot be installed.
    #[error("the signal handlers could not be installed: {0}")]
    Signals(std::io::Error),
    /// A second signal during the drain.
    #[error("a second signal ended the process before it had stopped")]
    Impatience,
    /// Admission would not recognise our own writes.
    #[error(
        "--controller-user is {given:?}, but the API server knows this process as {found:?}: admission would refuse its own writes; correct the flag, or leave it out"
    )]
    WrongUser {
        /// The user in the flag.
        given: String,
        /// Our user.
        found: String,
    },
    /// The caBundle cannot be maintained for such an address.
    #[error("--webhook-url {url:?} cannot be used: {problem}")]
    WebhookUrl {
        /// The address.
        url: String,
        /// The reason.
        problem: String,
    },
    /// A task that must run until the end has ended; its name.
    #[error("an essential part of the process ended: {0}")]
    Ended(&'static str),
}

/// Shared by all parts.
struct Process {
    options: RunOptions,
    metrics: Arc<Metrics>,
    readiness: Readyz,
    shutdown: Shutdown,
    resolver: CertificateResolver,
    store: Arc<index::Store>,
    config: Arc<OnceLock<admission::Config>>,
    /// API user of the controllers, once it is known.
    user: watch::Sender<Option<String>>,
    /// The runtimes of everything but the server.
    runtimes: Handles,
    /// Renders packages.
    pool: Arc<Pool>,
}

/// How long the controllers may take to end before the lease is released without them: a little longer than
/// they take to abort running work.
const CONTROLLERS_DRAIN: Duration = Duration::from_secs(12);

/// Runs until a signal, or until an essential part fails. Call it on the serving runtime
/// ([`Runtimes::run`]).
pub async fn run(options: RunOptions, runtimes: Handles) -> Result<(), RunError> {
    let signals = Signals::listen().map_err(RunError::Signals)?;
    let webhook = listen(options.webhook_address, "--webhook-port").await?;
    let ops = listen(options.ops_address, "--ops-bind-address").await?;
    let exposed = match options.metrics_address {
        Some(address) => Some((listen(address, "--metrics-bind-address").await?, address)),
        None => None,
    };
    let metrics = Arc::new(Metrics::new());
    let process = Process {
        pool: Pool::start(options.render_limit, metrics.clone()).map_err(RunError::Threads)?,
        metrics,
        readiness: Readyz::new(),
        shutdown: Shutdown::new(),
        resolver: CertificateResolver::new(),
        store: index::Store::new(options.kinds, options.roles.controllers),
        config: Arc::new(OnceLock::new()),
        user: watch::Sender::new(None),
        runtimes,
        options,
    };
    process.run(Listeners { webhook, ops, exposed }, signals).await
}

async fn listen(address: std::net::SocketAddr, flag: &'static str) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, flag, source })
}

/// States of guard objects that other parts depend on.
#[derive(Default)]
struct Guards {
    /// The policy of plan requests.
    verbs: watch::Sender<PolicyState>,
    /// The policy of references to OperatorVersions of other namespaces.
    versions: watch::Sender<GuardState>,
    freeze: watch::Sender<BindingState>,
}

/// The controllers' clients. A client belongs to the runtime that it was made on: its connections are tasks
/// of that.
#[derive(Clone)]
struct Clients {
    /// Writes planExecution, status, last-applied annotation and finalizer.
    process_client: Client,
    /// Effects of packages.
    effects: Client,
}

/// The open ports.
struct Listeners {
    webhook: TcpListener,
    ops: TcpListener,
    /// Metrics for other machines, with their address.
    exposed: Option<(TcpListener, std::net::SocketAddr)>,
}

/// Parts of the process that end only with it.
type Parts = JoinSet<Result<&'static str, RunError>>;

impl Process {
    async fn run(self, listeners: Listeners, mut signals: Signals) -> Result<(), RunError> {
        let options = &self.options;
        let connection =
            Connection { kubeconfig: options.kubeconfig.clone(), context: options.context.clone() };
        let cluster = connection.config().await?;
        let process_client = client::bookkeeping(&cluster, self.metrics.clone())?;
        let watching =
            self.on(&self.runtimes.watching, || client::bookkeeping(&cluster, self.metrics.clone()))?;
        tracing::info!(version = build::VERSION, commit = build::COMMIT, cluster = %cluster.cluster_url, "started");
        let mut servers = JoinSet::new();
        let mut parts = Parts::new();
        let queue = options.roles.controllers.then(|| Arc::new(Queue::default()));
        let (modes, wanted) = watch::channel(Modes::default());
        let settings = Arc::new(index::Interlocks::default());
        let (supervisor, watches) =
            self.supervise(&watching, queue.clone(), wanted, settings.clone(), &mut parts);
        let capabilities = supervisor.snapshot();
        self.follow_settings(settings.clone(), queue.clone(), modes, capabilities.clone(), &mut parts);
        self.learn_user(&process_client, &mut parts);
        self.find_rollouts(&watching, &mut parts);
        self.compile_patterns(&mut parts);
        let guards = Guards::default();
        let (reconciling, leadership) = match queue {
            Some(queue) => {
                let clients = self.on(&self.runtimes.reconciling, || self.clients(&cluster))?;
                let policies = (guards.verbs.subscribe(), guards.versions.subscribe());
                let (reconciling, leadership) =
                    self.reconcile(&process_client, clients.clone(), queue, policies, (supervisor, watches));
                let snapshot = capabilities.clone();
                self.label_flavor_sources(
                    &clients.process_client,
                    snapshot.clone(),
                    leadership.clone(),
                    &mut parts,
                );
                let freeze = guards.freeze.subscribe();
                self.report_settings(
                    &clients.process_client,
                    settings,
                    snapshot,
                    freeze,
                    leadership.clone(),
                    &mut parts,
                );
                (reconciling, leadership)
            }
            None => {
                let nothing = self.shutdown.lingering_token().cancelled_owned();
                (tokio::spawn(nothing), watch::channel(Leadership::Standby).1)
            }
        };
        let webhooks = self.watch_guards(&watching, guards, leadership.clone(), &mut parts);
        self.maintain_certificates(&process_client, webhooks, leadership, &mut parts)?;
        // Last, as a process without checks would report itself ready.
        self.serve_webhook(listeners.webhook, capabilities.clone(), &mut servers, &mut parts);
        self.serve_ops(listeners.ops, &process_client, capabilities, &mut servers);
        if let Some((listener, address)) = listeners.exposed {
            self.serve_metrics(listener, address, &process_client, &mut servers);
        }
        tokio::select! {
            ended = self.until_stopped(&mut signals, reconciling, servers) => ended,
            error = first_ended(&mut parts) => Err(error),
        }
    }

    /// Makes a value whose constructor spawns tasks, on the runtime where these must run.
    fn on<T>(&self, runtime: &tokio::runtime::Handle, make: impl FnOnce() -> T) -> T {
        let _entered = runtime.enter();
        make()
    }

    fn clients(&self, cluster: &kube::Config) -> Result<Clients, ClientError> {
        Ok(Clients {
            process_client: client::bookkeeping(cluster, self.metrics.clone())?,
            effects: client::effects(cluster, self.metrics.clone())?,
        })
    }

    /// Waits for a signal; then stops everything in order, unless a second one comes.
    async fn until_stopped(
        &self,
        signals: &mut Signals,
        mut reconciling: JoinHandle<()>,
        servers: JoinSet<()>,
    ) -> Result<(), RunError> {
        tokio::select! {
            () = signals.next() => {}
            _ = &mut reconciling => return Err(RunError::Ended("the controllers")),
        }
        tokio::select! {
            () = self.stop(reconciling, servers) => Ok(()),
            () = signals.next() => Err(RunError::Impatience),
        }
    }

    async fn stop(&self, reconciling: JoinHandle<()>, mut servers: JoinSet<()>) {
        tracing::info!("stopping: not ready any more; still answering while callers move to other replicas");
        self.shutdown.begin();
        self.pool.stop();
        let controllers_and_lease = tokio::time::timeout(DRAIN, reconciling);
        let _ = tokio::join!(tokio::time::sleep(self.options.shutdown_delay), controllers_and_lease);
        self.shutdown.close();
        while servers.join_next().await.is_some() {}
        tracing::info!("stopped");
    }

    /// Learns the user of the process, which admission must skip; the gate stays closed until then.
    fn learn_user(&self, process_client: &Client, parts: &mut Parts) {
        let gate = self.readiness.gate("user");
        let (client, config) = (process_client.clone(), self.config.clone());
        let given = self.options.controller_user.clone();
        let docs = self.options.docs.clone();
        let (freeze, controllers) = (self.options.freeze, self.options.roles.controllers);
        let known = self.user.clone();
        parts.spawn(async move {
            let user = match (given, controllers) {
                (Some(given), false) => given,
                (given, _) => {
                    let found = self_subject(&client, &gate).await;
                    match given {
                        Some(given) if given != found => return Err(RunError::WrongUser { given, found }),
                        _ => found,
                    }
                }
            };
            tracing::info!(user, "admission skips only the user of the controllers");
            known.send_replace(Some(user.clone()));
            // No other code sets it.
            let _ = config.set(admission::Config { controller_user: user, freeze, docs });
            gate.pass();
            std::future::pending().await
        });
    }

    /// Starts the controllers on a runtime of their own, under a lease that this runtime renews while they
    /// have a heartbeat, and releases after their last write.
    fn reconcile(
        &self,
        process_client: &Client,
        clients: Clients,
        queue: Arc<Queue<interlock_core::api::object::NamespacedName>>,
        (verbs, versions): (watch::Receiver<PolicyState>, watch::Receiver<GuardState>),
        (supervisor, watches): (Handle, Arc<index::Observer>),
    ) -> (JoinHandle<()>, watch::Receiver<Leadership>) {
        let options = &self.options;
        let name = LeaseName { namespace: options.namespace.clone(), name: options.lease.name.clone() };
        let id = candidate_id(options.pod_name.as_deref());
        let metrics = self.metrics.clone();
        let heartbeat = Heartbeat::new(options.lease.timing);
        self.runtimes.reconciling.spawn(heartbeat.clone().beat_forever());
        let timing = options.lease.timing;
        let lease = LeaseHolder::new(process_client.clone(), &name, id.clone());
        let election = Election::new(process_client.clone(), name, id, timing, heartbeat, metrics.clone());
        let read = self.current_kinds(supervisor.snapshot());
        let context = controllers::ControllersContext {
            listers: self.store.listers(read),
            client: clients.process_client,
            effects: clients.effects,
            packages: options.packages.clone(),
            pipe_helper: Arc::new(options.pipe_helper.clone()),
            store: self.store.clone(),
            queue,
            leadership: election.leadership(),
            lease,
            namespace: options.namespace.clone(),
            verbs,
            versions,
            pool: self.pool.clone(),
            template_key: Arc::default(),
            metrics: metrics.clone(),
            supervisor,
            watches,
        };
        let leadership = context.leadership.clone();
        let stop = self.shutdown.lingering_token();
        let stopped = stop.clone();
        let controllers = self.runtimes.reconciling.spawn(async move {
            restarted("controllers", &metrics, || controllers::run(context.clone(), stop.clone())).await;
        });
        (tokio::spawn(release_after(controllers, election, stopped)), leadership)
    }
}

/// Runs the election until the controllers have ended, or have had [`CONTROLLERS_DRAIN`] to end; then it releases the
/// lease.
async fn release_after(controllers: JoinHandle<()>, election: Election, stopped: CancellationToken) {
    let release_lease = CancellationToken::new();
    let election = tokio::spawn(election.run(release_lease.clone()));
    let late = async {
        stopped.cancelled().await;
        tokio::time::sleep(CONTROLLERS_DRAIN).await;
        tracing::warn!("the controllers have not ended within {CONTROLLERS_DRAIN:?}; releasing the lease");
    };
    tokio::select! {
        _ = controllers => {}
        () = late => {}
    }
    release_lease.cancel();
    let _ = election.await;
}

/// Returns when the first part ends; the process then ends too, as it must not run partially.
async fn first_ended(parts: &mut Parts) -> RunError {
    match parts.join_next().await {
        Some(Ok(Err(error))) => error,
        Some(Ok(Ok(part))) => RunError::Ended(part),
        Some(Err(_)) => RunError::Ended("a task that panicked"),
        None => std::future::pending().await,
    }
}

/// Retries until the API server answers.
async fn self_subject(client: &Client, gate: &Check) -> String {
    let mut pause = Duration::from_millis(100);
    loop {
        match client::self_subject_review(client).await {
            Ok(user) => return user,
            Err(error) => {
                tracing::warn!(%error, "SelfSubjectReview failed; retrying");
                gate.fail(error.to_string());
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(10));
            }
        }
    }
}

/// Unique among all processes that ever ran, and readable in `kubectl get lease`.
fn candidate_id(pod: Option<&str>) -> String {
    let unique = uuid::Uuid::new_v4();
    pod.map_or_else(|| format!("interlock_{unique}"), |pod| format!("{pod}_{unique}"))
}
