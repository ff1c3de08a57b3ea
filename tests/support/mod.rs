//! The ground that end-to-end suites stand on: a real control plane, users with rights of their
//! own, `kubectl`, and the real binary.
//!
//! A test is a plain `#[test]` function. Everything here blocks; what is async runs by
//! [`block_on`] on a runtime of the harness. A test takes [`Cluster::shared`] and a
//! [`Cluster::namespace`] in it, or, where it stops components or needs other flags of
//! Interlock than everybody, a [`Cluster::own`].
//!
//! Nothing outlives the test process, however it ends: the control plane stops when its input
//! is closed, and the kernel kills what was started through [`process::spawn`].

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub mod answering;
pub mod audit;
pub mod auth_server;
pub mod backup;
pub mod browser;
pub mod client;
pub mod cluster;
pub mod cut_off;
pub mod denying_policy;
pub mod envoy_gateway;
pub mod fake_kong;
pub mod gate;
pub mod ground;
pub mod held_back;
pub mod hostile_caller;
pub mod instances;
pub mod interlock;
pub mod lasting;
pub mod limitador;
pub mod namespace;
pub mod neighbour;
pub mod peers;
pub mod port;
pub mod process;
pub mod random;
pub mod remedy;
pub mod resources;
pub mod scripted;
pub mod service_path;
pub mod shared;
pub mod tenant;
pub mod testbed;
mod way;

pub use client::{Client, Output};
pub use cluster::Cluster;
pub use interlock::Interlock;
pub use namespace::Namespace;

/// Runtime of everything async in the harness; tests themselves are not async, so that a
/// blocking `kubectl` never holds up a webhook that runs in the same process.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
});

/// Runs a future to its end.
pub fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// Runs a future beside the test.
pub fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    RUNTIME.spawn(future)
}

/// Asks `condition` every 50 ms until it is `Ok`, and gives what it holds; fails the test
/// after `cap` with what was waited for and the last reason.
#[track_caller]
pub fn wait_until<T>(what: &str, cap: Duration, mut condition: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match condition() {
            Ok(value) => return value,
            Err(why) if began.elapsed() > cap => {
                panic!("gave up after {cap:?} waiting until {what}; last: {why}")
            }
            // Between two looks; how long a test takes does not hang on it.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Like [`wait_until`], for a condition that is only true or false.
#[track_caller]
pub fn wait_for(what: &str, cap: Duration, mut condition: impl FnMut() -> bool) {
    wait_until(what, cap, || condition().then_some(()).ok_or_else(|| "not yet".to_owned()));
}

/// Prints past libtest's capture, which hides the output of tests that pass.
pub fn announce(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Says which test is left out, and why.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    announce(&format!("skipped: {}: {why}", thread.name().unwrap_or("a test")));
}

/// A short random suffix for names.
pub fn suffix() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..6].to_owned()
}

/// Ports that are handed out here: below 32768, where Linux begins to give ports to the near ends
/// of connections, so that none takes one before, or between two starts of, the one it is for.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A port that nobody listens on right now, and that is handed out once.
pub fn free_port() -> u16 {
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(uuid::Uuid::new_v4().as_u64_pair().0 >> 1));
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let tries = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed) % PORTS.len() as u64);
    let ports =
        tries.take(PORTS.len()).map(|offset| PORTS.start + u16::try_from(offset).expect("within PORTS"));
    ports.into_iter().find(is_free).expect("a free port")
}

/// How often a test does what it counts: `make soak` asks for the long count.
pub fn count(short: usize, long: usize) -> usize {
    if std::env::var_os("INTERLOCK_SOAK").is_some() { long } else { short }
}
