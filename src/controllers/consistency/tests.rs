//! When gateways are checked, and that no write follows a withdrawn permit.

use std::sync::atomic::{AtomicUsize, Ordering};

use interlock_core::api::interlock::Mode;
use interlock_core::api::object::NamespacedName;
use jiff::Timestamp as Instant;
use rstest::rstest;
use tokio::sync::{Notify, watch};

use super::*;
use crate::cluster::crds::Absence;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{
    ApiVerb, CapabilityPhase, CapabilitySnapshot, CapabilityStatus as Standing, Epoch, Missing,
    NotReadyReason, RefusedKind, UnavailableAnswer,
};
use crate::controllers::capabilities::FLAVORS;

/// Longer than any pause between two checks.
const LONG: Duration = Duration::from_secs(600);

fn snapshot(state: CapabilityPhase) -> Arc<CapabilitySnapshot> {
    Arc::new(CapabilitySnapshot {
        capabilities: vec![Standing {
            name: FLAVORS,
            state,
            mode: Mode::Auto,
            since: Instant::UNIX_EPOCH,
            answer: UnavailableAnswer::Judge,
            kinds: Vec::new(),
        }],
    })
}

fn gateway() -> GatewayRef {
    GatewayRef { kind: GatewayKind::DataPlane, name: NamespacedName::new("kong", "edge") }
}

fn leads() -> Leadership {
    Leadership::Leader { leader_epoch: 1, until: tokio::time::Instant::now() + LONG * 100 }
}

/// How a check ends.
#[derive(Clone, Copy)]
enum End {
    /// It writes, once the test lets it continue.
    Writes,
    Fails,
    Panics,
}

/// A leader with one worker, whose checks tests can hold before they write.
struct World {
    queue: Arc<Queue<GatewayRef>>,
    snapshot: watch::Sender<Arc<CapabilitySnapshot>>,
    leadership: watch::Sender<Leadership>,
    reads: Arc<AtomicUsize>,
    writes: Arc<AtomicUsize>,
    goes_on: Arc<Notify>,
}

impl World {
    /// Checks that end in this way.
    fn new(state: CapabilityPhase, end: End) -> Self {
        let (queue, goes_on) = (Arc::new(Queue::default()), Arc::new(Notify::new()));
        let snapshot = watch::Sender::new(snapshot(state));
        let leadership = watch::Sender::new(leads());
        let permit = Permit { leadership: leadership.subscribe(), snapshot: snapshot.subscribe() };
        let (reads, writes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let world = Self { queue, snapshot, leadership, reads, writes, goes_on };
        let (queue, goes_on) = (world.queue.clone(), world.goes_on.clone());
        let (reads, writes) = (world.reads.clone(), world.writes.clone());
        tokio::spawn(async move {
            let look = |_: GatewayRef| async {
                reads.fetch_add(1, Ordering::SeqCst);
                match end {
                    End::Writes => {}
                    End::Fails => {
                        let (reason, message) = (String::new(), String::new());
                        return Err(ApiFailure { code: 403, reason, message, namespace_terminating: false });
                    }
                    End::Panics => panic!("a gateway of somebody's"),
                }
                goes_on.notified().await;
                writes.fetch_add(1, Ordering::SeqCst);
                Ok(())
            };
            workers::work(&queue, &Metrics::new(), permit, look).await;
        });
        world
    }

    fn stand(&self, state: CapabilityPhase) {
        self.snapshot.send_replace(snapshot(state));
    }

    /// Reads and writes, once no task has anything more to do.
    async fn done(&self) -> (usize, usize) {
        tokio::time::sleep(LONG).await;
        (self.reads.load(Ordering::SeqCst), self.writes.load(Ordering::SeqCst))
    }
}

fn waiting() -> CapabilityPhase {
    let why = NotReadyReason::Absent(Absence::Missing);
    CapabilityPhase::Waiting(vec![Missing { name: "dataplanes.gateway-operator.konghq.com".to_owned(), why }])
}

fn forbidden() -> CapabilityPhase {
    CapabilityPhase::Forbidden(RefusedKind {
        name: "dataplanes.gateway-operator.konghq.com".to_owned(),
        verb: ApiVerb::List,
    })
}

#[rstest]
#[case::off(CapabilityPhase::Disabled)]
#[case::waiting(waiting())]
#[case::forbidden(forbidden())]
#[case::starting(CapabilityPhase::Starting(Epoch(1)))]
#[case::draining(CapabilityPhase::Draining(Epoch(1)))]
#[case::unknown(CapabilityPhase::Unknown(None))]
#[tokio::test(start_paused = true)]
async fn what_is_due_waits_until_the_capability_runs(#[case] state: CapabilityPhase) {
    let world = World::new(state.clone(), End::Writes);
    world.queue.add(gateway());
    assert_eq!(world.done().await, (0, 0));
    world.stand(CapabilityPhase::Running(Epoch(2)));
    assert_eq!(world.done().await, (1, 0));
    // A check is running.
    world.stand(state);
    assert_eq!(world.done().await, (1, 0));
    world.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 0), "it has written nothing");
    world.stand(CapabilityPhase::Running(Epoch(3)));
    assert_eq!(world.done().await, (2, 0), "it is looked at again");
    world.goes_on.notify_waiters();
    assert_eq!(world.done().await, (2, 1));
    assert_eq!(world.queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_ran_goes_on_while_nobody_can_tell() {
    let world = World::new(CapabilityPhase::Unknown(Some(Epoch(1))), End::Writes);
    world.queue.add(gateway());
    assert_eq!(world.done().await, (1, 0));
    world.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_any_more_gives_a_look_up() {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), End::Writes);
    world.queue.add(gateway());
    assert_eq!(world.done().await, (1, 0));
    world.leadership.send_replace(Leadership::Standby);
    world.done().await;
    world.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 0));
    world.leadership.send_replace(leads());
    assert_eq!(world.done().await, (2, 0));
}

#[rstest]
#[case::fails(End::Fails)]
#[case::panics(End::Panics)]
#[tokio::test(start_paused = true)]
async fn what_failed_is_not_tried_again_while_the_capability_is_off(#[case] end: End) {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), end);
    world.queue.add(gateway());
    let (tries, _) = world.done().await;
    assert!(tries > 1, "it is tried again");
    world.stand(CapabilityPhase::Disabled);
    let (tries, _) = world.done().await;
    assert_eq!(world.done().await, (tries, 0));
    world.stand(CapabilityPhase::Running(Epoch(2)));
    assert!(world.done().await.0 > tries);
}

#[tokio::test(start_paused = true)]
async fn every_gateway_is_looked_at_again_when_the_capability_comes_back() {
    let queue = Arc::new(Queue::default());
    let snapshots = watch::Sender::new(snapshot(CapabilityPhase::Starting(Epoch(1))));
    let leadership = watch::Sender::new(leads());
    let permit = Permit { leadership: leadership.subscribe(), snapshot: snapshots.subscribe() };
    let forgotten = Arc::new(AtomicUsize::new(0));
    let (again, forgets) = (queue.clone(), forgotten.clone());
    tokio::spawn(async move {
        let forget = || {
            forgets.fetch_add(1, Ordering::SeqCst);
        };
        let _ = workers::resume(&again, permit, forget, || vec![gateway()]).await;
    });
    for (state, queued, forgets) in [
        (CapabilityPhase::Starting(Epoch(1)), 0, 1),
        (CapabilityPhase::Running(Epoch(1)), 1, 1),
        (CapabilityPhase::Disabled, 0, 2),
        (CapabilityPhase::Starting(Epoch(2)), 0, 2),
        (CapabilityPhase::Running(Epoch(2)), 1, 2),
    ] {
        snapshots.send_replace(snapshot(state));
        tokio::time::sleep(LONG).await;
        assert_eq!((queue.depth(), forgotten.load(Ordering::SeqCst)), (queued, forgets));
    }
    leadership.send_replace(Leadership::Standby);
    tokio::time::sleep(LONG).await;
    queue.add(gateway());
    assert_eq!(queue.depth(), 0, "a standby keeps nothing");
    leadership.send_replace(leads());
    tokio::time::sleep(LONG).await;
    assert_eq!(queue.depth(), 1);
}
