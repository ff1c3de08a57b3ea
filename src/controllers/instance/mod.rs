//! The Instance controller: runs the plans of Instances and mends what admission never saw.
//!
//! Event -> queue -> [`subject`] -> [`interlock_core::plan::next`] -> patches ([`writes`]) or a pass of
//! the engine ([`pass`]).

pub mod act;
pub mod asked;
pub mod bereft;
pub mod books;
pub mod context;
pub mod enforcement;
mod engine;
pub mod flow;
mod missing;
pub mod pass;
pub mod ready;
pub mod reconcile;
pub mod record;
pub mod references;
pub mod refusal;
pub mod requests;
pub mod send;
mod spec_archive;
mod spec_migration;
mod spec_secrets;
pub mod subject;
pub mod verbs;
mod workers;
pub mod writes;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::cluster::supervisor::Work;
use crate::controllers::capabilities::INSTANCES;
pub use context::InstanceContext;
pub use workers::WORKERS;
use workers::WorkerPool;

/// Works on the queue until it is told to stop; only while this process leads, and only what the
/// supervisor assigns.
///
/// At each new assignment, and when leadership comes, every Instance that is not at rest is
/// looked at. What was begun before is finished, as every write is conditional; where that takes too long it is cut,
/// and found as it is by whoever looks next.
pub async fn run(ctx: Arc<InstanceContext>, stop: CancellationToken) {
    let (mut leadership, mut work) = (ctx.leadership.clone(), ctx.work.clone());
    ctx.queue.close();
    loop {
        let assignment = *work.borrow_and_update();
        let reign = leadership.borrow_and_update().reign();
        // Nothing is done now, or this much is about to be.
        let work_now = if reign.is_some() { assignment.work } else { Work::None };
        ctx.supervisor.at_work(INSTANCES, assignment, work_now);
        let term = WorkerPool::new(&stop);
        match work_now {
            Work::None => {}
            Work::Say | Work::Deletions | Work::Full => begin(&ctx, &term),
        }
        // An error means that the elector or the supervisor is gone, and the process with it.
        let over = tokio::select! {
            () = enforcement::follow(&ctx, work_now) => true,
            () = references_wait(&ctx) => true,
            () = bereft::follow(&ctx) => true,
            () = stop.cancelled() => true,
            changed = leadership.wait_for(|now| now.reign() != reign) => changed.is_err(),
            changed = work.changed() => changed.is_err(),
        };
        term.end().await;
        ctx.store.looked_at(false);
        // What comes to pass while nobody works is found at the next assignment.
        ctx.queue.close();
        if over {
            return;
        }
    }
}

fn begin(ctx: &Arc<InstanceContext>, term: &WorkerPool) {
    ctx.books.clear();
    ctx.store.looked_at(true);
    // Before the look at what is there: what happens after that is queued.
    ctx.queue.open();
    ctx.store.restless().into_iter().for_each(|key| ctx.queue.add(key));
    term.begin(ctx);
}

/// Looks again at what has something to do whenever the policy has changed that guards references into
/// other namespaces.
async fn references_wait(ctx: &InstanceContext) {
    let mut policy = ctx.references.policy();
    while policy.changed().await.is_ok() {
        ctx.store.restless().into_iter().for_each(|key| ctx.queue.add(key));
    }
    std::future::pending().await
}
