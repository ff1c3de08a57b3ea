//! The three tokio runtimes of the process, each with threads of its own.
//!
//! | runtime | its tasks |
//! |---|---|
//! | `serving` | ports, reviews, health, metrics, certificates, the Lease, signals |
//! | `watching` | watches and their caches: the store, the settings, the guards |
//! | `reconciling` | the controllers and their writes |
//!
//! Work whose cost depends on a tenant's objects runs on the last two, and in the pool of
//! [`crate::runtime::pool`]: the system's scheduler shares the cores between threads, so that a
//! spinning thread delays no answer.

use std::num::NonZero;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::telemetry::metrics::Metrics;
use crate::telemetry::panics::caught;

/// A single thread would block all answers while it handles a large review, for milliseconds.
const SERVING_MIN_THREADS: usize = 2;

/// At most this many threads decode events: they share one lock on the store.
const WATCHING_MAX_THREADS: usize = 4;

/// Blocking file access and name look-ups delay the exit for at most this long.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// First pause before a part that panicked is restarted; doubled with each panic.
const RESTART_INITIAL: Duration = Duration::from_secs(1);
/// Longest such pause.
const RESTART_MAX: Duration = Duration::from_secs(60);

/// The runtimes, owned by the main thread.
pub struct Runtimes {
    serving: Runtime,
    watching: Runtime,
    reconciling: Runtime,
}

/// The runtimes of the parts of the process.
#[derive(Clone, Debug)]
pub struct Handles {
    /// Feeds the store.
    pub watching: Handle,
    /// Runs the controllers.
    pub reconciling: Handle,
}

impl Runtimes {
    /// Starts the threads.
    pub fn start() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Ok(Self {
            serving: runtime("serving", cores.max(SERVING_MIN_THREADS))?,
            watching: runtime("watching", cores.min(WATCHING_MAX_THREADS))?,
            reconciling: runtime("reconciling", cores)?,
        })
    }

    /// The runtimes other than the serving one.
    pub fn handles(&self) -> Handles {
        Handles { watching: self.watching.handle().clone(), reconciling: self.reconciling.handle().clone() }
    }

    /// Runs the process on the serving runtime until its end; then drops the other runtimes without
    /// waiting, as a package may hold their threads for any time.
    pub fn run<T>(self, process: impl Future<Output = T>) -> T {
        let result = self.serving.block_on(process);
        self.reconciling.shutdown_background();
        self.watching.shutdown_background();
        self.serving.shutdown_timeout(EXIT_GRACE);
        result
    }
}

fn runtime(name: &str, threads: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build()
}

/// Runs a part of the controllers, and restarts it after a panic; others, and the server, continue.
pub async fn restarted<W: Future>(
    part: &'static str,
    metrics: &Metrics,
    mut start: impl FnMut() -> W,
) -> W::Output {
    let mut pause = RESTART_INITIAL;
    loop {
        let panicked = match caught(start()).await {
            Ok(output) => return output,
            Err(panicked) => panicked,
        };
        metrics.controller_panicked();
        tracing::error!(part, %panicked, "a controller panicked; restarting it in {pause:?}");
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RESTART_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::time::Instant;

    use super::*;

    /// Every thread of the other runtimes spins or panics; the server still answers, and the process ends.
    #[test]
    fn spinning_threads_elsewhere_do_not_delay_answers() {
        let runtimes = Runtimes::start().unwrap();
        let Handles { watching, reconciling } = runtimes.handles();
        let over = Arc::new(AtomicBool::new(false));
        let (begun, begins) = mpsc::channel();
        for _ in 0..64 {
            let (over, begun) = (over.clone(), begun.clone());
            reconciling.spawn(async move {
                let _ = begun.send(());
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            watching.spawn(async { panic!("an object of somebody's") });
        }
        begins.recv().unwrap();
        let began = Instant::now();
        let answers = runtimes.run(async {
            let mut answers = 0;
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                answers += tokio::spawn(async { 1 }).await.unwrap();
            }
            answers
        });
        let took = began.elapsed();
        over.store(true, Ordering::Relaxed);
        assert_eq!(answers, 20);
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_panics_is_started_again() {
        let metrics = Metrics::new();
        let mut starts = 0;
        let ended = restarted("a part", &metrics, || {
            starts += 1;
            let start = starts;
            async move { if start < 4 { panic!("start {start}") } else { start } }
        });
        assert_eq!(ended.await, 4);
        assert!(metrics.encode(0).contains("interlock_controller_panics_total 3"), "{}", metrics.encode(0));
    }
}
