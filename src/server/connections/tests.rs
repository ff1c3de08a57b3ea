//! The table of connections, by rows.

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

/// A connection of a known API server finds a place, however busy the others are.
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

/// Beside a burst of 200 reviews the API server has dialled 100 more, which its pool holds for later.
#[rstest]
#[case::soon(NOW + 6, 0)]
#[case::while_pooled(NOW + 96, 0)]
#[case::dropped_from_its_pool(NOW + 97, 237)]
fn connections_that_were_dialled_for_a_burst_are_kept(#[case] then: u64, #[case] go: usize) {
    let mut table = Connections::new(bounds(1024, 64));
    let ids: Vec<_> = (0..300).map(|_| make(&mut table, API_SERVER, Nothing(NOW))).collect();
    for id in &ids[..200] {
        table.reading(*id, at(NOW + 1));
        assert_eq!(table.answered(*id, true, at(NOW + 2)), []);
    }
    assert_eq!(table.is_pooled(ids[299], at(then)), go == 0);
    let later = make(&mut table, API_SERVER, Nothing(NOW + 20));
    assert!(then < NOW + 20 || table.is_pooled(later, at(then)), "dialled after the reviews");
    table.close(later);
    let opened = table.open(address(API_SERVER), false, at(then)).unwrap();
    assert_eq!((opened.for_total.len(), opened.for_address.len()), (0, go));
}

/// Before the first answer of a burst, and not by reviews of a certified API server behind the same address.
#[rstest]
#[case::reviews(false)]
#[case::reviews_of_an_api_server(true)]
fn dialled_connections_are_kept_by_reviews_of_their_own_kind(#[case] is_certified: bool) {
    let mut table = Connections::new(bounds(1024, 3));
    let ids: Vec<_> = (0..6).map(|_| make(&mut table, API_SERVER, Nothing(NOW))).collect();
    if is_certified {
        table.exempt(ids[0]);
    }
    table.reading(ids[0], at(NOW + 1));
    table.answering(ids[0], at(NOW + 1));
    let opened = table.open(address(API_SERVER), false, at(NOW + 6)).unwrap();
    assert_eq!(opened.for_address.len(), if is_certified { 3 } else { 0 });
    table.answered(ids[0], true, at(NOW + 7));
    assert_eq!(table.is_pooled(ids[1], at(NOW + 7)), !is_certified);
}

/// What an address holds beside its reviews makes room before a connection of any other.
#[test]
fn dialled_connections_of_a_tenant_that_sends_reviews_make_room() {
    let mut table = Connections::new(bounds(100, 10));
    let pooled = make(&mut table, API_SERVER, Reviewed(NOW - 50));
    let spare = make(&mut table, API_SERVER, Nothing(NOW - 50));
    make(&mut table, OTHER, Reviewed(NOW));
    for _ in 0..97 {
        make(&mut table, OTHER, Nothing(NOW - 6));
    }
    for _ in 0..80 {
        table.open(address(3), true, at(NOW)).unwrap();
    }
    assert!(table.is_pooled(pooled, at(NOW)) && table.is_pooled(spare, at(NOW)));
    assert_eq!(table.of(address(OTHER)).idle, 18);
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
    assert!(table.is_empty() && table.addresses.is_empty());
}
