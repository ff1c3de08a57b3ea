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

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, info_span, warn};

use crate::api::meta;
use crate::api::object::{NamespacedName, annotation};
use crate::cluster::queue::Lane;
use crate::cluster::supervisor::Work;
use crate::controllers::capabilities::INSTANCES;
use crate::controllers::observe::Kept;
pub use context::Context;
use flow::Outcome;

/// Reconciles at most this many Instances at once, beside those that are slow.
pub const WORKERS: usize = 32;

/// Of these, at most this many of one OperatorVersion: what its Instances make may be behind a
/// webhook that hangs, and others go on.
pub const SHARE: usize = 16;

/// What takes longer than this is slow: it waits for somebody, and another is begun in its place.
const SLOW: Duration = Duration::from_secs(1);

/// At most this many are slow at once; further ones keep their places.
const SLOW_MOST: usize = 128;

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
        let term = Term::new(&stop);
        match work_now {
            Work::None => {}
            Work::Say | Work::Deletions | Work::Full => begin(&ctx, &term),
        }
        // An error means that the elector or the supervisor is gone, and the process with it.
        let over = tokio::select! {
            () = requests_wait(&ctx) => true,
            () = bereft::follow(&ctx) => true,
            () = stop.cancelled() => true,
            changed = leadership.wait_for(|now| now.holds() != leads) => changed.is_err(),
            changed = work.changed() => changed.is_err(),
        };
        term.end().await;
        ctx.store.looked_at(false);
        if over {
            return;
        }
    }
}

fn begin(ctx: &Arc<Context>, term: &Term) {
    ctx.books.clear();
    ctx.store.looked_at(true);
    ctx.store.restless().into_iter().for_each(|key| ctx.queue.add(key));
    (0..WORKERS).for_each(|_| term.employ(ctx));
}

/// The time in which one assignment holds, and its workers.
#[derive(Clone)]
struct Term {
    /// Nothing new is begun.
    stop: CancellationToken,
    /// What was begun is left as it is.
    cut: CancellationToken,
    workers: TaskTracker,
    slow: Arc<Semaphore>,
}

impl Term {
    fn new(stop: &CancellationToken) -> Self {
        let (cut, workers) = (CancellationToken::new(), TaskTracker::new());
        Self { stop: stop.child_token(), cut, workers, slow: Arc::new(Semaphore::new(SLOW_MOST)) }
    }

    fn employ(&self, ctx: &Arc<Context>) {
        self.workers.spawn(worker(ctx.clone(), self.clone()));
    }

    async fn end(self) {
        self.stop.cancel();
        self.workers.close();
        if tokio::time::timeout(DRAIN, self.workers.wait()).await.is_err() {
            warn!("reconciles took longer than {} s to end and are cut", DRAIN.as_secs());
            self.cut.cancel();
            self.workers.wait().await;
        }
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

/// Boxed, as a worker may employ another.
fn worker(ctx: Arc<Context>, term: Term) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        loop {
            let key = tokio::select! {
                () = term.stop.cancelled() => return,
                key = ctx.queue.next_in(|key| lane(&ctx, key)) => key,
            };
            let taken = InWork { ctx: &ctx, key };
            let mut work = pin!(look_at(&ctx, &taken.key));
            let slow = tokio::select! {
                () = term.cut.cancelled() => return,
                () = &mut work => continue,
                () = tokio::time::sleep(SLOW) => term.slow.try_acquire(),
            };
            if slow.is_ok() {
                ctx.queue.give_place(&taken.key);
                term.employ(&ctx);
            }
            tokio::select! {
                () = term.cut.cancelled() => return,
                () = work => {}
            }
            if slow.is_ok() {
                return;
            }
        }
    })
}

/// Looks at an Instance and sees to it that it is looked at again where there is more to do.
async fn look_at(ctx: &Context, key: &NamespacedName) {
    if !ctx.leads() {
        // Whoever leads next looks at every Instance.
        return;
    }
    let says_only = match ctx.assignment().work {
        Work::None | Work::Full => false,
        Work::Say => true,
        Work::Deletions => !ctx.is_deleted(key),
    };
    let span = info_span!("reconcile", controller = "instance", namespace = %key.namespace, name = %key.name);
    let start = Instant::now();
    let outcome = if says_only {
        bereft::say(ctx, key).instrument(span).await
    } else {
        reconcile::reconcile(ctx, key).instrument(span).await
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
