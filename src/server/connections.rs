//! The table of open connections: which of them a new one evicts.
//!
//! A new connection is accepted, and above a limit another one is closed for it. HTTP/1.1 has one
//! connection for each review in flight, and the API server may have hundreds, so the limit for an address
//! counts its connections without a request. A connection that has carried a review is presumably the API
//! server's: it pools idle connections for 90 s and a POST on one that is being closed may be lost, so such
//! a connection is kept for [`Bounds::pooled`] after its last review. So is one without any request yet of an
//! address that a review came from: in a burst the API server dials more than it then needs, and pools those.
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
    /// Carries nothing, and has never carried a review. One without any request yet counts only where no review came from
    /// its address.
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
    /// By address, those that have a connection which is not exempt.
    addresses: HashMap<IpAddr, Address>,
}

/// The connections of one address, except exempt ones.
#[derive(Clone, Copy, Debug, Default)]
struct Address {
    /// Without a request in flight.
    idle: usize,
    /// The others.
    busy: usize,
    /// When a review on any of its connections arrived or was answered.
    last_review: Option<Duration>,
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
        Self { bounds, next: 0, open: HashMap::new(), addresses: HashMap::new() }
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
        self.count(None, Some(connection));
        let for_address = self.close_surplus(address, now);
        Some(Opened { id, for_total, for_address })
    }

    /// The peer is identified as an API server.
    pub fn exempt(&mut self, id: ConnectionId) {
        let Some(before) = self.open.get(&id).copied() else { return };
        self.open.insert(id, Connection { exempt: true, ..before });
        self.count(Some(before), None);
    }

    /// The head of a request has arrived.
    pub fn reading(&mut self, id: ConnectionId, now: Duration) {
        self.enter(id, State::Reading, now);
    }

    /// The body of the request has arrived. Only requests to the webhook's paths come so far.
    pub fn answering(&mut self, id: ConnectionId, now: Duration) {
        self.enter(id, State::Answering, now);
        self.reviewed(id, now);
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
        let address = connection.address;
        if review {
            connection.last_review = Some(now);
            self.reviewed(id, now);
        }
        self.close_surplus(address, now)
    }

    /// Notes that a review came from an address. Those of a known API server do not count: they say nothing of others that
    /// share its address, behind one NAT.
    fn reviewed(&mut self, id: ConnectionId, now: Duration) {
        let Some(connection) = self.open.get(&id).filter(|own| !own.exempt) else { return };
        if let Some(of) = self.addresses.get_mut(&connection.address) {
            of.last_review = Some(now);
        }
    }

    /// The connection is closed.
    pub fn close(&mut self, id: ConnectionId) {
        let closed = self.open.remove(&id);
        self.count(closed, None);
    }

    /// Whether its peer may use it for the next review: it is an API server's, as far as is known.
    pub fn is_pooled(&self, id: ConnectionId, now: Duration) -> bool {
        let Some(connection) = self.open.get(&id) else { return false };
        connection.exempt || self.last_review(connection).is_some_and(|review| !self.is_dropped(review, now))
    }

    fn enter(&mut self, id: ConnectionId, state: State, now: Duration) {
        let Some(before) = self.open.get(&id).copied() else { return };
        let after = Connection { state, since: now, ..before };
        self.open.insert(id, after);
        self.count(Some(before), Some(after));
    }

    /// A connection of one address is no longer as `before`, but as `after`.
    fn count(&mut self, before: Option<Connection>, after: Option<Connection>) {
        let counted = |connection: &Connection| !connection.exempt;
        if let Some(after) = after.filter(counted) {
            *self.addresses.entry(after.address).or_default().count_of(after.state) += 1;
        }
        let Some(before) = before.filter(counted) else { return };
        let Some(of) = self.addresses.get_mut(&before.address) else { return };
        let count = of.count_of(before.state);
        *count = count.saturating_sub(1);
        if of.idle + of.busy == 0 {
            self.addresses.remove(&before.address);
        }
    }

    fn of(&self, address: IpAddr) -> Address {
        self.addresses.get(&address).copied().unwrap_or_default()
    }

    fn is_over(&self, address: IpAddr) -> bool {
        self.of(address).idle > self.bounds.per_address
    }

    /// Of its own; before its first request, of its address, but not before it was opened: the API server's pool holds it
    /// from then on.
    fn last_review(&self, connection: &Connection) -> Option<Duration> {
        match connection.state {
            State::Opening => self.of(connection.address).last_review.map(|own| own.max(connection.since)),
            _ => connection.last_review,
        }
    }

    /// Whether the API server's pool has dropped a connection since its last review.
    fn is_dropped(&self, review: Duration, now: Duration) -> bool {
        now.saturating_sub(review) >= self.bounds.pooled
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
            let busy = if rank == Rank::BusyOfMany { self.of(connection.address).busy } else { 0 };
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
            .min_by_key(|(id, found)| (Reverse(self.of(found.address).busy), found.since, **id))
            .map(|(id, _)| *id)
    }

    /// `None`: it is never evicted.
    fn rank(&self, connection: &Connection, now: Duration) -> Option<Rank> {
        if connection.exempt {
            return None;
        }
        let bounds = &self.bounds;
        let been = |than: Duration| now.saturating_sub(connection.since) >= than;
        match (connection.state, self.last_review(connection)) {
            (State::Opening, _) if !been(bounds.opening) => Some(Rank::Opening),
            (State::Opening | State::Idle, None) => Some(Rank::Unused),
            (State::Opening | State::Idle, Some(review)) => {
                if self.is_dropped(review, now) {
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
                (self.of(connection.address).busy > bounds.busy_per_address).then_some(Rank::BusyOfMany)
            }
        }
    }
}

impl Address {
    fn count_of(&mut self, state: State) -> &mut usize {
        if state.is_idle() { &mut self.idle } else { &mut self.busy }
    }
}

#[cfg(test)]
mod tests;
