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

/// The state of a connection.
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
mod tests {
    use std::net::Ipv4Addr;

    use rstest::rstest;

    use super::*;

    const API_SERVER: u8 = 1;
    const OTHER: u8 = 2;
    const LONG_AGO: u64 = 1;
    const NOW: u64 = 1_000;

    fn bounds(total: usize, per_address: usize) -> Bounds {
        Bounds {
            total,
            per_address,
            opening: Duration::from_secs(5),
            reading: Duration::from_secs(1),
            answering: Duration::from_secs(30),
            sending: Duration::from_secs(1),
            busy_per_address: total,
            pooled: Duration::from_secs(95),
        }
    }

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// The past of a connection, and when.
    #[derive(Clone, Copy, Debug)]
    enum Past {
        Nothing(u64),
        Probed(u64),
        Reviewed(u64),
        Reads(u64),
        Answers(u64),
        Exempt(u64),
    }

    fn make(table: &mut Connections, from: u8, past: Past) -> ConnectionId {
        let (Past::Nothing(when)
        | Past::Probed(when)
        | Past::Reviewed(when)
        | Past::Reads(when)
        | Past::Answers(when)
        | Past::Exempt(when)) = past;
        let opened = table.open(address(from), false, at(when)).unwrap();
        assert!(opened.for_total.is_empty(), "the test leaves room");
        let id = opened.id;
        match past {
            Past::Nothing(_) => {}
            Past::Exempt(_) => table.exempt(id),
            Past::Reads(_) => table.reading(id, at(when)),
            Past::Answers(_) => table.answering(id, at(when)),
            Past::Probed(_) | Past::Reviewed(_) => {
                table.reading(id, at(when));
                table.answering(id, at(when));
                table.answered(id, matches!(past, Past::Reviewed(_)), at(when));
            }
        }
        id
    }

    use Past::{Answers, Exempt, Nothing, Probed, Reads, Reviewed};

    /// The port is full; the last of the list is evicted, or none.
    #[rstest]
    #[case::unused_before_pooled(&[(API_SERVER, Reviewed(NOW)), (OTHER, Probed(NOW))], true)]
    #[case::unused_before_abandoned(&[(API_SERVER, Reviewed(LONG_AGO)), (OTHER, Probed(NOW))], true)]
    #[case::longest_unused(&[(OTHER, Probed(NOW - 1)), (OTHER, Probed(NOW - 2))], true)]
    #[case::silent_as_unused(&[(API_SERVER, Reviewed(NOW)), (OTHER, Nothing(NOW - 5))], true)]
    #[case::abandoned_before_stalled(&[(OTHER, Reads(LONG_AGO)), (API_SERVER, Reviewed(NOW - 95))], true)]
    #[case::stalled_body(&[(API_SERVER, Reviewed(NOW - 94)), (OTHER, Reads(NOW - 1))], true)]
    #[case::stalled_reader(&[(API_SERVER, Reviewed(NOW)), (OTHER, Answers(NOW - 30))], true)]
    #[case::of_many(
        &[(API_SERVER, Reviewed(NOW - 50)), (OTHER, Reviewed(NOW)), (OTHER, Reviewed(NOW)), (OTHER, Reviewed(NOW - 1))],
        true
    )]
    #[case::pooled_of_many_before_opening(
        &[(API_SERVER, Nothing(NOW)), (OTHER, Reviewed(NOW)), (OTHER, Reviewed(NOW)), (OTHER, Reviewed(NOW - 1))],
        true
    )]
    #[case::opening_of_many_first(
        &[(API_SERVER, Nothing(NOW - 2)), (OTHER, Nothing(NOW)), (OTHER, Nothing(NOW)), (OTHER, Nothing(NOW - 1))],
        true
    )]
    #[case::opening_before_pooled(&[(API_SERVER, Reviewed(NOW)), (OTHER, Nothing(NOW))], true)]
    #[case::last_of_all_a_pooled(&[(API_SERVER, Answers(NOW)), (OTHER, Reviewed(NOW))], true)]
    #[case::all_carry_requests(&[(API_SERVER, Answers(NOW - 29)), (OTHER, Reads(NOW))], false)]
    #[case::all_exempt(&[(API_SERVER, Exempt(LONG_AGO)), (OTHER, Exempt(LONG_AGO))], false)]
    fn a_connection_is_evicted_above_the_total(#[case] connections: &[(u8, Past)], #[case] one_goes: bool) {
        let mut table = Connections::new(bounds(connections.len(), 2));
        let ids: Vec<_> = connections.iter().map(|(from, past)| make(&mut table, *from, *past)).collect();
        let opened = table.open(address(3), false, at(NOW));
        let went = opened.map(|opened| opened.for_total);
        assert_eq!(went, one_goes.then(|| vec![*ids.last().unwrap()]));
    }

    /// Who is known to be an API server finds a place whatever others do.
    #[test]
    fn an_api_servers_connection_is_let_in_before_busy_others() {
        let mut table = Connections::new(bounds(3, 2));
        make(&mut table, API_SERVER, Exempt(LONG_AGO));
        let first = make(&mut table, OTHER, Reads(NOW));
        make(&mut table, OTHER, Reads(NOW));
        assert_eq!(table.open(address(3), false, at(NOW)), None);
        let opened = table.open(address(API_SERVER), true, at(NOW)).unwrap();
        assert_eq!(opened.for_total, [first]);
    }

    #[test]
    fn of_busy_addresses_the_one_with_the_most_makes_room() {
        let mut table = Connections::new(Bounds { busy_per_address: 1, ..bounds(5, 2) });
        make(&mut table, API_SERVER, Reads(NOW));
        make(&mut table, API_SERVER, Reads(NOW));
        let of_other = [0; 3].map(|_| make(&mut table, OTHER, Reads(NOW)));
        let opened = table.open(address(3), false, at(NOW)).unwrap();
        assert_eq!(opened.for_total, [of_other[0]]);
    }

    /// One more of an address that is at its limit.
    #[rstest]
    #[case::unused(Probed(NOW), 1)]
    #[case::abandoned(Reviewed(NOW - 95), 1)]
    #[case::pooled(Reviewed(NOW - 94), 0)]
    #[case::opening(Nothing(NOW - 4), 0)]
    #[case::silent(Nothing(NOW - 5), 1)]
    #[case::body(Reads(NOW - 10), 0)]
    #[case::answer(Answers(NOW - 10), 0)]
    #[case::exempt(Exempt(LONG_AGO), 0)]
    fn a_connection_is_evicted_above_the_limit_of_its_address(#[case] past: Past, #[case] go: usize) {
        let mut table = Connections::new(bounds(1024, 3));
        make(&mut table, OTHER, Probed(LONG_AGO));
        for _ in 0..3 {
            make(&mut table, API_SERVER, past);
        }
        let opened = table.open(address(API_SERVER), false, at(NOW)).unwrap();
        assert_eq!((opened.for_total.len(), opened.for_address.len()), (0, go));
    }

    /// The row: 1,023 connections that each have asked for /livez.
    #[test]
    fn a_thousand_probes_of_one_address_leave_room() {
        let mut table = Connections::new(bounds(1024, 64));
        for _ in 0..1023 {
            make(&mut table, OTHER, Probed(NOW));
        }
        assert_eq!(table.len(), 64);
        for _ in 0..900 {
            make(&mut table, API_SERVER, Answers(NOW));
        }
        assert_eq!(table.len(), 964);
    }

    /// 200 connections at once, then 200 reviews, then 200 in the pool: the API server loses none.
    #[test]
    fn a_burst_of_reviews_from_one_address_is_kept() {
        let mut table = Connections::new(bounds(1024, 64));
        let ids: Vec<_> = (0..200)
            .map(|_| table.open(address(API_SERVER), false, at(NOW)).unwrap())
            .inspect(|opened| assert!(opened.for_address.is_empty() && opened.for_total.is_empty()))
            .map(|opened| opened.id)
            .collect();
        ids.iter().for_each(|id| table.reading(*id, at(NOW + 1)));
        ids.iter().for_each(|id| table.answering(*id, at(NOW + 1)));
        for id in &ids {
            assert_eq!(table.answered(*id, true, at(NOW + 2)), []);
        }
        assert_eq!(table.len(), 200);
        // 95 s later its pool has dropped them.
        let opened = table.open(address(API_SERVER), false, at(NOW + 97)).unwrap();
        assert_eq!((opened.for_address.len(), table.len()), (137, 64));
    }

    #[test]
    fn counts_return_to_zero() {
        let mut table = Connections::new(bounds(8, 2));
        for past in [Nothing(1), Probed(1), Reviewed(1), Reads(1), Answers(1), Exempt(1)] {
            let id = make(&mut table, OTHER, past);
            table.close(id);
            table.close(id);
            table.reading(id, at(2));
            assert_eq!(table.answered(id, true, at(2)), []);
        }
        assert!(table.is_empty() && table.idle.is_empty());
    }
}
