//! One webhook port with a scripted judge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use interlock::admission::{Answer, BadReview, Door, Patience, Record, Reply, VerdictKind};
use interlock::api::object::NamespacedName;
use interlock::cluster::certificates::KeyPem;
use interlock::cluster::certificates::authority::{authority, leaf};
use interlock::server::accept::Port;
use interlock::server::doors::{self, Doors, Judge};
use interlock::server::health::{self, Health};
use interlock::server::in_flight::InFlight;
use interlock::server::limits::Limits;
use interlock::server::shutdown::Shutdown;
use interlock::server::tls::{Pair, Shown};
use interlock::telemetry::metrics::Metrics;
use interlock::telemetry::readiness::Readiness;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::watch;
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

/// Decides as the body says: `panic`, `bad`, `wait` (until [`World::arrive`]), else `allowed`.
#[derive(Default)]
struct Scripted {
    arrived: AtomicBool,
    /// How often somebody was told to wait.
    told: AtomicUsize,
}

impl Judge for Scripted {
    fn judge<'a>(&self, _: Door, body: &'a [u8], patience: Patience) -> Result<Answer<'a>, BadReview> {
        let script = String::from_utf8_lossy(body);
        assert!(!script.starts_with("panic"), "as the script says");
        if script.starts_with("bad") {
            return Err(BadReview("this is no review".to_owned()));
        }
        if script.starts_with("wait") && patience == Patience::Wait && !self.arrived.load(Ordering::SeqCst) {
            self.told.fetch_add(1, Ordering::SeqCst);
            return Ok(Answer::Wait(NamespacedName::new("a", "b")));
        }
        let word = if patience == Patience::Exhausted { "exhausted" } else { "allowed" };
        Ok(Answer::Done(Reply { body: word.into(), record: record() }))
    }
}

fn record() -> Record<'static> {
    Record {
        uid: "u".into(),
        operation: "UPDATE".into(),
        group: "kudo.dev".into(),
        kind: "Instance".into(),
        namespace: "a".into(),
        name: "b".into(),
        user: "alice".into(),
        rules: Vec::new(),
        admitted: Vec::new(),
        verdict: VerdictKind::Allowed,
        plan: None,
        dry_run: false,
    }
}

pub struct World {
    pub address: SocketAddr,
    pub authority: KeyPem,
    pub metrics: Arc<Metrics>,
    pub readiness: Readiness,
    pub shutdown: Shutdown,
    pub shown: Shown,
    pub served: JoinHandle<()>,
    judge: Arc<Scripted>,
    changes: watch::Sender<u64>,
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

pub async fn world(limits: Limits) -> World {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // The panics here are meant.
    std::panic::set_hook(Box::new(|_| {}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (metrics, readiness) = (Arc::new(Metrics::new()), Readiness::new());
    let (shutdown, shown, judge) = (Shutdown::new(), Shown::new(), Arc::new(Scripted::default()));
    let (changes, ticks) = watch::channel(0);
    let health = Health { readiness: readiness.clone(), shutdown: shutdown.clone() };
    let app = health::router(health).merge(doors::router(Doors {
        judge: judge.clone(),
        changes: ticks,
        readiness: readiness.clone(),
        limits,
        in_flight: InFlight::new(limits.in_flight_bytes, metrics.clone()),
        metrics: metrics.clone(),
    }));
    let port = Port {
        app,
        tls: Some(shown.server_config()),
        limits,
        shutdown: shutdown.clone(),
        metrics: metrics.clone(),
    };
    let served = tokio::spawn(port.serve(listener, Duration::from_secs(5)));
    let authority = authority(Timestamp::now(), Duration::from_secs(3600)).unwrap();
    let world = World { address, authority, metrics, readiness, shutdown, shown, served, judge, changes };
    world.rotate();
    world
}

impl World {
    /// Shows a new leaf of the same CA.
    pub fn rotate(&self) {
        let names = ["hook.here.svc".to_owned()];
        let leaf = leaf(&self.authority, &names, Timestamp::now(), Duration::from_secs(600)).unwrap();
        self.shown.show(Pair::from_pem(leaf.certificate.as_bytes(), leaf.key.as_bytes()).unwrap());
    }

    /// Waits until somebody was told that many times to wait.
    pub async fn is_waited_for(&self, times: usize) {
        let told = async || self.judge.told.load(Ordering::SeqCst) >= times;
        until("a review is looked at and waits", told).await;
    }

    /// What `wait` waits for comes into the cache.
    pub fn arrive(&self) {
        self.judge.arrived.store(true, Ordering::SeqCst);
        self.tick();
    }

    /// Something else comes into the cache.
    pub fn tick(&self) {
        self.changes.send_modify(|n| *n += 1);
    }
}
