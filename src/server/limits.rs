//! Every bound of the webhook port, with its reason; hitting one is a metric.

use std::time::Duration;

/// Two objects of 3 MiB, the largest an API server takes, and the review around them.
pub const BODY_BYTES: usize = 7 * 1024 * 1024;

/// What may be spent on one connection and on all of them together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections; one more waits in the kernel's backlog until one is closed.
    pub connections: usize,
    /// From `accept` to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its headers.
    pub headers: Duration,
    /// For the whole body of a request.
    pub body: Duration,
    /// For what is still read, and thrown away, of a body that is refused.
    pub discard: Duration,
    /// From the end of the headers to the last byte of the answer.
    pub exchange: Duration,
    /// A connection without a request. The API server pools connections for 90 s and does not
    /// repeat a POST on one that was closed under it, so it must be the first to let go.
    pub idle: Duration,
    /// The same for a connection that never carried a request, while more than half of
    /// [`Self::connections`] are taken: whoever keeps us busy by doing nothing is let go early.
    pub idle_unused_when_crowded: Duration,
    /// Size of one body.
    pub body_bytes: usize,
    /// Size of all bodies in memory.
    pub in_flight_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshake: Duration::from_secs(5),
            headers: Duration::from_secs(10),
            body: Duration::from_secs(10),
            discard: Duration::from_secs(2),
            exchange: Duration::from_secs(45),
            idle: Duration::from_secs(150),
            idle_unused_when_crowded: Duration::from_secs(10),
            body_bytes: BODY_BYTES,
            in_flight_bytes: 64 * 1024 * 1024,
        }
    }
}
