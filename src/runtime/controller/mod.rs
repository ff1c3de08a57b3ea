//! A controller: keys from a queue, reconciled one by one while a gate is open.
//!
//! The gate says when: while this process leads, and what the supervisor assigns. Each time it opens, or
//! opens for something else, every key that needs reconciling is enqueued; when it closes, the workers end
//! and the queue drops its keys. Work that was begun may finish, as every write is conditional; after a limit
//! it is aborted, and the next reconcile continues from the state it left.

use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::queue::{FairnessGroup, Queue};
use super::workers::{WorkerLimits, WorkerPool};
use crate::telemetry::metrics::Metrics;

/// What follows a reconcile, as kube's `Action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Waits for the next change.
    AwaitChange,
    /// Reconciles again after this time.
    Requeue(Duration),
    /// It failed: reconciles again after the key's back-off.
    Retry,
}

/// When a controller works.
pub trait Gate: Send {
    /// What it may do until the gate changes.
    type Term: Copy + Send + Sync;

    /// The present term; `None` while it has no work.
    fn term(&mut self) -> Option<Self::Term>;

    /// Waits until the gate has changed since [`Self::term`]; `false` where the process ends.
    fn changed(&mut self) -> impl Future<Output = bool> + Send;
}

/// A client of the runtime: what is reconciled, and how.
pub trait Controller: Send + Sync + 'static {
    /// Identifies what is reconciled at once.
    type Key: Clone + Display + Eq + Hash + Send + Sync + 'static;
    /// What the gate permits.
    type Term: Copy + Send + Sync + 'static;

    /// Name in metrics, logs and spans.
    fn name(&self) -> &'static str;

    /// How many keys are reconciled at once.
    fn limits(&self) -> WorkerLimits;

    /// The groups of a key; keys of one group share a part of the workers.
    fn groups(&self, _key: &Self::Key) -> Vec<FairnessGroup> {
        Vec::new()
    }

    /// The tenant who decides what a reconcile of this key costs; each has a share of the slow places.
    fn tenant<'k>(&self, _key: &'k Self::Key) -> &'k str {
        ""
    }

    /// The span of a reconcile.
    fn span(&self, key: &Self::Key) -> Span {
        tracing::info_span!("reconcile", controller = self.name(), key = %key)
    }

    /// A term begins: drops what was remembered of an earlier one.
    fn begin(&self, _term: Self::Term) {}

    /// All keys that need reconciling when a term begins, each with a delay.
    fn keys(&self) -> Vec<(Self::Key, Duration)>;

    /// Runs beside the workers until the term ends, and where there is none; wakes keys for events that no
    /// watch reports.
    fn beside(&self, _term: Option<Self::Term>) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Reconciles one key.
    fn reconcile(&self, key: &Self::Key, term: Self::Term) -> impl Future<Output = Action> + Send;

    /// The workers of a term have ended.
    fn end(&self) {}
}

/// Runs a controller until `stop`, or until the gate ends with the process.
pub async fn run<C: Controller>(
    controller: Arc<C>,
    queue: Arc<Queue<C::Key>>,
    mut gate: impl Gate<Term = C::Term>,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
) {
    queue.close();
    loop {
        let term = gate.term();
        let workers = WorkerPool::new(controller.limits(), &stop);
        if let Some(term) = term {
            controller.begin(term);
            // Opened before the first keys, so that later events are queued.
            queue.open();
            controller.keys().into_iter().for_each(|(key, delay)| queue.add_after(key, delay));
            workers.begin(&controller, &queue, &metrics, term);
        }
        let over = tokio::select! {
            () = controller.beside(term) => true,
            () = stop.cancelled() => true,
            goes_on = gate.changed() => !goes_on,
        };
        workers.end(controller.name()).await;
        if term.is_some() {
            controller.end();
        }
        // The next term enqueues what changes meanwhile.
        queue.close();
        if over {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
