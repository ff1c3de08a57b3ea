//! Limits the log lines that unknown callers can cause: those of one address to half of all, so that a flood hides no
//! lines about other addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Burst of lines, after a while without any.
const BURST: f64 = 500.0;
/// Sustained lines per second.
const RATE: f64 = 50.0;
/// What of both one address may have.
const SHARE: f64 = 0.5;
/// Addresses with a share of their own; further ones have one together.
const ADDRESSES: usize = 256;
/// After which an address without lines is forgotten: its share is whole again.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Token buckets of log lines: that of all, and one for each address.
#[derive(Debug)]
pub struct LineBudget(Mutex<State>);

#[derive(Debug)]
struct State {
    all: Bucket,
    by_address: HashMap<Option<IpAddr>, Bucket>,
    left_out: u64,
}

#[derive(Debug)]
struct Bucket {
    lines: f64,
    at: Duration,
    share: f64,
}

impl Bucket {
    fn full(share: f64, at: Duration) -> Self {
        Self { lines: BURST * share, at, share }
    }

    fn has_line(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.lines = (self.lines + passed * RATE * self.share).min(BURST * self.share);
        self.at = self.at.max(now);
        self.lines >= 1.0
    }
}

impl Default for LineBudget {
    fn default() -> Self {
        let all = Bucket::full(1.0, Duration::ZERO);
        Self(Mutex::new(State { all, by_address: HashMap::new(), left_out: 0 }))
    }
}

impl LineBudget {
    /// Whether to write a line about an address at a time since a fixed start: the number of lines suppressed before it;
    /// `None` = suppress this one as well.
    pub fn take(&self, address: Option<IpAddr>, now: Duration) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { all, by_address, left_out } = &mut *state;
        if by_address.len() >= ADDRESSES && !by_address.contains_key(&address) {
            by_address.retain(|_, bucket| now.saturating_sub(bucket.at) < FORGOTTEN);
        }
        let of =
            if by_address.len() < ADDRESSES || by_address.contains_key(&address) { address } else { None };
        let own = by_address.entry(of).or_insert_with(|| Bucket::full(SHARE, now));
        if !(own.has_line(now) & all.has_line(now)) {
            *left_out += 1;
            return None;
        }
        own.lines -= 1.0;
        all.lines -= 1.0;
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn a_flood_is_cut_to_its_rate_and_counted() {
        let budget = LineBudget::default();
        let written = |second: u64, lines: usize| {
            (0..lines)
                .filter_map(|_| budget.take(address(1), Duration::from_secs(second)))
                .collect::<Vec<_>>()
        };
        assert_eq!(written(0, 10_000), [0; 250]);
        let after = written(1, 10_000);
        assert_eq!((after.len(), after[0], after[1]), (25, 9_750, 0));
        // A minute refills no more than a burst.
        let later = written(61, 10_000);
        assert_eq!((later.len(), later[0]), (250, 9_975));
    }

    #[test]
    fn a_flood_of_one_address_hides_nothing_of_another() {
        let budget = LineBudget::default();
        for second in 0..100 {
            for _ in 0..1_000 {
                budget.take(address(1), Duration::from_secs(second));
            }
            for _ in 0..10 {
                assert!(budget.take(address(2), Duration::from_secs(second)).is_some(), "second {second}");
            }
        }
    }

    #[test]
    fn many_addresses_have_the_rate_of_all() {
        let budget = LineBudget::default();
        let mut lines = 0;
        for n in 0..10_000_u32 {
            let from = Some(IpAddr::from(n.to_be_bytes()));
            lines += usize::from(budget.take(from, Duration::ZERO).is_some());
        }
        assert_eq!(lines, 500);
        assert!(budget.0.lock().unwrap().by_address.len() <= ADDRESSES + 1);
    }
}
