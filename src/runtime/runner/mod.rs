//! Runs a controller: keys from a queue, reconciled one by one while a gate is open.
//!
//! The gate says when: while this process leads, and what the supervisor assigns. Each time it opens, or
//! opens for something else, every key that needs reconciling is enqueued; when it closes, the workers end
//! and the queue drops its keys. Work that was begun may finish, as every write is conditional; after a limit
//! it is aborted, and the next reconcile continues from the state it left.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::controller::{Controller, Gate};
use super::queue::Queue;
use super::workers::WorkerPool;
use crate::telemetry::metrics::Metrics;

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
