//! Limits the log lines that unknown callers can cause.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Burst of lines, after a while without any.
const BURST: f64 = 500.0;
/// Sustained lines per second.
const RATE: f64 = 50.0;

/// A token bucket of log lines.
#[derive(Debug)]
pub struct LineBudget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lines: f64,
    at: Duration,
    left_out: u64,
}

impl Default for LineBudget {
    fn default() -> Self {
        Self { state: Mutex::new(State { lines: BURST, at: Duration::ZERO, left_out: 0 }) }
    }
}

impl LineBudget {
    /// Whether to write a line at a time since a fixed start: the number of lines suppressed before it;
    /// `None` = suppress this one as well.
    pub fn take(&self, now: Duration) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_sub(state.at).as_secs_f64();
        state.lines = (state.lines + passed * RATE).min(BURST);
        state.at = state.at.max(now);
        if state.lines < 1.0 {
            state.left_out += 1;
            return None;
        }
        state.lines -= 1.0;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_its_rate_and_counted() {
        let budget = LineBudget::default();
        let written = |second: u64, lines: usize| {
            (0..lines).filter_map(|_| budget.take(Duration::from_secs(second))).collect::<Vec<_>>()
        };
        assert_eq!(written(0, 10_000), [0; 500]);
        let after = written(1, 10_000);
        assert_eq!((after.len(), after[0], after[1]), (50, 9_500, 0));
        // A minute refills no more than a burst.
        let later = written(61, 10_000);
        assert_eq!((later.len(), later[0]), (500, 9_950));
    }
}
