//! The open connections of a port: their table, and the means to close one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connections::{Bounds, ConnectionId, Connections};
use super::in_flight::Share;
use crate::telemetry::metrics::{Cap, Metrics};

/// Time between two attempts to add a connection while none can be evicted: slow ones become evictable
/// after a while, without an event.
const RETRY: Duration = Duration::from_millis(100);

/// The open connections of one port.
#[derive(Clone)]
pub struct OpenConnections(Arc<Shared>);

struct Shared {
    origin: Instant,
    metrics: Arc<Metrics>,
    /// A connection was closed, or has become idle.
    slot_freed: Notify,
    state: Mutex<State>,
}

struct State {
    table: Connections,
    /// Closes each connection.
    close: HashMap<ConnectionId, CancellationToken>,
}

impl OpenConnections {
    /// None yet.
    pub fn new(bounds: Bounds, metrics: Arc<Metrics>) -> Self {
        let state = State { table: Connections::new(bounds), close: HashMap::new() };
        let (origin, slot_freed) = (Instant::now(), Notify::new());
        Self(Arc::new(Shared { origin, metrics, slot_freed, state: Mutex::new(state) }))
    }

    /// Number of open connections.
    pub fn len(&self) -> usize {
        self.0.lock().table.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a connection, and evicts others above the limit; `None` where none can be evicted. `close` is cancelled when
    /// this one is evicted.
    pub fn open_now(
        &self,
        address: IpAddr,
        exempt: bool,
        close: &CancellationToken,
    ) -> Option<OpenConnection> {
        let id = self.0.open(address, exempt, close)?;
        self.0.metrics.connections_open(1);
        Some(OpenConnection {
            of: self.0.clone(),
            id,
            review: AtomicBool::new(false),
            held: Mutex::default(),
        })
    }

    /// The same once there is room.
    pub async fn open(&self, address: IpAddr, exempt: bool, close: CancellationToken) -> OpenConnection {
        loop {
            let slot_freed = self.0.slot_freed.notified();
            if let Some(open) = self.open_now(address, exempt, &close) {
                return open;
            }
            let _ = tokio::time::timeout(RETRY, slot_freed).await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn open(&self, address: IpAddr, exempt: bool, close: &CancellationToken) -> Option<ConnectionId> {
        let mut state = self.lock();
        let opened = state.table.open(address, exempt, self.now())?;
        state.close.insert(opened.id, close.clone());
        state.evict(&opened.for_total, Cap::Connections, &self.metrics);
        state.evict(&opened.for_address, Cap::ConnectionsPerAddress, &self.metrics);
        Some(opened.id)
    }
}

impl State {
    fn evict(&mut self, closed: &[ConnectionId], cap: Cap, metrics: &Metrics) {
        for id in closed {
            metrics.refused(cap);
            if let Some(close) = self.close.remove(id) {
                close.cancel();
            }
        }
    }
}

/// One open connection; closed when dropped.
pub struct OpenConnection {
    of: Arc<Shared>,
    id: ConnectionId,
    /// Whether the request in flight is a review.
    review: AtomicBool,
    /// The memory of the answer, until it is sent.
    held: Mutex<Option<Share>>,
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenConnection({:?})", self.id)
    }
}

impl OpenConnection {
    /// Its peer is an API server: it is never evicted.
    pub fn exempt(&self) {
        self.of.lock().table.exempt(self.id);
    }

    /// Whether its peer may use it for the next review.
    pub fn is_pooled(&self) -> bool {
        self.of.lock().table.is_pooled(self.id, self.of.now())
    }

    /// The head of a request has arrived.
    pub fn reading(&self) {
        self.review.store(false, Ordering::Relaxed);
        self.of.lock().table.reading(self.id, self.of.now());
    }

    /// The body of the request has arrived.
    pub fn answering(&self) {
        self.of.lock().table.answering(self.id, self.of.now());
    }

    /// The request is an answered review, whose answer takes this share of the memory.
    pub fn set_review(&self, share: Share) {
        self.review.store(true, Ordering::Relaxed);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(share);
    }

    /// The answer is being sent.
    pub fn sending(&self) {
        self.of.lock().table.sending(self.id, self.of.now());
    }

    /// Some of the answer was taken.
    pub fn progressed(&self) {
        self.of.lock().table.progressed(self.id, self.of.now());
    }

    /// The answer has been sent.
    pub fn answered(&self) {
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
        let review = self.review.load(Ordering::Relaxed);
        let mut state = self.of.lock();
        let closed = state.table.answered(self.id, review, self.of.now());
        state.evict(&closed, Cap::ConnectionsPerAddress, &self.of.metrics);
        drop(state);
        self.of.slot_freed.notify_waiters();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.table.close(self.id);
        state.close.remove(&self.id);
        drop(state);
        self.of.metrics.connections_open(-1);
        self.of.slot_freed.notify_waiters();
    }
}
