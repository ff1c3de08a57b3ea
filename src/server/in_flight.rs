//! Limits the bytes of all bodies and answers in memory, and those of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::limits::Limits;
use crate::telemetry::metrics::Metrics;

/// Bytes in memory, and their limits.
#[derive(Clone)]
pub struct InFlight(Arc<Shared>);

struct Shared {
    used: Mutex<Used>,
    /// A share was given back.
    freed: Notify,
    limit: usize,
    per_address: usize,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Used {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// Bytes of one exchange; released when dropped.
pub struct Share {
    of: InFlight,
    /// That of the peer, unless it is an API server's.
    address: Option<IpAddr>,
    bytes: usize,
}

impl InFlight {
    /// No bytes in memory yet.
    pub fn new(limits: &Limits, metrics: Arc<Metrics>) -> Self {
        let (limit, per_address) = (limits.in_flight_bytes, limits.in_flight_bytes_per_address);
        Self(Arc::new(Shared { used: Mutex::default(), freed: Notify::new(), limit, per_address, metrics }))
    }

    /// A share of no bytes, for a peer of this address; `None` for an API server, which only the limit of all holds.
    pub fn share(&self, address: Option<IpAddr>) -> Share {
        Share { of: self.clone(), address, bytes: 0 }
    }

    /// Whether more than half is used, so that what stalls gives way.
    pub fn is_crowded(&self) -> bool {
        self.used().all > self.0.limit / 2
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        // Changes of the counts do not panic half-way.
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn give_back(&mut self, address: Option<IpAddr>, bytes: usize) {
        self.all -= bytes;
        if let Some(address) = address
            && let Some(of) = self.by_address.get_mut(&address)
        {
            *of -= bytes;
            if *of == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

impl Share {
    /// Whether it is that of a peer that is known to be an API server.
    pub fn is_of_api_server(&self) -> bool {
        self.address.is_none()
    }

    /// Reserves more bytes, unless a limit would be exceeded.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let shared = &self.of.0;
        let mut used = self.of.used();
        let fits = |used: usize, limit: usize| used.checked_add(bytes).is_some_and(|grown| grown <= limit);
        let own =
            self.address.map_or(0, |address| used.by_address.get(&address).copied().unwrap_or_default());
        if !fits(used.all, shared.limit) || self.address.is_some() && !fits(own, shared.per_address) {
            return false;
        }
        used.all += bytes;
        if let Some(address) = self.address {
            *used.by_address.entry(address).or_default() += bytes;
        }
        self.bytes += bytes;
        shared.metrics.in_flight_bytes(used.all);
        true
    }

    /// The same, once others have given back what they had.
    pub async fn grow_soon(&mut self, bytes: usize) {
        let of = self.of.clone();
        loop {
            let freed = of.0.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.grow(bytes) {
                return;
            }
            freed.await;
        }
    }

    /// Gives back what is more than this.
    pub fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.give_back(less);
    }

    fn give_back(&mut self, bytes: usize) {
        let mut used = self.of.used();
        used.give_back(self.address, bytes);
        self.bytes -= bytes;
        self.of.0.metrics.in_flight_bytes(used.all);
        drop(used);
        self.of.0.freed.notify_waiters();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_flight(limit: usize, per_address: usize) -> InFlight {
        let limits =
            Limits { in_flight_bytes: limit, in_flight_bytes_per_address: per_address, ..Limits::default() };
        InFlight::new(&limits, Arc::new(Metrics::new()))
    }

    #[test]
    fn bytes_of_one_body_are_denied_to_another() {
        let in_flight = in_flight(10, 10);
        let mut one = in_flight.share(None);
        let mut other = in_flight.share(None);
        assert!(one.grow(6));
        assert!(!other.grow(5));
        assert!(other.grow(4));
        drop(one);
        assert!(other.grow(6));
        assert!(!other.grow(usize::MAX));
        other.shrink_to(3);
        assert!(in_flight.share(None).grow(7));
    }

    #[test]
    fn an_address_has_a_share() {
        let in_flight = in_flight(10, 6);
        let address = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        let (mut one, mut two) = (in_flight.share(address(1)), in_flight.share(address(1)));
        assert!(one.grow(5) && !two.grow(2) && two.grow(1));
        assert!(in_flight.share(address(2)).grow(4));
        drop((one, two));
        assert!(in_flight.share(address(1)).grow(6));
        assert!(in_flight.0.used.lock().unwrap().by_address.is_empty());
    }

    #[tokio::test]
    async fn who_waits_is_told() {
        let in_flight = in_flight(10, 10);
        let (mut one, mut two) = (in_flight.share(None), in_flight.share(None));
        assert!(one.grow(10));
        let (mut waits, frees) = (std::pin::pin!(two.grow_soon(4)), async { drop(one) });
        assert!(futures::poll!(&mut waits).is_pending());
        frees.await;
        waits.await;
    }
}
