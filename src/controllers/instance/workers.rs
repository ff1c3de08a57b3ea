//! The workers of the Instance controller: how many Instances are reconciled at once, and how the results
//! are handled.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use interlock_core::api::object::NamespacedName;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, error, info_span, warn};

use super::context::InstanceContext;
use super::flow::ReconcileOutcome;
use super::{reconcile, unavailable};
use crate::cluster::supervisor::Work;
use crate::runtime::queue::{FairnessGroup, Queue};
use crate::telemetry::panics::{Panicked, caught};

/// Reconciles at most this many Instances at once, besides slow ones.
pub const WORKERS: usize = 32;

/// Of these, at most this many of one OperatorVersion: the objects of its Instances may be behind a webhook
/// that hangs, and others must continue.
const SHARE: usize = 16;

/// Of these, at most this many of one namespace: its editors decide what its packages cost, and others must
/// continue.
const NAMESPACE_SHARE: usize = 24;

/// A longer reconcile is slow: it waits for another party, and a further worker takes its place.
const SLOW: Duration = Duration::from_secs(1);

/// At most this many are slow at once; further ones keep their slots.
const SLOW_MOST: usize = 128;

/// Of these, at most this many of one namespace.
const SLOW_SHARE: usize = 96;

/// How long running reconciles may take to end.
const DRAIN: Duration = Duration::from_secs(10);

/// The workers of one assignment.
#[derive(Clone)]
pub struct WorkerPool {
    /// Start nothing new.
    stop: CancellationToken,
    /// Abort running work.
    cut: CancellationToken,
    workers: TaskTracker,
    slow: Arc<Slow>,
}

/// Number of slow reconciles, in all and of each namespace.
#[derive(Default)]
struct Slow(Mutex<HashMap<String, usize>>);

/// A slow reconcile, until this is dropped.
struct Place<'s> {
    slow: &'s Slow,
    namespace: &'s str,
}

impl Slow {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Changes of the map do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a slow reconcile, if this namespace has one left.
    fn take<'s>(&'s self, namespace: &'s str) -> Option<Place<'s>> {
        let mut counts = self.counts();
        let all: usize = counts.values().sum();
        let own = counts.get(namespace).copied().unwrap_or_default();
        if all >= SLOW_MOST || own >= SLOW_SHARE {
            return None;
        }
        counts.insert(namespace.to_owned(), own + 1);
        Some(Place { slow: self, namespace })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut counts = self.slow.counts();
        if let Some(own) = counts.get_mut(self.namespace) {
            *own -= 1;
            if *own == 0 {
                counts.remove(self.namespace);
            }
        }
    }
}

impl WorkerPool {
    /// A pool without workers yet, until `stop`.
    pub fn new(stop: &CancellationToken) -> Self {
        let (cut, workers) = (CancellationToken::new(), TaskTracker::new());
        Self { stop: stop.child_token(), cut, workers, slow: Arc::default() }
    }

    /// Starts all workers.
    pub fn begin(&self, ctx: &Arc<InstanceContext>) {
        (0..WORKERS).for_each(|_| self.employ(ctx));
    }

    fn employ(&self, ctx: &Arc<InstanceContext>) {
        self.workers.spawn(worker(ctx.clone(), self.clone()));
    }

    /// Starts nothing new, and waits for running work as long as it may take.
    pub async fn end(self) {
        self.stop.cancel();
        self.workers.close();
        if tokio::time::timeout(DRAIN, self.workers.wait()).await.is_err() {
            warn!("reconciles took longer than {} s to end and are cut", DRAIN.as_secs());
            self.cut.cancel();
            self.workers.wait().await;
        }
    }
}

/// A key in work; released however the work ends.
struct InWork<'a> {
    ctx: &'a InstanceContext,
    key: NamespacedName,
}

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.ctx.queue.done(&self.key);
    }
}

/// Instances of one OperatorVersion make objects of the same kinds, and wait for the same; those of one
/// namespace wait for the same rendering threads.
fn lanes(ctx: &InstanceContext, key: &NamespacedName) -> Vec<FairnessGroup> {
    let namespace = FairnessGroup { name: key.namespace.clone(), share: NAMESPACE_SHARE };
    let package =
        ctx.store.package_of(key).map(|name| FairnessGroup { name: name.to_string(), share: SHARE });
    [namespace].into_iter().chain(package).collect()
}

/// Boxed, as a worker may spawn another.
fn worker(ctx: Arc<InstanceContext>, term: WorkerPool) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        loop {
            let key = tokio::select! {
                () = term.stop.cancelled() => return,
                key = ctx.queue.next_in(|key| lanes(&ctx, key)) => key,
            };
            let taken = InWork { ctx: &ctx, key };
            let mut work = pin!(look_at(&ctx, &taken.key));
            let slow = tokio::select! {
                () = term.cut.cancelled() => return,
                () = &mut work => continue,
                () = tokio::time::sleep(SLOW) => term.slow.take(&taken.key.namespace),
            };
            if slow.is_some() {
                ctx.queue.give_place(&taken.key);
                term.employ(&ctx);
            }
            tokio::select! {
                () = term.cut.cancelled() => return,
                () = work => {}
            }
            if slow.is_some() {
                return;
            }
        }
    })
}

/// Reconciles an Instance and requeues it where there is more to do.
async fn look_at(ctx: &InstanceContext, key: &NamespacedName) {
    // The next leader reconciles every Instance.
    let Some(leader_epoch) = ctx.leader_epoch() else { return };
    let span = info_span!("reconcile", controller = "instance", namespace = %key.namespace, name = %key.name);
    let start = Instant::now();
    let looked = caught(look(ctx, key, leader_epoch)).instrument(span).await;
    let result = settle(&ctx.queue, key, looked);
    ctx.metrics.reconciled("instance", result, start.elapsed());
    ctx.metrics.queue_depth("instance", ctx.queue.depth());
}

async fn look(ctx: &InstanceContext, key: &NamespacedName, leader_epoch: u64) -> ReconcileOutcome {
    let says_only = match ctx.assignment().work {
        Work::None | Work::Full => false,
        Work::Say => true,
        Work::Deletions => !ctx.is_deleted(key),
    };
    if says_only {
        unavailable::say(ctx, key).await
    } else {
        reconcile::reconcile(ctx, key, leader_epoch).await
    }
}

/// Requeues after a reconcile, and returns its result for metrics. A panic affects one Instance: it backs
/// off as after any failure, and its worker continues.
fn settle(
    queue: &Queue<NamespacedName>,
    key: &NamespacedName,
    looked: Result<ReconcileOutcome, Panicked>,
) -> &'static str {
    match looked {
        Ok(ReconcileOutcome::Settled) => {
            queue.forget(key);
            "success"
        }
        Ok(ReconcileOutcome::Retry) => {
            queue.retry(key.clone());
            "error"
        }
        Ok(ReconcileOutcome::After(delay)) => {
            queue.add_after(key.clone(), delay);
            "requeue_after"
        }
        Err(panicked) => {
            error!(instance = %key, %panicked, "an Instance was not reconciled; trying again");
            queue.retry(key.clone());
            "panic"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_namespace_leaves_slow_places_to_others() {
        let slow = Slow::default();
        let mut own: Vec<_> = (0..SLOW_SHARE).filter_map(|_| slow.take("a")).collect();
        assert_eq!(own.len(), SLOW_SHARE);
        assert!(slow.take("a").is_none(), "more than its share");
        let others: Vec<_> = (SLOW_SHARE..SLOW_MOST).filter_map(|_| slow.take("b")).collect();
        assert_eq!(own.len() + others.len(), SLOW_MOST);
        assert!(slow.take("c").is_none(), "more than there are");
        own.pop();
        assert!(slow.take("c").is_some());
        drop((own, others));
        assert!(slow.counts().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_instance_that_panics_is_looked_at_again_later_each_time() {
        let queue = Queue::default();
        let key = NamespacedName::new("ns", "inst");
        queue.add(key.clone());
        let mut waits = Vec::new();
        for _ in 0..4 {
            let start = tokio::time::Instant::now();
            assert_eq!(queue.next().await, key);
            waits.push(start.elapsed());
            let looked = caught(async { panic!("a template of somebody's") }).await;
            assert_eq!(settle(&queue, &key, looked), "panic");
            queue.done(&key);
        }
        assert!(waits.is_sorted_by(|one, next| one < next), "{waits:?}");
        assert_eq!(settle(&queue, &key, Ok(ReconcileOutcome::Settled)), "success");
    }
}
