//! The table of open connections: which of them a new one evicts.
//!
//! A new connection is accepted, and above a limit another one is closed for it. HTTP/1.1 has one
//! connection for each review in flight, and the API server may have hundreds, so the limit for an address
//! counts its connections without a request. A connection that has carried a review is presumably the API
//! server's: it pools idle connections for 90 s and a POST on one that is being closed may be lost, so such
//! a connection is kept for [`Bounds::pooled`] after its last review.
//!
//! The table knows no socket and no clock; `now` is the time since the port opened.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// The limits of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Open connections.
    pub total: usize,
    /// Connections of one address without a request in flight.
    pub per_address: usize,
    /// Time for the handshake and the first request, before a connection counts as unused.
    pub opening: Duration,
    /// Time for a body to arrive before its connection may be evicted.
    pub reading: Duration,
    /// Time for the decision. The API server waits at most 30 s for a webhook.
    pub answering: Duration,
    /// Time in which nothing of an answer is taken, before its connection may be evicted.
    pub sending: Duration,
    /// Connections of one address with a request in flight, above which any of them may be evicted where nothing else
    /// makes room.
    pub busy_per_address: usize,
    /// How long a connection is kept after its last review.
    pub pooled: Duration,
}

/// Identifies a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The handshake, or the wait for the first request.
    Opening,
    /// No request, after an earlier one.
    Idle,
    /// The body of a request arrives.
    Reading,
    /// A request is being decided.
    Answering,
    /// Its answer is being read.
    Sending,
}

impl State {
    /// Whether no request is in flight.
    fn is_idle(self) -> bool {
        matches!(self, Self::Opening | Self::Idle)
    }
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    address: IpAddr,
    /// Identified as the API server's, by its address or certificate: no limit per address.
    exempt: bool,
    state: State,
    /// Start of the state.
    since: Duration,
    last_review: Option<Duration>,
}

/// Order of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Has never carried a review, and carries nothing.
    Unused,
    /// Has carried no review for so long that the API server has dropped it from its pool.
    Abandoned,
    /// Sends its body, or reads its answer, so slowly that its caller has given up.
    Stalled,
    /// Has carried a review recently, and its address has more idle ones than permitted.
    PooledOfMany,
    /// Is being established.
    Opening,
    /// Has carried a review recently.
    Pooled,
    /// Has a request in flight, and its address many others.
    BusyOfMany,
}

/// The open connections of one port.
#[derive(Debug)]
pub struct Connections {
    bounds: Bounds,
    next: u64,
    open: HashMap<ConnectionId, Connection>,
    /// Connections without a request in flight by address, except exempt ones.
    idle: HashMap<IpAddr, usize>,
    /// The others by address, except exempt ones.
    busy: HashMap<IpAddr, usize>,
}

/// The result of adding a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened {
    /// The new one.
    pub id: ConnectionId,
    /// Connections to close because of the total limit.
    pub for_total: Vec<ConnectionId>,
    /// Connections to close because of this address's limit.
    pub for_address: Vec<ConnectionId>,
}

impl Connections {
    /// No connection yet.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, next: 0, open: HashMap::new(), idle: HashMap::new(), busy: HashMap::new() }
    }

    /// Number of open connections.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Adds a connection; `None` at the limit where none can be evicted: every other one carries a request
    /// or is exempt.
    pub fn open(&mut self, address: IpAddr, exempt: bool, now: Duration) -> Option<Opened> {
        let mut for_total = Vec::new();
        while self.open.len() >= self.bounds.total {
            let victim = self.next_evicted(now, |_| true);
            // An API server's comes before any that is none.
            let victim = victim.or_else(|| exempt.then(|| self.busiest()).flatten())?;
            self.close(victim);
            for_total.push(victim);
        }
        let id = ConnectionId(self.next);
        self.next += 1;
        let connection = Connection { address, exempt, state: State::Opening, since: now, last_review: None };
        self.open.insert(id, connection);
        self.count(connection, true);
        let for_address = self.close_surplus(address, now);
        Some(Opened { id, for_total, for_address })
    }

    /// The peer is identified as an API server.
    pub fn exempt(&mut self, id: ConnectionId) {
        let Some(before) = self.open.get(&id).copied() else { return };
        self.count(before, false);
        self.open.insert(id, Connection { exempt: true, ..before });
    }

    /// The head of a request has arrived.
    pub fn reading(&mut self, id: ConnectionId, now: Duration) {
        self.enter(id, State::Reading, now);
    }

    /// The body of the request has arrived.
    pub fn answering(&mut self, id: ConnectionId, now: Duration) {
        self.enter(id, State::Answering, now);
    }

    /// The answer is being sent.
    pub fn sending(&mut self, id: ConnectionId, now: Duration) {
        self.enter(id, State::Sending, now);
    }

    /// Some of the answer was taken.
    pub fn progressed(&mut self, id: ConnectionId, now: Duration) {
        if let Some(connection) = self.open.get_mut(&id).filter(|found| found.state == State::Sending) {
            connection.since = now;
        }
    }

    /// The request, a review or not, is answered. Returns the connections of this address to close, as they
    /// exceed the limit.
    pub fn answered(&mut self, id: ConnectionId, review: bool, now: Duration) -> Vec<ConnectionId> {
        self.enter(id, State::Idle, now);
        let Some(connection) = self.open.get_mut(&id) else { return Vec::new() };
        if review {
            connection.last_review = Some(now);
        }
        let address = connection.address;
        self.close_surplus(address, now)
    }

    /// The connection is closed.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.open.remove(&id) {
            self.count(connection, false);
        }
    }

    fn enter(&mut self, id: ConnectionId, state: State, now: Duration) {
        let Some(before) = self.open.get(&id).copied() else { return };
        self.count(before, false);
        let after = Connection { state, since: now, ..before };
        self.open.insert(id, after);
        self.count(after, true);
    }

    fn count(&mut self, connection: Connection, more: bool) {
        if connection.exempt {
            return;
        }
        let counts = if connection.state.is_idle() { &mut self.idle } else { &mut self.busy };
        let count = counts.entry(connection.address).or_default();
        *count = if more { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            counts.remove(&connection.address);
        }
    }

    fn is_over(&self, address: IpAddr) -> bool {
        self.idle.get(&address).is_some_and(|idle| *idle > self.bounds.per_address)
    }

    /// Brings an address down to its limit, as far as its connections may be evicted for that.
    fn close_surplus(&mut self, address: IpAddr, now: Duration) -> Vec<ConnectionId> {
        let mut closed = Vec::new();
        while self.is_over(address) {
            let of_address = |connection: &Connection, rank| {
                connection.address == address && matches!(rank, Rank::Unused | Rank::Abandoned)
            };
            let Some(victim) = self.next_evicted(now, |(c, rank)| of_address(c, rank)) else { break };
            self.close(victim);
            closed.push(victim);
        }
        closed
    }

    /// By rank; among equals those of an address above its limit, then of one with the most requests in flight, then the one
    /// longest in its state.
    fn next_evicted(
        &self,
        now: Duration,
        eligible: impl Fn((&Connection, Rank)) -> bool,
    ) -> Option<ConnectionId> {
        let ranked = self.open.iter().filter_map(|(id, connection)| {
            let rank = self.rank(connection, now)?;
            let over = self.is_over(connection.address);
            let busy = if rank == Rank::BusyOfMany { self.busy_of(connection.address) } else { 0 };
            eligible((connection, rank)).then_some((
                rank,
                Reverse(over),
                Reverse(busy),
                connection.since,
                *id,
            ))
        });
        ranked.min().map(|(.., id)| id)
    }

    /// One with a request in flight, of the address that has most of them.
    fn busiest(&self) -> Option<ConnectionId> {
        let others = self.open.iter().filter(|(_, connection)| !connection.exempt);
        others
            .min_by_key(|(id, found)| (Reverse(self.busy_of(found.address)), found.since, **id))
            .map(|(id, _)| *id)
    }

    fn busy_of(&self, address: IpAddr) -> usize {
        self.busy.get(&address).copied().unwrap_or_default()
    }

    /// `None`: it is never evicted.
    fn rank(&self, connection: &Connection, now: Duration) -> Option<Rank> {
        if connection.exempt {
            return None;
        }
        let bounds = &self.bounds;
        let been = |than: Duration| now.saturating_sub(connection.since) >= than;
        match (connection.state, connection.last_review) {
            (State::Opening, _) if !been(bounds.opening) => Some(Rank::Opening),
            (State::Opening | State::Idle, None) => Some(Rank::Unused),
            (State::Opening | State::Idle, Some(review)) => {
                if now.saturating_sub(review) >= bounds.pooled {
                    Some(Rank::Abandoned)
                } else if self.is_over(connection.address) {
                    Some(Rank::PooledOfMany)
                } else {
                    Some(Rank::Pooled)
                }
            }
            (State::Reading, _) if been(bounds.reading) => Some(Rank::Stalled),
            (State::Answering, _) if been(bounds.answering) => Some(Rank::Stalled),
            (State::Sending, _) if been(bounds.sending) => Some(Rank::Stalled),
            (State::Reading | State::Answering | State::Sending, _) => {
                (self.busy_of(connection.address) > bounds.busy_per_address).then_some(Rank::BusyOfMany)
            }
        }
    }
}

#[cfg(test)]
mod tests;
