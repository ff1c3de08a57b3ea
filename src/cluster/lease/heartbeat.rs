//! The heartbeat of the workers under a lease: the runtime of the workers beats, the renewal of the lease
//! checks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Timing;

/// Beats within the longest allowed age.
const BEATS_PER_LIMIT: u32 = 10;

/// Longest time between two beats of a live runtime.
const MOST: Duration = Duration::from_secs(10);
/// Tests have leases of a few seconds; on a busy machine a live thread may wait for a core longer than
/// those would allow.
const LEAST: Duration = Duration::from_secs(5);

/// Shared between the beating task and the checking one.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    start: Instant,
    /// Milliseconds from the start to the last beat.
    last: Arc<AtomicU64>,
    /// An older beat means that the workers are stuck.
    limit: Duration,
}

impl Heartbeat {
    /// A heartbeat that has just beaten, with the limit for this lease timing.
    pub fn new(timing: Timing) -> Self {
        Self {
            start: Instant::now(),
            last: Arc::new(AtomicU64::new(0)),
            limit: timing.renew_deadline.clamp(LEAST, MOST),
        }
    }

    /// Beats now.
    pub fn beat(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Beats for as long as the runtime that this is spawned on runs its tasks.
    pub async fn beat_forever(self) {
        loop {
            self.beat();
            tokio::time::sleep(self.limit / BEATS_PER_LIMIT).await;
        }
    }

    /// How old the last beat is.
    pub fn age(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }

    /// The longest allowed age.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether it is younger than that.
    pub fn is_alive(&self) -> bool {
        self.age() < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_without_a_free_thread_beats_no_more() {
        let timing = Timing { renew_deadline: Duration::from_secs(10), ..Timing::default() };
        let heartbeat = Heartbeat { limit: Duration::from_millis(300), ..Heartbeat::new(timing) };
        assert_eq!(Heartbeat::new(timing).limit(), Duration::from_secs(10));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(heartbeat.clone().beat_forever());
        std::thread::sleep(Duration::from_millis(600));
        assert!(heartbeat.is_alive(), "{:?}", heartbeat.age());
        let (over, wait) = std::sync::mpsc::channel::<()>();
        runtime.spawn(async move { wait.recv().is_ok() });
        let stopped = Instant::now();
        while heartbeat.is_alive() {
            assert!(stopped.elapsed() < Duration::from_secs(10), "it beats though nothing runs");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(over);
        while !heartbeat.is_alive() {
            assert!(stopped.elapsed() < Duration::from_secs(10), "it does not beat again");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
