//! Interrupts a rendering: after too much processor time, or when its result is no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use go_template::{Interrupt, Interrupted};
use interlock_kudo::package::functions::{SHUTDOWN, TIME_LIMIT};

/// The deadline of work on one thread. It counts processor time, so that other load on the machine
/// interrupts nothing.
#[derive(Debug)]
pub struct Deadline {
    limit: Duration,
    /// Processor time of the thread when the rendering began, in nanoseconds.
    began: AtomicU64,
    /// Any of these ends the work.
    ends: [Arc<AtomicBool>; 2],
}

impl Deadline {
    /// A deadline of its own, for work that nothing else ends.
    pub fn alone(limit: Duration) -> Self {
        Self::new(limit, [Arc::default(), Arc::default()])
    }

    pub(super) fn new(limit: Duration, ends: [Arc<AtomicBool>; 2]) -> Self {
        Self { limit, began: AtomicU64::new(0), ends }
    }
}

impl Interrupt for Deadline {
    fn begin(&self) {
        self.began.store(nanoseconds(processor_time()), Ordering::Relaxed);
    }

    fn interrupted(&self) -> Option<Interrupted> {
        if self.ends.iter().any(|end| end.load(Ordering::Relaxed)) {
            return Some(SHUTDOWN);
        }
        let spent = nanoseconds(processor_time()).saturating_sub(self.began.load(Ordering::Relaxed));
        (Duration::from_nanos(spent) >= self.limit).then_some(TIME_LIMIT)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time that this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_of_the_processor_counts_and_each_rendering_has_its_own() {
        let end = Arc::new(AtomicBool::new(false));
        let deadline = Deadline::new(Duration::from_millis(50), [end.clone(), Arc::default()]);
        deadline.begin();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(deadline.interrupted(), None, "a thread that sleeps uses no processor");
        let spin = || {
            let start = std::time::Instant::now();
            while deadline.interrupted().is_none() {
                assert!(start.elapsed() < Duration::from_secs(30), "never interrupted");
            }
        };
        spin();
        assert_eq!(deadline.interrupted(), Some(TIME_LIMIT));
        deadline.begin();
        assert_eq!(deadline.interrupted(), None);
        end.store(true, Ordering::Relaxed);
        assert_eq!(deadline.interrupted(), Some(SHUTDOWN));
    }
}
