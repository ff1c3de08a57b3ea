//! Every limit of the webhook port, with its reason; a metric counts each hit.

use std::time::Duration;

use super::connections::Bounds;
use super::waiting::{Amount, WaitBounds};

/// Two objects of 3 MiB, the largest an API server takes, and the review around them.
pub const BODY_BYTES: usize = 7 * 1024 * 1024;

/// Limits of one connection and of all of them together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections; above it, a new one evicts another.
    pub connections: usize,
    /// Connections of one address without a request in flight. NAT can merge the addresses of several
    /// callers, so more than an API server's pool must fit.
    pub connections_per_address: usize,
    /// How long a connection is kept after its last review: the API server pools it for 90 s.
    pub pooled: Duration,
    /// From `accept` to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its headers.
    pub headers: Duration,
    /// For the whole body of a request.
    pub body: Duration,
    /// For the rest of a refused body, which is read and discarded.
    pub discard: Duration,
    /// From the end of the headers to the last byte of the answer.
    pub exchange: Duration,
    /// A connection without a request. The API server pools connections for 90 s and does not retry a POST
    /// on one that was closed meanwhile, so it must close first.
    pub idle: Duration,
    /// The same for a connection that never carried a request, while more than half of
    /// [`Self::connections`] are open: idle clients are closed early, but for those of addresses with reviews.
    pub idle_unused_when_crowded: Duration,
    /// Size of one body.
    pub body_bytes: usize,
    /// Size of all bodies and answers in memory.
    pub in_flight_bytes: usize,
    /// Those of one address that is not known to be an API server's.
    pub in_flight_bytes_per_address: usize,
    /// The reviews among them that wait for the cache: less than the total, so that others get answers, and
    /// for one namespace a small part of that.
    pub waiting: WaitBounds,
}

impl Limits {
    /// The limits of the connection table.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            total: self.connections,
            per_address: self.connections_per_address,
            opening: self.handshake,
            reading: READING,
            answering: ANSWERING,
            sending: SENDING,
            busy_per_address: self.connections / 4,
            pooled: self.pooled,
        }
    }
}

/// A body that takes longer to arrive may lose its connection to another one.
const READING: Duration = Duration::from_secs(1);
/// An answer of which nothing is taken for longer may lose its connection to another one.
const SENDING: Duration = Duration::from_secs(1);
/// `timeoutSeconds` of a webhook is at most 30: its caller has given up.
const ANSWERING: Duration = Duration::from_secs(30);

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_address: 64,
            pooled: Duration::from_secs(95),
            handshake: Duration::from_secs(5),
            headers: Duration::from_secs(10),
            body: Duration::from_secs(10),
            discard: Duration::from_secs(2),
            exchange: Duration::from_secs(45),
            idle: Duration::from_secs(150),
            idle_unused_when_crowded: Duration::from_secs(10),
            body_bytes: BODY_BYTES,
            in_flight_bytes: 64 * 1024 * 1024,
            in_flight_bytes_per_address: 32 * 1024 * 1024,
            waiting: WaitBounds {
                per_namespace: Amount { reviews: 64, bytes: 4 * 1024 * 1024 },
                total: Amount { reviews: 256, bytes: 32 * 1024 * 1024 },
            },
        }
    }
}
