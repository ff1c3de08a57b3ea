//! The Instance controller: runs the plans of Instances and mends what admission never saw.
//!
//! Event -> queue -> [`subject`] -> [`crate::plan::next`] -> patches ([`writes`]) or a pass of
//! the engine ([`pass`]).

pub mod act;
pub mod books;
pub mod context;
pub mod flow;
pub mod pass;
pub mod ready;
pub mod reconcile;
pub mod record;
pub mod refusal;
pub mod spec_secret;
pub mod subject;
pub mod verbs;
pub mod writes;

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};

use crate::api::meta;
use crate::api::object::{NamespacedName, annotation};
use crate::cluster::lease::Leadership;
pub use context::Context;
use flow::Outcome;

/// Reconciles at most this many Instances at once.
pub const WORKERS: usize = 16;

/// Works on the queue until it is told to stop; only while this process leads.
///
/// When leadership comes, every Instance is looked at once; what was begun when it goes is
/// finished, as every write is conditional.
pub async fn run(ctx: Arc<Context>, stop: CancellationToken) {
    let mut leadership = ctx.leadership.clone();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            changed = leadership.wait_for(Leadership::holds) => if changed.is_err() { return },
        }
        ctx.books.clear();
        ctx.store.instance_keys().into_iter().for_each(|key| ctx.queue.add(key));
        let term = stop.child_token();
        let workers: Vec<_> = (0..WORKERS).map(|_| worker(ctx.clone(), term.clone())).collect();
        let lost = async {
            // An error means that the elector is gone, which is a loss as well.
            let _ = leadership.wait_for(|leadership| !leadership.holds()).await;
            term.cancel();
        };
        tokio::select! {
            () = async { tokio::join!(futures::future::join_all(workers), lost); } => {}
            () = requests_wait(&ctx) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Looks at requests again whenever what guards them has changed.
async fn requests_wait(ctx: &Context) {
    let mut guard = ctx.guard.clone();
    while guard.changed().await.is_ok() {
        let asks = |key: &NamespacedName| {
            let object = ctx.store.get_instance(key);
            object.is_some_and(|object| annotation(&object, meta::REQUEST).is_some())
        };
        ctx.store.instance_keys().into_iter().filter(asks).for_each(|key| ctx.queue.add(key));
    }
    std::future::pending().await
}

async fn worker(ctx: Arc<Context>, stop: CancellationToken) {
    loop {
        let key = tokio::select! {
            () = stop.cancelled() => return,
            key = ctx.queue.next() => key,
        };
        if !ctx.leads() {
            // Whoever leads next looks at every Instance.
            ctx.queue.done(&key);
            continue;
        }
        let span =
            info_span!("reconcile", controller = "instance", namespace = %key.namespace, name = %key.name);
        let start = Instant::now();
        let outcome = reconcile::reconcile(&ctx, &key).instrument(span).await;
        let result = match outcome {
            Outcome::Settled => {
                ctx.queue.forget(&key);
                "success"
            }
            Outcome::Retry => {
                ctx.queue.retry(key.clone());
                "error"
            }
            Outcome::After(delay) => {
                ctx.queue.add_after(key.clone(), delay);
                "requeue_after"
            }
        };
        ctx.metrics.reconciled("instance", result, start.elapsed());
        ctx.metrics.queue_depth("instance", ctx.queue.depth());
        ctx.queue.done(&key);
    }
}
