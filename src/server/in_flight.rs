//! Limits the bytes of all bodies in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::telemetry::metrics::Metrics;

/// Bytes in memory, and their limit.
#[derive(Clone)]
pub struct InFlight {
    used: Arc<AtomicUsize>,
    limit: usize,
    metrics: Arc<Metrics>,
}

/// Bytes of one body; released when dropped.
pub struct Share {
    of: InFlight,
    bytes: usize,
}

impl InFlight {
    /// No bytes in memory yet.
    pub fn new(limit: usize, metrics: Arc<Metrics>) -> Self {
        Self { used: Arc::default(), limit, metrics }
    }

    /// A share of no bytes.
    pub fn share(&self) -> Share {
        Share { of: self.clone(), bytes: 0 }
    }
}

impl Share {
    /// Reserves more bytes, unless all bodies together would exceed the limit.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let grown = self.of.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.of.limit)
        });
        if let Ok(before) = grown {
            self.bytes += bytes;
            self.of.metrics.in_flight_bytes(before + bytes);
        }
        grown.is_ok()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let before = self.of.used.fetch_sub(self.bytes, Ordering::AcqRel);
        self.of.metrics.in_flight_bytes(before - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_body_are_denied_to_another() {
        let in_flight = InFlight::new(10, Arc::new(Metrics::new()));
        let mut one = in_flight.share();
        let mut other = in_flight.share();
        assert!(one.grow(6));
        assert!(!other.grow(5));
        assert!(other.grow(4));
        drop(one);
        assert!(other.grow(6));
        assert!(!other.grow(usize::MAX));
    }
}
