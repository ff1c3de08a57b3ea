//! The workers of a controller: how many keys are reconciled at once, and how the results are handled.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, error, warn};

use super::controller::{Action, Controller, WorkerLimits};
use super::queue::Queue;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::panics::{Panicked, caught};

/// A longer reconcile is slow: it waits for another party, and a further worker takes its place.
const SLOW: Duration = Duration::from_secs(1);

/// The workers of one term.
#[derive(Clone)]
pub(super) struct WorkerPool {
    limits: WorkerLimits,
    /// Start nothing new.
    stop: CancellationToken,
    /// Abort running work.
    abort: CancellationToken,
    workers: TaskTracker,
    slow: Arc<Slow>,
}

/// Number of slow reconciles of each tenant.
#[derive(Default)]
struct Slow(Mutex<HashMap<String, usize>>);

/// A slow reconcile, until this is dropped.
struct SlowPlace<'s> {
    slow: &'s Slow,
    tenant: &'s str,
}

impl Slow {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Changes of the map do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a slow reconcile, if this tenant has one left.
    fn take<'s>(&'s self, tenant: &'s str, limits: &WorkerLimits) -> Option<SlowPlace<'s>> {
        let mut counts = self.counts();
        let all: usize = counts.values().sum();
        let own = counts.get(tenant).copied().unwrap_or_default();
        if all >= limits.slow || own >= limits.slow_of_tenant {
            return None;
        }
        counts.insert(tenant.to_owned(), own + 1);
        Some(SlowPlace { slow: self, tenant })
    }
}

impl Drop for SlowPlace<'_> {
    fn drop(&mut self) {
        let mut counts = self.slow.counts();
        if let Some(own) = counts.get_mut(self.tenant) {
            *own -= 1;
            if *own == 0 {
                counts.remove(self.tenant);
            }
        }
    }
}

/// What every worker of a term needs.
struct Shared<C: Controller> {
    controller: Arc<C>,
    queue: Arc<Queue<C::Key>>,
    metrics: Arc<Metrics>,
    term: C::Term,
    pool: WorkerPool,
}

impl WorkerPool {
    /// A pool without workers yet, until `stop`.
    pub(super) fn new(limits: WorkerLimits, stop: &CancellationToken) -> Self {
        let (abort, workers) = (CancellationToken::new(), TaskTracker::new());
        Self { limits, stop: stop.child_token(), abort, workers, slow: Arc::default() }
    }

    /// Starts all workers.
    pub(super) fn begin<C: Controller>(
        &self,
        controller: &Arc<C>,
        queue: &Arc<Queue<C::Key>>,
        metrics: &Arc<Metrics>,
        term: C::Term,
    ) {
        let shared = Arc::new(Shared {
            controller: controller.clone(),
            queue: queue.clone(),
            metrics: metrics.clone(),
            term,
            pool: self.clone(),
        });
        (0..self.limits.workers).for_each(|_| self.spawn_worker(&shared));
    }

    fn spawn_worker<C: Controller>(&self, shared: &Arc<Shared<C>>) {
        self.workers.spawn(worker(shared.clone()));
    }

    /// Starts nothing new, and waits for running work as long as it may take.
    pub(super) async fn end(self, controller: &'static str) {
        self.stop.cancel();
        self.workers.close();
        if tokio::time::timeout(self.limits.drain, self.workers.wait()).await.is_err() {
            if !self.limits.drain.is_zero() {
                let seconds = self.limits.drain.as_secs();
                warn!(controller, seconds, "reconciles took too long to end and are aborted");
            }
            self.abort.cancel();
            self.workers.wait().await;
        }
    }
}

/// A key in work; released however the work ends.
struct InWork<'a, K: Clone + Eq + Hash> {
    queue: &'a Queue<K>,
    key: K,
}

impl<K: Clone + Eq + Hash> Drop for InWork<'_, K> {
    fn drop(&mut self) {
        self.queue.done(&self.key);
    }
}

/// Boxed, as a worker may spawn another.
fn worker<C: Controller>(shared: Arc<Shared<C>>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Shared { controller, queue, pool, .. } = &*shared;
        loop {
            let key = tokio::select! {
                () = pool.stop.cancelled() => return,
                key = queue.next_in(|key| controller.groups(key)) => key,
            };
            let taken = InWork { queue, key };
            let mut work = pin!(shared.reconcile(&taken.key));
            let slow = tokio::select! {
                () = pool.abort.cancelled() => return,
                () = &mut work => continue,
                () = tokio::time::sleep(SLOW) => {
                    pool.slow.take(controller.tenant(&taken.key), &pool.limits)
                }
            };
            if slow.is_some() {
                queue.give_place(&taken.key);
                pool.spawn_worker(&shared);
            }
            tokio::select! {
                () = pool.abort.cancelled() => return,
                () = work => {}
            }
            if slow.is_some() {
                return;
            }
        }
    })
}

impl<C: Controller> Shared<C> {
    /// Reconciles a key and requeues it where there is more to do.
    async fn reconcile(&self, key: &C::Key) {
        let name = self.controller.name();
        let span = self.controller.span(key);
        let start = Instant::now();
        let reconciled = caught(self.controller.reconcile(key, self.term)).instrument(span).await;
        let result = requeue(name, &self.queue, key, reconciled);
        self.metrics.reconciled(name, result, start.elapsed());
        self.metrics.queue_depth(name, self.queue.depth());
    }
}

/// Requeues after a reconcile, and returns its result for metrics. A panic affects one key: it backs off as
/// after any failure, and its worker continues.
fn requeue<K: Clone + Display + Eq + Hash>(
    controller: &'static str,
    queue: &Queue<K>,
    key: &K,
    reconciled: Result<Action, Panicked>,
) -> &'static str {
    match reconciled {
        Ok(Action::AwaitChange) => {
            queue.forget(key);
            "success"
        }
        Ok(Action::Retry) => {
            queue.retry(key.clone());
            "error"
        }
        Ok(Action::Requeue(delay)) => {
            queue.add_after(key.clone(), delay);
            "requeue_after"
        }
        Err(panicked) => {
            error!(controller, %key, %panicked, "a reconcile panicked; trying again");
            queue.retry(key.clone());
            "panic"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WorkerLimits =
        WorkerLimits { workers: 4, slow: 12, slow_of_tenant: 9, drain: Duration::ZERO };

    #[test]
    fn one_tenant_leaves_slow_places_to_others() {
        let slow = Slow::default();
        let mut own: Vec<_> = (0..9).filter_map(|_| slow.take("a", &LIMITS)).collect();
        assert_eq!(own.len(), 9);
        assert!(slow.take("a", &LIMITS).is_none(), "more than its share");
        let others: Vec<_> = (9..12).filter_map(|_| slow.take("b", &LIMITS)).collect();
        assert_eq!(own.len() + others.len(), 12);
        assert!(slow.take("c", &LIMITS).is_none(), "more than there are");
        own.pop();
        assert!(slow.take("c", &LIMITS).is_some());
        drop((own, others));
        assert!(slow.counts().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_panics_is_reconciled_later_each_time() {
        let queue = Queue::default();
        queue.add("key");
        let mut waits = Vec::new();
        for _ in 0..4 {
            let start = tokio::time::Instant::now();
            assert_eq!(queue.next().await, "key");
            waits.push(start.elapsed());
            let panicked = caught(async { panic!("a template") }).await;
            assert_eq!(requeue("test", &queue, &"key", panicked), "panic");
            queue.done(&"key");
        }
        assert!(waits.is_sorted_by(|one, next| one < next), "{waits:?}");
        assert_eq!(requeue("test", &queue, &"key", Ok(Action::AwaitChange)), "success");
    }
}
