//! One webhook port with a scripted reviewer.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use interlock::cluster::arrivals::Arrivals;
use interlock::cluster::certificates::KeyPem;
use interlock::cluster::certificates::authority::{authority, leaf};
use interlock::server::accept::Port;
use interlock::server::callers::Callers;
use interlock::server::client_auth::ClientAuthority;
use interlock::server::health::{self, Probes};
use interlock::server::in_flight::InFlight;
use interlock::server::limits::Limits;
use interlock::server::shutdown::Shutdown;
use interlock::server::tls::{CertificateResolver, MinVersion, Pair};
use interlock::server::webhook_routes;
use interlock::server::webhook_routes::{Reviewer, WebhookRoutes};
use interlock::telemetry::metrics::Metrics;
use interlock::telemetry::readyz::Readyz;
use interlock_core::admission::{
    AdmissionAnswer, Awaited, BadReview, CacheWait, DecisionKind, DecisionRecord, Reply, WebhookEndpoint,
};
use interlock_core::api::object::NamespacedName;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Longest wait of any test for anything.
pub const CAP: Duration = Duration::from_secs(60);

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let held = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(CAP, held).await.expect(what);
}

/// Decides as the body says: `panic`, `bad`, `large:N` (an answer of N bytes), `wait` (until [`World::arrive`]; `wait:b` for a review
/// of the namespace `b`), else `allowed`.
#[derive(Default)]
struct Scripted {
    arrived: AtomicBool,
    /// How often somebody was told to wait.
    told: AtomicUsize,
}

impl Reviewer for Scripted {
    fn decide<'a>(
        &self,
        _: WebhookEndpoint,
        body: &'a [u8],
        patience: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview> {
        let script = String::from_utf8_lossy(body);
        assert!(!script.starts_with("panic"), "{MEANT}");
        if script.starts_with("bad") {
            return Err(BadReview("this is no review".to_owned()));
        }
        if script.starts_with("wait") && patience == CacheWait::Wait && !self.arrived.load(Ordering::SeqCst) {
            self.told.fetch_add(1, Ordering::SeqCst);
            let namespace = script.split([':', ' ']).nth(1).unwrap_or("a").to_owned();
            return Ok(AdmissionAnswer::Wait(Awaited { operator_version: awaited(), namespace }));
        }
        if let Some(size) = script.strip_prefix("large:").and_then(|size| size.parse().ok()) {
            return Ok(AdmissionAnswer::Done(Reply { body: vec![b'x'; size], record: record() }));
        }
        let word = if patience == CacheWait::Exhausted { "exhausted" } else { "allowed" };
        Ok(AdmissionAnswer::Done(Reply { body: word.into(), record: record() }))
    }
}

/// Of the panic that a script asks for.
const MEANT: &str = "as the script says";

/// What reviews wait for.
fn awaited() -> NamespacedName {
    NamespacedName::new("a", "b")
}

fn record() -> DecisionRecord<'static> {
    DecisionRecord {
        uid: "u".into(),
        operation: "UPDATE".into(),
        group: "kudo.dev".into(),
        kind: "Instance".into(),
        namespace: "a".into(),
        name: "b".into(),
        user: "alice".into(),
        rules: Vec::new(),
        admitted: Vec::new(),
        verdict: DecisionKind::Allowed,
        plan: None,
        dry_run: false,
    }
}

pub struct World {
    pub address: SocketAddr,
    pub authority: KeyPem,
    pub metrics: Arc<Metrics>,
    pub readiness: Readyz,
    pub shutdown: Shutdown,
    pub resolver: CertificateResolver,
    pub served: JoinHandle<()>,
    reviewer: Arc<Scripted>,
    arrivals: Arc<Arrivals>,
}

/// Limits that a machine under any load keeps; a test shortens the one that it is about.
pub fn patient() -> Limits {
    Limits {
        handshake: CAP,
        headers: CAP,
        body: CAP,
        exchange: CAP,
        idle: CAP,
        idle_unused_when_crowded: CAP,
        ..Limits::default()
    }
}

/// Every other panic is printed, also of a task beside the test.
fn leave_out_meant_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(MEANT) {
                usual(panic);
            }
        }));
    });
}

pub async fn world(limits: Limits) -> World {
    world_with(limits, MinVersion::Tls13, |_| Callers::default()).await
}

/// With callers that are made for the certificate that is shown.
pub async fn world_with(
    limits: Limits,
    oldest: MinVersion,
    callers: impl FnOnce(&CertificateResolver) -> Callers,
) -> World {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    leave_out_meant_panics();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (metrics, readiness) = (Arc::new(Metrics::new()), Readyz::new());
    let (shutdown, resolver, reviewer) =
        (Shutdown::new(), CertificateResolver::new(), Arc::new(Scripted::default()));
    let (arrivals, callers) = (Arc::new(Arrivals::default()), Arc::new(callers(&resolver)));
    let health = Probes { readiness: readiness.clone(), shutdown: shutdown.clone() };
    let app = health::router(health).merge(webhook_routes::router(WebhookRoutes {
        kinds: interlock::kinds::all(),
        reviewer: reviewer.clone(),
        callers: callers.clone(),
        arrivals: arrivals.clone(),
        readiness: readiness.clone(),
        limits,
        in_flight: InFlight::new(&limits, metrics.clone()),
        metrics: metrics.clone(),
    }));
    let tls = callers.authority.as_ref().map(|authority: &Arc<ClientAuthority>| authority.tls());
    let port = Port {
        app,
        tls: Some(tls.unwrap_or_else(|| resolver.server_config(oldest).into())),
        callers,
        limits,
        shutdown: shutdown.clone(),
        metrics: metrics.clone(),
    };
    let served = tokio::spawn(port.serve(listener, Duration::from_secs(5)));
    let authority = authority(Timestamp::now(), Duration::from_secs(3600)).unwrap();
    let world =
        World { address, authority, metrics, readiness, shutdown, resolver, served, reviewer, arrivals };
    world.rotate();
    world
}

impl World {
    /// Shows a new leaf of the same CA.
    pub fn rotate(&self) {
        let names = ["hook.here.svc".to_owned()];
        let leaf = leaf(&self.authority, &names, Timestamp::now(), Duration::from_secs(600)).unwrap();
        self.resolver.show(Pair::from_pem(leaf.certificate.as_bytes(), leaf.key.as_bytes()).unwrap());
    }

    /// Waits until somebody was told that many times to wait; a review that waits is looked at twice.
    pub async fn is_waited_for(&self, times: usize) {
        until("a review is looked at and waits", async || self.told() >= times).await;
    }

    /// How often somebody was told to wait.
    pub fn told(&self) -> usize {
        self.reviewer.told.load(Ordering::SeqCst)
    }

    /// What `wait` waits for comes into the cache.
    pub fn arrive(&self) {
        self.reviewer.arrived.store(true, Ordering::SeqCst);
        self.arrivals.arrived(&awaited());
    }

    /// Something else comes into the cache.
    pub fn something_else_arrives(&self) {
        self.arrivals.arrived(&NamespacedName::new("a", "c"));
    }
}
