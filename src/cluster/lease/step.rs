//! One election step, as a pure function: the observed record and the time -> the write.
//!
//! Semantics of client-go v0.36 (`tools/leaderelection/leaderelection.go`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// The three durations; each less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long peers leave a holder alone after its last renewal.
    pub duration: Duration,
    /// How long a leader continues without renewing.
    pub renew_deadline: Duration,
    /// Pause between two attempts.
    pub retry_period: Duration,
}

/// One candidate and its memory; times count from its own start.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Unique among all processes that ever ran.
    pub id: String,
    /// The durations.
    pub timing: Timing,
    observed_record: Option<ObservedRecord>,
    /// Until when this peer leads.
    leads_until: Option<Duration>,
}

#[derive(Clone, Debug)]
struct ObservedRecord {
    version: String,
    at: Duration,
}

/// What to write to the lease.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum LeaseDecision {
    /// There is none: POST this one.
    Create(LeaseSpec),
    /// PUT this record over this resource version.
    Update(LeaseSpec, String),
    /// Another peer holds it, or this peer must not take it.
    Wait,
    /// PUT this record over this resource version: this peer holds the lease, and its workers have no
    /// heartbeat. Others may take it at once.
    Release(LeaseSpec, String),
}

impl Peer {
    /// A candidate that has read nothing.
    pub fn new(id: impl Into<String>, timing: Timing) -> Self {
        Self { id: id.into(), timing, observed_record: None, leads_until: None }
    }

    /// The write that a [`LeaseDecision`] asked for, sent at `sent`, succeeded.
    pub fn written(&mut self, sent: Duration, now: Duration, version: String) {
        self.observed_record = Some(ObservedRecord { version, at: now });
        self.leads_until = Some(sent + self.timing.renew_deadline);
    }

    /// Until when this peer leads, if it does at `now`.
    pub fn leads_until(&self, now: Duration) -> Option<Duration> {
        self.leads_until.filter(|until| now < *until)
    }

    /// The lease was released, or another peer took it.
    pub fn step_down(&mut self) {
        self.leads_until = None;
    }

    /// The record that releases the lease, if this peer holds it: others may take it at once.
    pub fn release(&mut self, now: Duration, wall: Timestamp, current: &LeaseSpec) -> Option<LeaseSpec> {
        self.leads_until(now)?;
        self.step_down();
        (current.holder_identity.as_deref() == Some(self.id.as_str())).then(|| released(current, wall))
    }

    /// The peer released the lease for lack of a heartbeat, and has observed its own write.
    pub fn released_without_heartbeat(&mut self, now: Duration, version: String) {
        self.observed_record = Some(ObservedRecord { version, at: now });
        self.step_down();
    }
}

/// A record that others may take at once. The times in it are for people.
fn released(current: &LeaseSpec, wall: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(wall)),
        ..current.clone()
    }
}

/// Decides on the lease (`observed` with its resource version) at `now`. `wall` is only recorded; `alive`
/// says whether the workers under the lease have a heartbeat: without one the peer neither takes nor keeps
/// it.
pub fn step(
    now: Duration,
    wall: Timestamp,
    observed: Option<(&LeaseSpec, &str)>,
    alive: bool,
    peer: &mut Peer,
) -> LeaseDecision {
    let seconds = peer.timing.duration.as_secs_f64().ceil() as i32;
    let fresh = |transitions, acquired| LeaseSpec {
        holder_identity: Some(peer.id.clone()),
        lease_duration_seconds: Some(seconds),
        lease_transitions: Some(transitions),
        acquire_time: acquired,
        renew_time: Some(MicroTime(wall)),
        ..LeaseSpec::default()
    };
    let now_acquired = Some(MicroTime(wall));
    let Some((record, version)) = observed else {
        if !alive {
            peer.leads_until = None;
            return LeaseDecision::Wait;
        }
        return LeaseDecision::Create(fresh(0, now_acquired));
    };
    let holder = record.holder_identity.as_deref().unwrap_or_default();
    let mine = holder == peer.id;
    let term = record.lease_transitions.unwrap_or_default();
    let taken = if mine { fresh(term, record.acquire_time.clone()) } else { fresh(term + 1, now_acquired) };
    let decision = LeaseDecision::Update(taken, version.to_owned());
    let seen_at = match &peer.observed_record {
        Some(observed_record) if observed_record.version == version => observed_record.at,
        _ => {
            peer.observed_record = Some(ObservedRecord { version: version.to_owned(), at: now });
            now
        }
    };
    if mine && alive {
        return decision;
    }
    peer.leads_until = None;
    if mine {
        return LeaseDecision::Release(released(record, wall), version.to_owned());
    }
    if !alive {
        return LeaseDecision::Wait;
    }
    let duration = u64::try_from(record.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    let left_alone = !holder.is_empty() && now < seen_at + Duration::from_secs(duration);
    if left_alone { LeaseDecision::Wait } else { decision }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const TIMING: Timing = Timing {
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn record(holder: &str) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(4),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_holder_is_left_alone_for_the_duration_since_its_record_was_seen_to_change() {
        let mut peer = Peer::new("b", TIMING);
        let held = record("a");
        let look = |peer: &mut Peer, at, version: &str| {
            step(seconds(at), Timestamp::UNIX_EPOCH, Some((&held, version)), true, peer)
        };
        assert_eq!(look(&mut peer, 100, "1"), LeaseDecision::Wait);
        assert_eq!(look(&mut peer, 114, "1"), LeaseDecision::Wait);
        assert_eq!(look(&mut peer, 114, "2"), LeaseDecision::Wait, "it was renewed");
        assert_eq!(look(&mut peer, 128, "2"), LeaseDecision::Wait);
        let LeaseDecision::Update(taken, version) = look(&mut peer, 129, "2") else { panic!("taken over") };
        assert_eq!((taken.holder_identity.as_deref(), taken.lease_transitions), (Some("b"), Some(5)));
        assert_eq!(version, "2");
    }

    #[test]
    fn a_released_lease_is_taken_at_once_and_a_renewal_keeps_its_term() {
        let mut peer = Peer::new("b", TIMING);
        let decision = step(seconds(1), Timestamp::UNIX_EPOCH, Some((&record(""), "7")), true, &mut peer);
        assert!(matches!(&decision, LeaseDecision::Update(r, _) if r.lease_transitions == Some(5)));
        peer.written(seconds(1), seconds(2), "8".into());
        assert_eq!(peer.leads_until(seconds(10)), Some(seconds(11)));
        assert_eq!(peer.leads_until(seconds(11)), None, "from sending, not from the answer");
        let renewal = step(seconds(3), Timestamp::UNIX_EPOCH, Some((&record("b"), "8")), true, &mut peer);
        assert!(matches!(&renewal, LeaseDecision::Update(r, _) if r.lease_transitions == Some(4)));
        let released = peer.release(seconds(4), Timestamp::UNIX_EPOCH, &record("b")).expect("held");
        assert_eq!(released.holder_identity.as_deref(), Some(""));
        assert_eq!(peer.leads_until(seconds(4)), None);
    }

    /// Who holds the lease, its state as `b` sees it, and whether `b` works: the decision of `b`.
    #[rstest]
    #[case::there_is_none(None, true, "create")]
    #[case::there_is_none_and_nothing_works(None, false, "wait")]
    #[case::free(Some(""), true, "take")]
    #[case::free_and_nothing_works(Some(""), false, "wait")]
    #[case::mine(Some("b"), true, "renew")]
    #[case::mine_and_nothing_works(Some("b"), false, "give up")]
    #[case::of_another(Some("a"), true, "wait")]
    #[case::of_another_and_nothing_works(Some("a"), false, "wait")]
    fn a_lease_is_neither_taken_nor_kept_without_a_heartbeat(
        #[case] holder: Option<&'static str>,
        #[case] alive: bool,
        #[case] does: &str,
    ) {
        let mut peer = Peer::new("b", TIMING);
        if holder == Some("b") {
            peer.written(seconds(9), seconds(9), "7".into());
        }
        let held = holder.map(record);
        let observed = held.as_ref().map(|record| (record, "7"));
        let decision = step(seconds(10), Timestamp::UNIX_EPOCH, observed, alive, &mut peer);
        let did = match &decision {
            LeaseDecision::Create(_) => "create",
            LeaseDecision::Wait => "wait",
            LeaseDecision::Update(record, _) if record.lease_transitions == Some(4) => "renew",
            LeaseDecision::Update(..) => "take",
            LeaseDecision::Release(record, version) => {
                assert_eq!((record.holder_identity.as_deref(), version.as_str()), (Some(""), "7"));
                "give up"
            }
        };
        assert_eq!(did, does, "{decision:?}");
        assert_eq!(peer.leads_until(seconds(10)).is_some(), does == "renew");
    }

    /// The API server: one record, compare and swap.
    #[derive(Default)]
    struct Server {
        lease: Option<(LeaseSpec, u64)>,
    }

    impl Server {
        fn write(&mut self, decision: &LeaseDecision) -> Option<String> {
            let (record, next) = match (decision, &self.lease) {
                (LeaseDecision::Create(record), None) => (record, 1),
                (
                    LeaseDecision::Update(record, version) | LeaseDecision::Release(record, version),
                    Some((_, current)),
                ) if *version == current.to_string() => (record, current + 1),
                _ => return None,
            };
            self.lease = Some((record.clone(), next));
            Some(next.to_string())
        }
    }

    /// A peer's clock starts at any value, its wall clock is arbitrary, and it runs a little fast or slow.
    #[derive(Clone, Debug)]
    struct Skew {
        offset: u64,
        wall: i64,
        rate_per_mille: u64,
    }

    impl Skew {
        fn local(&self, millis: u64) -> Duration {
            Duration::from_millis(self.offset + millis * self.rate_per_mille / 1000)
        }
    }

    fn skew() -> impl Strategy<Value = Skew> {
        (0..10_000_000u64, -1_000_000..1_000_000i64, 900..1100u64)
            .prop_map(|(offset, wall, rate_per_mille)| Skew { offset, wall, rate_per_mille })
    }

    /// What happens to a peer in one second: a step, with the answer to its write late by some milliseconds
    /// or lost, or nothing at all (suspended, cut off).
    #[derive(Clone, Debug)]
    enum PeerTurn {
        Look { answer_after: u64, lost: bool },
        Nothing,
    }

    fn turn() -> impl Strategy<Value = PeerTurn> {
        prop_oneof![
            4 => (0..4000u64, prop::bool::weighted(0.1))
                .prop_map(|(answer_after, lost)| PeerTurn::Look { answer_after, lost }),
            2 => Just(PeerTurn::Nothing),
        ]
    }

    proptest! {
        #[test]
        fn never_two_leaders(
            skews in prop::collection::vec(skew(), 2..5),
            turns in prop::collection::vec((0..5usize, turn()), 50..400),
        ) {
            let mut server = Server::default();
            let mut peers: Vec<_> =
                (0..skews.len()).map(|i| Peer::new(format!("peer-{i}"), TIMING)).collect();
            let mut busy_until = vec![0; peers.len()];
            let mut millis = 0;
            for (i, turn) in turns {
                millis += 700;
                let i = i % peers.len();
                if let PeerTurn::Look { answer_after, lost } = turn && busy_until[i] <= millis {
                    let wall = Timestamp::from_second(skews[i].wall).expect("in range");
                    let sent = skews[i].local(millis);
                    let lease = server.lease.clone();
                    let observed = lease.as_ref().map(|(record, version)| (record, version.to_string()));
                    let observed = observed.as_ref().map(|(record, version)| (*record, version.as_str()));
                    let decision = step(sent, wall, observed, true, &mut peers[i]);
                    if let Some(version) = server.write(&decision) && !lost {
                        busy_until[i] = millis + answer_after;
                        let answered = skews[i].local(millis + answer_after);
                        peers[i].written(sent, answered, version);
                    }
                }
                let leaders = peers.iter().zip(&skews)
                    .filter(|(peer, skew)| peer.leads_until(skew.local(millis)).is_some())
                    .count();
                prop_assert!(leaders <= 1, "{leaders} leaders at {millis} ms");
            }
        }

        #[test]
        fn another_peer_leads_after_the_leader_is_gone(skews in prop::collection::vec(skew(), 2..5)) {
            let mut server = Server::default();
            let mut peers: Vec<_> =
                (0..skews.len()).map(|i| Peer::new(format!("peer-{i}"), TIMING)).collect();
            let mut look = |i: usize, millis: u64, peers: &mut Vec<Peer>| {
                let now = skews[i].local(millis);
                let lease = server.lease.clone();
                let observed = lease.as_ref().map(|(record, version)| (record, version.to_string()));
                let observed = observed.as_ref().map(|(record, version)| (*record, version.as_str()));
                let decision = step(now, Timestamp::UNIX_EPOCH, observed, true, &mut peers[i]);
                if let Some(version) = server.write(&decision) {
                    peers[i].written(now, now, version);
                }
                peers[i].leads_until(now).is_some()
            };
            prop_assert!(look(0, 0, &mut peers));
            // Peer 0 dies; the others continue to step every two seconds.
            let led = (1..12u64).any(|turn| (1..skews.len()).any(|i| look(i, turn * 2000, &mut peers)));
            prop_assert!(led, "nobody took over within 22 s");
        }
    }
}
