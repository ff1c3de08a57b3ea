//! Learns since when the policy on plan requests has been in force, and drops earlier requests.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::effect::ApiFailure;
use tracing::{info, warn};

use super::context::InstanceContext;
use super::request_guard::{EnforcementPhase, RequestKey, RevisionState, request};
use crate::cluster::supervisor::Work;
use crate::runtime::index::KeptInstance;

/// How long after a policy's creation every API server enforces it: measured, about a second.
const MARGIN: Duration = Duration::from_secs(3);
/// Pause after a read or a write of the record that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Follows the policy, for ever; acts only as far as the current assignment permits.
pub(super) async fn follow(ctx: &InstanceContext, work: Work) {
    let mut policy = ctx.requests.policy.clone();
    loop {
        let now = policy.borrow_and_update().clone();
        wake(ctx);
        let settling = async {
            if now.guard.holds() && matches!(work, Work::Full | Work::Deletions) {
                ctx.requests.state().enter(&now.revision);
                settle(ctx, &now.revision, work).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = settling => {}
            changed = policy.changed() => if changed.is_err() {
                std::future::pending::<()>().await;
            },
        }
    }
}

/// Learns whether a revision has been in force, or waits until all earlier requests are dropped.
async fn settle(ctx: &InstanceContext, revision: &str, work: Work) {
    if ctx.requests.state().phase == EnforcementPhase::Unread
        && recorded(ctx).await.as_deref() == Some(revision)
    {
        *ctx.requests.state() = RevisionState {
            revision: revision.to_owned(),
            phase: EnforcementPhase::Enforced(BTreeSet::new()),
            recorded: true,
        };
        wake(ctx);
    }
    // Only the complete cache shows all requests.
    if work != Work::Full {
        return;
    }
    if !matches!(ctx.requests.state().phase, EnforcementPhase::Enforced(_)) {
        ctx.requests.state().phase = EnforcementPhase::Settling;
        wake(ctx);
        tokio::time::sleep(MARGIN).await;
        ctx.requests.state().phase = EnforcementPhase::Enforced(all(ctx).collect());
        info!(revision, "requests count from now on: the policy interlock-verbs is in force");
        wake(ctx);
    }
    if !ctx.requests.state().recorded {
        let mut changes = ctx.store.changes();
        while !all_dropped(ctx) {
            // The store lives as long as the process.
            let _ = changes.changed().await;
        }
        record(ctx, revision).await;
        ctx.requests.state().recorded = true;
    }
}

/// Whether all earlier requests are dropped.
fn all_dropped(ctx: &InstanceContext) -> bool {
    let still: BTreeSet<RequestKey> = all(ctx).collect();
    let mut state = ctx.requests.state();
    let EnforcementPhase::Enforced(before) = &mut state.phase else { return false };
    before.retain(|request| still.contains(request));
    before.is_empty()
}

/// All present requests.
fn all(ctx: &InstanceContext) -> impl Iterator<Item = RequestKey> {
    ctx.store.to_reconcile().into_iter().filter_map(|key| match ctx.store.instance(&key) {
        KeptInstance::Whole(object) => request(&key, &object),
        KeptInstance::AtRest { .. } | KeptInstance::Nothing => None,
    })
}

/// Enqueues all Instances with a request.
fn wake(ctx: &InstanceContext) {
    all(ctx).for_each(|(key, ..)| ctx.queue.add(key));
}

/// The last recorded revision; `None` also where this process may not read it.
async fn recorded(ctx: &InstanceContext) -> Option<String> {
    loop {
        match ctx.bookkeeping.enforced_revision(&ctx.own_namespace).await {
            Ok(revision) => return revision,
            Err(ApiFailure { code: 403, message, .. }) => {
                warn!(
                    message,
                    "whether requests were guarded before is not known: `interlock render rbac` has the right"
                );
                return None;
            }
            Err(failure) => {
                warn!(message = failure.message, "whether requests were guarded before could not be read");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

async fn record(ctx: &InstanceContext, revision: &str) {
    while let Err(failure) = ctx.bookkeeping.record_enforced(&ctx.own_namespace, revision).await {
        warn!(message = failure.message, "that requests are guarded could not be recorded; trying again");
        tokio::time::sleep(AFTER_FAILURE).await;
    }
}
