//! The wiring of `interlock run`: who is started with what, and in which order everything ends.
//!
//! Ports open first, so that probes are answered from the first moment; what is not known yet
//! keeps the doors shut by a gate. At a signal the controllers stop and give the lease back
//! while the webhook goes on answering; then the doors close, and what is in flight ends.

mod certificates;
mod guards;
mod options;
mod settings;
mod signals;
mod supervisor;
mod webhook;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

pub use options::{Certificates, LeaseOptions, Options, Roles};
use signals::Signals;

use crate::admission;
use crate::cluster::binding::Sight;
use crate::cluster::client::{self, ClientError, Connection};
use crate::cluster::guard::Guard;
use crate::cluster::lease::{Election, Leadership, LeaseName};
use crate::cluster::queue::Queue;
use crate::cluster::supervisor::{Handle, Modes};
use crate::controllers::{self, observe};
use crate::server::accept::DRAIN;
use crate::server::shutdown::Shutdown;
use crate::server::tls::Shown;
use crate::telemetry::build;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::readiness::{Check, Readiness};

/// Why the process ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A port is taken, or the address is not of this machine.
    #[error("{address} cannot be listened on: {source}; {flag} chooses another")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// The flag that chooses another place.
        flag: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The API server cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The handlers of SIGTERM and SIGINT cannot be installed.
    #[error("signals cannot be received: {0}")]
    Signals(std::io::Error),
    /// Somebody did not want to wait for the drain.
    #[error("a second signal ended the process before it had stopped")]
    Impatience,
    /// Admission would not know our own writes.
    #[error(
        "--controller-user is {given:?}, but the API server knows this process as {found:?}: its own writes would be refused"
    )]
    WrongUser {
        /// Who the flag says we are.
        given: String,
        /// Who we are.
        found: String,
    },
    /// The caBundle cannot be kept for such an address.
    #[error("--webhook-url {url:?} cannot be used: {problem}")]
    WebhookUrl {
        /// The address.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A task that runs until the end is gone; which one.
    #[error("a part of the process ended that never should: {0}")]
    Ended(&'static str),
}

/// What all parts share.
struct Process {
    options: Options,
    metrics: Arc<Metrics>,
    readiness: Readiness,
    shutdown: Shutdown,
    shown: Shown,
    store: Arc<observe::Store>,
    config: Arc<OnceLock<admission::Config>>,
    /// API user of the controllers, once it is known.
    user: watch::Sender<Option<String>>,
}

/// Runs until a signal, or until a part fails that the others need.
pub async fn run(options: Options) -> Result<(), RunError> {
    let signals = Signals::listen().map_err(RunError::Signals)?;
    let webhook = listen(options.webhook_address, "--webhook-port").await?;
    let ops = listen(options.ops_address, "--ops-bind-address").await?;
    let process = Process {
        metrics: Arc::new(Metrics::new()),
        readiness: Readiness::new(),
        shutdown: Shutdown::new(),
        shown: Shown::new(),
        store: observe::Store::new(options.roles.controllers),
        config: Arc::new(OnceLock::new()),
        user: watch::Sender::new(None),
        options,
    };
    process.run(webhook, ops, signals).await
}

async fn listen(address: std::net::SocketAddr, flag: &'static str) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|source| RunError::Listen { address, flag, source })
}

/// What others do only while a guard holds, or with what is seen of it.
#[derive(Default)]
struct Guards {
    /// The policy of what people ask of a run.
    verbs: watch::Sender<Guard>,
    /// The binding of the freeze.
    freeze: watch::Sender<Sight>,
}

/// Parts of the process that end only with it.
type Parts = JoinSet<Result<&'static str, RunError>>;

impl Process {
    async fn run(self, webhook: TcpListener, ops: TcpListener, mut signals: Signals) -> Result<(), RunError> {
        let options = &self.options;
        let connection =
            Connection { kubeconfig: options.kubeconfig.clone(), context: options.context.clone() };
        let cluster = connection.config().await?;
        let books = client::bookkeeping(&cluster, self.metrics.clone())?;
        tracing::info!(version = build::VERSION, commit = build::COMMIT, cluster = %cluster.cluster_url, "started");
        let mut servers = JoinSet::new();
        let mut parts = Parts::new();
        let queue = options.roles.controllers.then(|| Arc::new(Queue::default()));
        let (modes, wanted) = watch::channel(Modes::default());
        let settings = Arc::new(observe::Interlocks::default());
        let (supervisor, watches) =
            self.supervise(&books, queue.clone(), wanted, settings.clone(), &mut parts);
        let capabilities = supervisor.snapshot();
        self.follow_settings(settings.clone(), queue.clone(), modes, capabilities.clone(), &mut parts);
        self.know_the_user(&books, &mut parts);
        self.find_rollouts(&books, &mut parts);
        let guards = Guards::default();
        let (reconciling, leadership) = match queue {
            Some(queue) => {
                let effects = client::effects(&cluster, self.metrics.clone())?;
                let verbs = guards.verbs.subscribe();
                self.reconcile(books.clone(), effects, queue, verbs, (supervisor, watches))
            }
            None => {
                let nothing = self.shutdown.lingering_token().cancelled_owned();
                (tokio::spawn(nothing), watch::channel(Leadership::Standby).1)
            }
        };
        if options.roles.controllers {
            let snapshot = capabilities.clone();
            self.label_flavor_sources(&books, snapshot.clone(), leadership.clone(), &mut parts);
            let freeze = guards.freeze.subscribe();
            self.report_settings(&books, settings, snapshot, freeze, leadership.clone(), &mut parts);
        }
        let webhooks = self.watch_guards(&books, guards, leadership.clone(), &mut parts);
        self.keep_certificates(&books, webhooks, leadership, &mut parts)?;
        // Last, as a process that has no checks yet would call itself ready.
        self.serve_webhook(webhook, capabilities.clone(), &mut servers);
        self.serve_ops(ops, &books, capabilities, &mut servers);
        tokio::select! {
            ended = self.until_stopped(&mut signals, reconciling, servers) => ended,
            error = first_end(&mut parts) => Err(error),
        }
    }

    /// Waits for a signal; then everything ends in its order, unless a second one comes.
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
        tracing::info!("stopping: not ready any more, answering until callers have gone elsewhere");
        self.shutdown.begin();
        let lease_given_back = tokio::time::timeout(DRAIN, reconciling);
        let _ = tokio::join!(tokio::time::sleep(self.options.shutdown_delay), lease_given_back);
        self.shutdown.close();
        while servers.join_next().await.is_some() {}
        tracing::info!("stopped");
    }

    /// The name of the process decides whom admission skips, so the doors wait for it.
    fn know_the_user(&self, books: &Client, parts: &mut Parts) {
        let gate = self.readiness.gate("user");
        let (client, config) = (books.clone(), self.config.clone());
        let given = self.options.controller_user.clone();
        let (freeze, controllers) = (self.options.freeze, self.options.roles.controllers);
        let known = self.user.clone();
        parts.spawn(async move {
            let user = match (given, controllers) {
                (Some(given), false) => given,
                (given, _) => {
                    let found = ask_who_i_am(&client, &gate).await;
                    match given {
                        Some(given) if given != found => return Err(RunError::WrongUser { given, found }),
                        _ => found,
                    }
                }
            };
            tracing::info!(user, "admission skips the user of the controllers, and nobody else");
            known.send_replace(Some(user.clone()));
            // Nobody else sets it.
            let _ = config.set(admission::Config { controller_user: user, freeze });
            gate.pass();
            std::future::pending().await
        });
    }

    /// The controllers, under a lease that is given back after their last write.
    fn reconcile(
        &self,
        client: Client,
        effects: Client,
        queue: Arc<Queue<crate::api::object::NamespacedName>>,
        guard: watch::Receiver<Guard>,
        (supervisor, watches): (Handle, Arc<observe::Observer>),
    ) -> (JoinHandle<()>, watch::Receiver<Leadership>) {
        let options = &self.options;
        let name = LeaseName { namespace: options.namespace.clone(), name: options.lease.name.clone() };
        let id = candidate_id(options.pod_name.as_deref());
        let metrics = self.metrics.clone();
        let election = Election::new(client.clone(), name, id, options.lease.timing, metrics.clone());
        let context = controllers::Context {
            client,
            effects,
            packages: options.packages.clone(),
            store: self.store.clone(),
            queue,
            leadership: election.leadership(),
            guard,
            metrics,
            supervisor,
            watches,
        };
        let leadership = context.leadership.clone();
        let stop = self.shutdown.lingering_token();
        let reconciling = tokio::spawn(async move {
            let give_back = CancellationToken::new();
            let election = tokio::spawn(election.run(give_back.clone()));
            controllers::run(context, stop).await;
            give_back.cancel();
            let _ = election.await;
        });
        (reconciling, leadership)
    }
}

/// A part that ends takes the process with it: nothing limps.
async fn first_end(parts: &mut Parts) -> RunError {
    match parts.join_next().await {
        Some(Ok(Err(error))) => error,
        Some(Ok(Ok(part))) => RunError::Ended(part),
        Some(Err(_)) => RunError::Ended("a task that panicked"),
        None => std::future::pending().await,
    }
}

/// Asks until the API server answers.
async fn ask_who_i_am(client: &Client, gate: &Check) -> String {
    let mut pause = Duration::from_millis(100);
    loop {
        match client::who_am_i(client).await {
            Ok(user) => return user,
            Err(error) => {
                tracing::warn!(%error, "trying again");
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
