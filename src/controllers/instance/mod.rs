//! The Instance controller: runs the plans of Instances and mends what admission never saw.
//!
//! Event -> queue -> [`subject`] -> [`crate::plan::next`] -> patches ([`writes`]) or a pass of
//! the engine ([`pass`]).

pub mod act;
pub mod asked;
pub mod bereft;
pub mod books;
pub mod context;
pub mod flow;
mod missing;
pub mod pass;
pub mod ready;
pub mod reconcile;
pub mod record;
pub mod refusal;
pub mod send;
pub mod spec_secret;
pub mod subject;
pub mod verbs;
pub mod writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span, warn};

use crate::api::meta;
use crate::api::object::{NamespacedName, annotation};
use crate::cluster::queue::Lane;
use crate::cluster::supervisor::Work;
use crate::controllers::capabilities::INSTANCES;
use crate::controllers::observe::Kept;
pub use context::Context;
use flow::Outcome;

/// Reconciles at most this many Instances at once.
pub const WORKERS: usize = 32;

/// Of these, at most this many of one OperatorVersion: what its Instances make may be behind a
/// webhook that hangs, and others go on.
pub const SHARE: usize = 8;

/// How long what was begun may take to end.
const DRAIN: Duration = Duration::from_secs(10);

/// Works on the queue until it is told to stop; only while this process leads, and only what the
/// supervisor assigns.
///
/// At each new assignment, and when leadership comes, every Instance that is not at rest is
/// looked at. What was
/// begun before is finished, as every write is conditional; where that takes too long it is cut,
/// and found as it is by whoever looks next.
pub async fn run(ctx: Arc<Context>, stop: CancellationToken) {
    let (mut leadership, mut work) = (ctx.leadership.clone(), ctx.work.clone());
    loop {
        let assignment = *work.borrow_and_update();
        let leads = leadership.borrow_and_update().holds();
        // Nothing is done now, or this much is about to be.
        let work_now = if leads { assignment.work } else { Work::None };
        ctx.supervisor.at_work(INSTANCES, assignment, work_now);
        let term = stop.child_token();
        let workers = match work_now {
            Work::None => Vec::new(),
            Work::Say | Work::Deletions | Work::Full => begin(&ctx, &term),
        };
        // An error means that the elector or the supervisor is gone, and the process with it.
        let over = tokio::select! {
            () = requests_wait(&ctx) => true,
            () = bereft::follow(&ctx) => true,
            () = stop.cancelled() => true,
            changed = leadership.wait_for(|now| now.holds() != leads) => changed.is_err(),
            changed = work.changed() => changed.is_err(),
        };
        term.cancel();
        end(workers).await;
        ctx.store.looked_at(false);
        if over {
            return;
        }
    }
}

fn begin(ctx: &Arc<Context>, term: &CancellationToken) -> Vec<JoinHandle<()>> {
    ctx.books.clear();
    ctx.store.looked_at(true);
    ctx.store.restless().into_iter().for_each(|key| ctx.queue.add(key));
    (0..WORKERS).map(|_| tokio::spawn(worker(ctx.clone(), term.clone()))).collect()
}

async fn end(workers: Vec<JoinHandle<()>>) {
    let cut: Vec<_> = workers.iter().map(JoinHandle::abort_handle).collect();
    if tokio::time::timeout(DRAIN, futures::future::join_all(workers)).await.is_err() {
        warn!("reconciles took longer than {} s to end and are cut", DRAIN.as_secs());
        cut.iter().for_each(AbortHandle::abort);
    }
}

/// A key in work; given back however the work ends.
struct InWork<'a> {
    ctx: &'a Context,
    key: NamespacedName,
}

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.ctx.queue.done(&self.key);
    }
}

/// Looks at requests again whenever what guards them has changed.
async fn requests_wait(ctx: &Context) {
    let mut guard = ctx.guard.clone();
    while guard.changed().await.is_ok() {
        let asks = |key: &NamespacedName| {
            let kept = ctx.store.instance(key);
            matches!(kept, Kept::Whole(object) if annotation(&object, meta::REQUEST).is_some())
        };
        ctx.store.restless().into_iter().filter(asks).for_each(|key| ctx.queue.add(key));
    }
    std::future::pending().await
}

/// Instances of one OperatorVersion make the same kinds of objects, and wait for the same.
fn lane(ctx: &Context, key: &NamespacedName) -> Option<Lane> {
    let name = ctx.store.package_of(key)?.to_string();
    Some(Lane { name, share: SHARE })
}

async fn worker(ctx: Arc<Context>, stop: CancellationToken) {
    loop {
        let key = tokio::select! {
            () = stop.cancelled() => return,
            key = ctx.queue.next_in(|key| lane(&ctx, key)) => key,
        };
        let taken = InWork { ctx: &ctx, key };
        let key = &taken.key;
        if !ctx.leads() {
            // Whoever leads next looks at every Instance.
            continue;
        }
        let says_only = match ctx.assignment().work {
            Work::None | Work::Full => false,
            Work::Say => true,
            Work::Deletions => !ctx.is_deleted(key),
        };
        let span =
            info_span!("reconcile", controller = "instance", namespace = %key.namespace, name = %key.name);
        let start = Instant::now();
        let outcome = if says_only {
            bereft::say(&ctx, key).instrument(span).await
        } else {
            reconcile::reconcile(&ctx, key).instrument(span).await
        };
        let result = match outcome {
            Outcome::Settled => {
                ctx.queue.forget(key);
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
    }
}
