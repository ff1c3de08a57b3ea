//! What a controller declares: its keys, how one is reconciled, and when it works.

use std::fmt::Display;
use std::hash::Hash;
use std::time::Duration;

use tracing::Span;

use super::queue::FairnessGroup;

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

/// How many keys a controller reconciles at once.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// At once, besides slow ones.
    pub workers: usize,
    /// Slow ones at once; further ones keep their workers.
    pub slow: usize,
    pub slow_of_tenant: usize,
    /// How long running reconciles may take to end when the gate closes.
    pub drain: Duration,
}

impl WorkerLimits {
    /// This many workers, of which a slow one keeps its place.
    pub const fn of(workers: usize, drain: Duration) -> Self {
        Self { workers, slow: 0, slow_of_tenant: 0, drain }
    }
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
