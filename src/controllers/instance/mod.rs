//! The Instance controller: runs the plans of Instances and repairs those that bypassed admission.
//!
//! Event -> queue -> [`subject`] -> [`interlock_core::plan::next`] -> patches ([`writes`]) or a pass of the
//! engine ([`pass`]).

pub mod act;
pub mod asked;
pub mod bereft;
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
pub mod status_cache;
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

/// Processes the queue until `stop`; only while this process leads, and only what the supervisor assigns.
///
/// Each new assignment and each leader epoch enqueues every Instance that needs reconciling. Earlier work
/// may finish, as every write is conditional; after a limit it is aborted, and the next reconcile continues
/// from the state it left.
pub async fn run(ctx: Arc<InstanceContext>, stop: CancellationToken) {
    let (mut leadership, mut work) = (ctx.leadership.clone(), ctx.work.clone());
    ctx.queue.close();
    loop {
        let assignment = *work.borrow_and_update();
        let reign = leadership.borrow_and_update().reign();
        // No work now, or this much is about to start.
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
        // The next assignment enqueues what changes without workers.
        ctx.queue.close();
        if over {
            return;
        }
    }
}

fn begin(ctx: &Arc<InstanceContext>, term: &WorkerPool) {
    ctx.status_cache.clear();
    ctx.store.looked_at(true);
    // Opened before the initial enqueue, so that later events are queued.
    ctx.queue.open();
    ctx.store.restless().into_iter().for_each(|key| ctx.queue.add(key));
    term.begin(ctx);
}

/// Enqueues all Instances that need reconciling whenever the policy changes that guards references into
/// other namespaces.
async fn references_wait(ctx: &InstanceContext) {
    let mut policy = ctx.references.policy();
    while policy.changed().await.is_ok() {
        ctx.store.restless().into_iter().for_each(|key| ctx.queue.add(key));
    }
    std::future::pending().await
}
