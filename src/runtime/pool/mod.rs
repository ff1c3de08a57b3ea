//! Threads for work whose cost depends on the content of a package (rendering, merging, health): a fixed
//! number, of which one namespace has a share, so that no tenant's packages block the controllers or those
//! of another.
//!
//! Each namespace has a queue, and the namespaces take turns ([`fair_queue`]). A rendering is interrupted at its
//! limit of processor time, when its caller is gone, and when the process ends ([`deadline`]).

mod deadline;
mod fair_queue;
mod memory;

use std::any::Any;
use std::num::NonZero;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;

use self::fair_queue::FairQueue;
use self::memory::HeldBudget;
pub use self::memory::Hold;
use crate::telemetry::metrics::Metrics;
pub use deadline::Deadline;

/// With fewer threads, one namespace's share would leave none to others.
const THREADS_LEAST: usize = 2;

/// A longer wait for a thread would block a worker of a controller; the work is requeued. A namespace
/// within its share gets a thread long before.
const WAIT: Duration = Duration::from_secs(10);

/// Why work was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotDone {
    /// All threads, or the share of the namespace, were in use.
    #[error("no thread was free within {} s, as packages of this namespace render all the time", WAIT.as_secs())]
    Busy,
    /// The namespace's other passes hold as much as they may together.
    #[error("other plans of this namespace hold as many rendered objects as fit into memory")]
    Held,
    /// It started, and was interrupted.
    #[error("a template did not render in the time that it has")]
    Ended,
    /// The process ends.
    #[error("the process ends")]
    Stopped,
}

/// The threads and their queue.
pub struct Pool {
    shared: Arc<Shared>,
    limit: Duration,
    /// How long work may wait for a thread.
    wait: Duration,
    held: Arc<HeldBudget>,
    metrics: Arc<Metrics>,
}

struct Shared {
    turns: Mutex<FairQueue<Job>>,
    changed: Condvar,
    stopped: Arc<AtomicBool>,
}

/// Work, and whether its caller still waits.
struct Job {
    stage: Arc<AtomicU8>,
    work: Box<dyn FnOnce() + Send>,
}

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const GIVEN_UP: u8 = 2;

impl Shared {
    fn turns(&self) -> MutexGuard<'_, FairQueue<Job>> {
        // No work runs under the lock.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of a thread.
    fn work(&self) {
        let mut turns = self.turns();
        loop {
            let Some((namespace, job)) = turns.take() else {
                turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(turns);
            let waits =
                job.stage.compare_exchange(WAITING, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if waits && !self.stopped.load(Ordering::SeqCst) {
                (job.work)();
            }
            turns = self.turns();
            turns.done(&namespace);
            self.changed.notify_one();
        }
    }
}

/// Cancels the work when its caller is gone.
struct Asker {
    cancelled: Arc<AtomicBool>,
    stage: Arc<AtomicU8>,
}

impl Asker {
    /// Withdraws the work; returns whether it had not started.
    fn give_up(&self) -> bool {
        self.stage.compare_exchange(WAITING, GIVEN_UP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.give_up();
        self.cancelled.store(true, Ordering::SeqCst);
    }
}

impl Pool {
    /// Starts a thread for each core, at least two, of which one namespace may use half at the same time;
    /// `limit` is the longest processor time of one rendering.
    pub fn start(limit: Duration, metrics: Arc<Metrics>) -> std::io::Result<Arc<Self>> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::with_threads(cores.max(THREADS_LEAST), limit, WAIT, metrics)
    }

    fn with_threads(
        threads: usize,
        limit: Duration,
        wait: Duration,
        metrics: Arc<Metrics>,
    ) -> std::io::Result<Arc<Self>> {
        let shared = Arc::new(Shared {
            turns: Mutex::new(FairQueue::new(threads / 2)),
            changed: Condvar::new(),
            stopped: Arc::default(),
        });
        for i in 0..threads {
            let shared = shared.clone();
            std::thread::Builder::new().name(format!("render-{i}")).spawn(move || {
                make_way();
                shared.work();
            })?;
        }
        Ok(Arc::new(Self { shared, limit, wait, held: Arc::default(), metrics }))
    }

    /// Runs work for a namespace on a thread of the pool, with a deadline that interrupts it. A panic of
    /// the work resumes here.
    pub async fn run<T: Send + 'static>(
        &self,
        namespace: &str,
        work: impl FnOnce(&Deadline) -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        if self.shared.stopped.load(Ordering::SeqCst) {
            return Err(NotDone::Stopped);
        }
        let asker = Asker { cancelled: Arc::default(), stage: Arc::new(AtomicU8::new(WAITING)) };
        let deadline = Deadline::new(self.limit, [self.shared.stopped.clone(), asker.cancelled.clone()]);
        let (answer, mut answered) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
        let work = move || {
            let done = std::panic::catch_unwind(AssertUnwindSafe(|| work(&deadline)));
            let _ = answer.send(done);
        };
        let job = Job { stage: asker.stage.clone(), work: Box::new(work) };
        self.shared.turns().add(namespace, job);
        self.shared.changed.notify_one();
        let done = match tokio::time::timeout(self.wait, &mut answered).await {
            Ok(done) => done,
            Err(_) if asker.give_up() => {
                self.metrics.render_waited();
                return Err(NotDone::Busy);
            }
            // It is running; its own limit ends it.
            Err(_) => answered.await,
        };
        match done {
            // An interrupted result says nothing about the package.
            Ok(Ok(_)) if self.shared.stopped.load(Ordering::SeqCst) => Err(NotDone::Stopped),
            Ok(Ok(done)) => Ok(done),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(NotDone::Stopped),
        }
    }

    /// Accounts for the rendered bytes that a pass of this namespace holds.
    pub fn hold(&self, namespace: &str) -> Hold {
        Hold::new(self.held.clone(), namespace)
    }

    /// Interrupts running work, and starts no more.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
    }
}

/// Lowers the priority below the threads that serve requests. Where the system does not allow that, all
/// threads share the cores evenly.
#[cfg(target_os = "linux")]
fn make_way() {
    /// A third of the weight of a thread that serves requests or reconciles.
    const NICE: i32 = 5;
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!(%error, "a rendering thread keeps its priority");
    }
}

#[cfg(not(target_os = "linux"))]
fn make_way() {}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use go_template::Interrupt as _;

    use super::*;

    fn pool(limit: Duration, wait: Duration) -> Arc<Pool> {
        Pool::with_threads(2, limit, wait, Arc::new(Metrics::new())).unwrap()
    }

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(3600);

    fn spin(deadline: &Deadline) -> bool {
        deadline.begin();
        let start = Instant::now();
        while deadline.interrupted().is_none() {
            if start.elapsed() > Duration::from_secs(30) {
                return false;
            }
        }
        true
    }

    fn panics(_: &Deadline) {
        panic!("a package");
    }

    /// One namespace never uses more than its half, and another is served beside it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_namespace_that_spins_leaves_threads_to_others() {
        let pool = pool(SHORT, LONG);
        let spinning: Vec<_> = (0..8)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.run("bad", spin).await })
            })
            .collect();
        for _ in 0..50 {
            let began = Instant::now();
            assert_eq!(pool.run("good", |_| 1).await, Ok(1));
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        }
        assert!(!spinning[7].is_finished(), "eight times 200 ms on one thread are over too soon");
        for spinning in spinning {
            assert_eq!(spinning.await.unwrap(), Ok(true), "interrupted at its limit");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stop_and_a_loss_of_interest_interrupt() {
        let pool = pool(LONG, LONG);
        let (begun, begins) = mpsc::channel();
        let (ended, ends) = mpsc::channel();
        let work = |begun: mpsc::Sender<()>, ended: mpsc::Sender<bool>| {
            move |deadline: &Deadline| {
                let _ = begun.send(());
                let interrupted = spin(deadline);
                let _ = ended.send(interrupted);
            }
        };
        let begins = Arc::new(Mutex::new(begins));
        let started = |namespace: &'static str| {
            let (pool, work) = (pool.clone(), work(begun.clone(), ended.clone()));
            let running = tokio::spawn(async move { pool.run(namespace, work).await });
            begins.lock().unwrap().recv_timeout(Duration::from_secs(10)).unwrap();
            running
        };
        started("gone").abort();
        assert_eq!(ends.recv_timeout(Duration::from_secs(10)), Ok(true));
        let stopped = started("stopped");
        pool.stop();
        assert_eq!(ends.recv_timeout(Duration::from_secs(10)), Ok(true));
        assert_eq!(stopped.await.unwrap(), Err(NotDone::Stopped));
        assert_eq!(pool.run("later", |_| ()).await, Err(NotDone::Stopped));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_is_that_of_who_asked_and_the_thread_goes_on() {
        let pool = pool(SHORT, LONG);
        for _ in 0..4 {
            let pool = pool.clone();
            let panicked = tokio::spawn(async move { pool.run("ns", panics).await });
            assert!(panicked.await.unwrap_err().is_panic());
        }
        assert_eq!(pool.run("ns", |_| 1).await, Ok(1));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_waits_too_long_is_sent_away() {
        let pool = pool(LONG, SHORT);
        let (over, wait) = mpsc::channel::<()>();
        let (begun, begins) = oneshot::channel();
        let holding = pool.clone();
        let held = tokio::spawn(async move {
            let work = move |_: &Deadline| {
                let _ = begun.send(());
                let _ = wait.recv();
            };
            holding.run("ns", work).await
        });
        begins.await.unwrap();
        assert_eq!(pool.run("ns", |_| ()).await, Err(NotDone::Busy));
        drop(over);
        assert_eq!(held.await.unwrap(), Ok(()), "what was begun is waited for");
    }
}
