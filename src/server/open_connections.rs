//! The open connections of a port: the table of them, and the means to close one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connections::{Bounds, ConnectionId, Connections};
use crate::telemetry::metrics::{Cap, Metrics};

/// Time between two tries to take in a connection while none can give way: what is slow gives way
/// after a while, and no event says so.
const RETRY: Duration = Duration::from_millis(100);

/// The open connections of one port.
#[derive(Clone)]
pub struct OpenConnections(Arc<Shared>);

struct Shared {
    origin: Instant,
    metrics: Arc<Metrics>,
    /// A connection was closed, or has nothing to do.
    room: Notify,
    state: Mutex<State>,
}

struct State {
    table: Connections,
    /// How each is told to close.
    close: HashMap<ConnectionId, CancellationToken>,
}

impl OpenConnections {
    /// None yet.
    pub fn new(bounds: Bounds, metrics: Arc<Metrics>) -> Self {
        let state = State { table: Connections::new(bounds), close: HashMap::new() };
        let (origin, room) = (Instant::now(), Notify::new());
        Self(Arc::new(Shared { origin, metrics, room, state: Mutex::new(state) }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().table.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in a connection, and closes others where they are too many; waits where none of them
    /// can give way. `close` is cancelled when this one gives way.
    pub async fn open(&self, address: IpAddr, exempt: bool, close: CancellationToken) -> OpenConnection {
        let mut waited = false;
        loop {
            let room = self.0.room.notified();
            if let Some(id) = self.0.open(address, exempt, &close) {
                self.0.metrics.connections_open(1);
                return OpenConnection { of: self.0.clone(), id, review: AtomicBool::new(false) };
            }
            if !waited {
                self.0.metrics.refused(Cap::Connections);
                waited = true;
            }
            let _ = tokio::time::timeout(RETRY, room).await;
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
        state.give_way(&opened.for_total, Cap::Connections, &self.metrics);
        state.give_way(&opened.for_address, Cap::ConnectionsPerAddress, &self.metrics);
        Some(opened.id)
    }
}

impl State {
    fn give_way(&mut self, closed: &[ConnectionId], cap: Cap, metrics: &Metrics) {
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
    /// Whether the request under way is a review.
    review: AtomicBool,
}

impl std::fmt::Debug for OpenConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OpenConnection({:?})", self.id)
    }
}

impl OpenConnection {
    /// Its peer is an API server: it gives way to none.
    pub fn exempt(&self) {
        self.of.lock().table.exempt(self.id);
    }

    /// The head of a request has come.
    pub fn reading(&self) {
        self.review.store(false, Ordering::Relaxed);
        self.of.lock().table.reading(self.id, self.of.now());
    }

    /// The body of the request has come.
    pub fn answering(&self) {
        self.of.lock().table.answering(self.id, self.of.now());
    }

    /// The request is a review that is answered.
    pub fn carries_a_review(&self) {
        self.review.store(true, Ordering::Relaxed);
    }

    /// The answer has been sent.
    pub fn answered(&self) {
        let review = self.review.load(Ordering::Relaxed);
        let mut state = self.of.lock();
        let closed = state.table.answered(self.id, review, self.of.now());
        state.give_way(&closed, Cap::ConnectionsPerAddress, &self.of.metrics);
        drop(state);
        self.of.room.notify_waiters();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.table.close(self.id);
        state.close.remove(&self.id);
        drop(state);
        self.of.metrics.connections_open(-1);
        self.of.room.notify_waiters();
    }
}
