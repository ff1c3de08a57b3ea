//! When keys are reconciled, and that no write follows a gate that has closed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use interlock_core::api::interlock::Mode;
use jiff::Timestamp;
use rstest::rstest;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::*;
use crate::cluster::crds::Absence;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{
    ApiVerb, CapabilityPhase, CapabilitySnapshot, CapabilityStatus, Epoch, Missing, NotReadyReason,
    RefusedKind, UnavailableAnswer,
};
use crate::runtime::controller::{Action, WorkerLimits};
use crate::runtime::gate::{self, LeaderEpoch, LeaderGate};

const CAPABILITY: &str = "flavors";

/// Longer than any pause between two tries.
const LONG: Duration = Duration::from_secs(600);

fn snapshot(state: CapabilityPhase) -> Arc<CapabilitySnapshot> {
    Arc::new(CapabilitySnapshot {
        capabilities: vec![CapabilityStatus {
            name: CAPABILITY,
            state,
            mode: Mode::Auto,
            since: Timestamp::UNIX_EPOCH,
            answer: UnavailableAnswer::Judge,
            kinds: Vec::new(),
        }],
    })
}

fn leads(epoch: u64) -> Leadership {
    Leadership::Leader { leader_epoch: epoch, until: Instant::now() + LONG * 100 }
}

/// How a reconcile ends.
#[derive(Clone, Copy)]
enum End {
    /// It writes, once the test lets it continue.
    Writes,
    Fails,
    Panics,
}

/// A controller of one key, whose reconciles a test can hold before they write.
struct OneKey {
    end: End,
    reads: AtomicUsize,
    writes: AtomicUsize,
    goes_on: Notify,
    terms: Mutex<Vec<LeaderEpoch>>,
    ended: AtomicUsize,
}

impl Controller for OneKey {
    type Key = &'static str;
    type Term = LeaderEpoch;

    fn name(&self) -> &'static str {
        "test"
    }

    fn limits(&self) -> WorkerLimits {
        WorkerLimits::of(1, Duration::ZERO)
    }

    fn begin(&self, epoch: LeaderEpoch) {
        self.terms.lock().unwrap().push(epoch);
    }

    fn keys(&self) -> Vec<(&'static str, Duration)> {
        vec![("key", Duration::ZERO)]
    }

    async fn reconcile(&self, _: &&'static str, _: LeaderEpoch) -> Action {
        self.reads.fetch_add(1, Ordering::SeqCst);
        match self.end {
            End::Writes => {}
            End::Fails => return Action::Retry,
            End::Panics => panic!("an object"),
        }
        self.goes_on.notified().await;
        self.writes.fetch_add(1, Ordering::SeqCst);
        Action::AwaitChange
    }

    fn end(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// A process that leads, with the controller.
struct World {
    controller: Arc<OneKey>,
    queue: Arc<Queue<&'static str>>,
    snapshot: watch::Sender<Arc<CapabilitySnapshot>>,
    leadership: watch::Sender<Leadership>,
}

impl World {
    fn new(state: CapabilityPhase, end: End) -> Self {
        let controller = Arc::new(OneKey {
            end,
            reads: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            goes_on: Notify::new(),
            terms: Mutex::default(),
            ended: AtomicUsize::new(0),
        });
        let (snapshot, leadership) = (watch::Sender::new(snapshot(state)), watch::Sender::new(leads(1)));
        let gate = LeaderGate::new(leadership.subscribe()).while_capability(
            CAPABILITY,
            snapshot.subscribe(),
            gate::runs,
        );
        let queue: Arc<Queue<_>> = Arc::default();
        let stop = CancellationToken::new();
        tokio::spawn(run(controller.clone(), queue.clone(), gate, Arc::new(Metrics::new()), stop));
        Self { controller, queue, snapshot, leadership }
    }

    fn set(&self, state: CapabilityPhase) {
        self.snapshot.send_replace(snapshot(state));
    }

    /// Reads and writes, once no task has anything more to do.
    async fn done(&self) -> (usize, usize) {
        tokio::time::sleep(LONG).await;
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        (count(&self.controller.reads), count(&self.controller.writes))
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
async fn a_key_waits_until_the_capability_runs(#[case] state: CapabilityPhase) {
    let world = World::new(state.clone(), End::Writes);
    world.queue.add("key");
    assert_eq!(world.done().await, (0, 0));
    world.set(CapabilityPhase::Running(Epoch(2)));
    assert_eq!(world.done().await, (1, 0));
    // A reconcile is running.
    world.set(state);
    assert_eq!(world.done().await, (1, 0));
    world.controller.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 0), "it has written nothing");
    world.set(CapabilityPhase::Running(Epoch(3)));
    assert_eq!(world.done().await, (2, 0), "it is reconciled again");
    world.controller.goes_on.notify_waiters();
    assert_eq!(world.done().await, (2, 1));
    assert_eq!(world.queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn running_work_continues_while_the_definitions_cannot_be_watched() {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), End::Writes);
    assert_eq!(world.done().await, (1, 0));
    world.set(CapabilityPhase::Unknown(Some(Epoch(1))));
    world.controller.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_is_aborted_when_the_process_leads_no_more() {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), End::Writes);
    assert_eq!(world.done().await, (1, 0));
    world.leadership.send_replace(Leadership::Standby);
    world.done().await;
    world.controller.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 0));
    world.queue.add("key");
    assert_eq!(world.queue.depth(), 0, "a standby keeps no keys");
    world.leadership.send_replace(leads(2));
    assert_eq!(world.done().await, (2, 0));
    assert_eq!(*world.controller.terms.lock().unwrap(), [1, 2]);
    assert_eq!(world.controller.ended.load(Ordering::SeqCst), 1);
}

/// Another process may have led in between.
#[tokio::test(start_paused = true)]
async fn a_new_leader_epoch_begins_anew() {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), End::Writes);
    assert_eq!(world.done().await, (1, 0));
    world.leadership.send_replace(leads(2));
    assert_eq!(world.done().await, (2, 0));
    assert_eq!(*world.controller.terms.lock().unwrap(), [1, 2]);
}

/// Whatever else a snapshot says.
#[tokio::test(start_paused = true)]
async fn a_snapshot_that_permits_as_before_begins_nothing() {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), End::Writes);
    assert_eq!(world.done().await, (1, 0));
    world.set(CapabilityPhase::Running(Epoch(2)));
    assert_eq!(world.done().await, (1, 0));
    world.controller.goes_on.notify_waiters();
    assert_eq!(world.done().await, (1, 1));
}

#[rstest]
#[case::fails(End::Fails)]
#[case::panics(End::Panics)]
#[tokio::test(start_paused = true)]
async fn a_failed_key_is_not_tried_while_the_capability_is_off(#[case] end: End) {
    let world = World::new(CapabilityPhase::Running(Epoch(1)), end);
    let (tries, _) = world.done().await;
    assert!(tries > 1, "it is tried again");
    world.set(CapabilityPhase::Disabled);
    let (tries, _) = world.done().await;
    assert_eq!(world.done().await, (tries, 0));
    world.set(CapabilityPhase::Running(Epoch(2)));
    assert!(world.done().await.0 > tries);
}
