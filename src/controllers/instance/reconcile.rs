//! Reconciles one Instance: decide, execute, repeat, until it waits or is settled.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use interlock_core::api::stamp::Applied;
use interlock_core::effect::ApiFailure;
use interlock_core::kinds::namespace::NamespaceLister as _;
use interlock_core::rejection::Rejection;
use interlock_kudo::instance::change::next;
use interlock_kudo::instance::change::next::{Deletion, FoundStamp, InstanceFacts, Next, SpecSource};
use interlock_kudo::package::Package;
use interlock_kudo::package::time_limits::{Cleanup, RunLimits, Words};
use jiff::Timestamp;
use serde_json::Value;
use tracing::{debug, warn};

use super::context::InstanceContext;
use super::view::InstanceView;
use super::{api_calls, execute, no_room, patches, plan_intent, plan_request, record, refusal, spec_archive};
use crate::cluster::failure_reports;
use crate::cluster::watch::WatchChange;
use crate::runtime::controller::Action;
use crate::runtime::index::KeptInstance;
use crate::runtime::rounds::Flow;

/// Steps of one reconcile; each ends in a write or ends the reconcile.
const STEPS: usize = 64;

/// What a failed write of an Instance's own records means.
const NOT_RECORDED: &str = "what Interlock records of it was not written";

/// Reconciles one Instance, while the leader epoch lasts.
pub async fn reconcile(ctx: &InstanceContext, key: &NamespacedName, leader_epoch: u64) -> Action {
    let outcome = steps(ctx, key, leader_epoch).await;
    in_time(ctx, key);
    if outcome == Action::AwaitChange {
        ctx.store.unpin(key);
    }
    outcome
}

async fn steps(ctx: &InstanceContext, key: &NamespacedName, leader_epoch: u64) -> Action {
    for _ in 0..STEPS {
        if ctx.leader_epoch() != Some(leader_epoch) {
            // Another process may have led since, and continued from this state.
            return Action::AwaitChange;
        }
        let subject = match subject(ctx, key).await {
            Ok(subject) => subject,
            Err(outcome) => return outcome,
        };
        let uid = subject.uid().to_owned();
        match step(ctx, subject).await {
            Ok(Flow::Again) => {}
            Ok(Flow::End(outcome)) => {
                ctx.reports.settle(&of(key));
                return outcome;
            }
            Err(failure) => match recover(ctx, key, &uid, &failure).await {
                Flow::Again => {}
                Flow::End(outcome) => return outcome,
            },
        }
    }
    warn!(instance = %key, "a reconcile took too many steps and gives way");
    Action::Retry
}

/// The Instance as last known, or how the reconcile ends without it.
async fn subject(ctx: &InstanceContext, key: &NamespacedName) -> Result<InstanceView, Action> {
    match ctx.store.instance(key) {
        // Nothing to do, and `Ready` is current: no request.
        KeptInstance::AtRest { well: true } => Err(Action::AwaitChange),
        _ => whole(ctx, key).await,
    }
}

/// The Instance as last known; reads it where only its row is cached.
pub(super) async fn whole(ctx: &InstanceContext, key: &NamespacedName) -> Result<InstanceView, Action> {
    let object = match ctx.store.instance(key) {
        KeptInstance::Whole(object) => object,
        KeptInstance::AtRest { .. } => look(ctx, key).await?,
        KeptInstance::Nothing => {
            ctx.status_cache.forget(key);
            ctx.inventories.forget(key);
            ctx.no_room.forget(key);
            ctx.reports.settle(&of(key));
            return Err(Action::AwaitChange);
        }
    };
    match InstanceView::read(key, object.clone()) {
        Ok(subject) => Ok(subject),
        Err(error) => {
            warn!(%error, "an Instance is left alone");
            let uid = meta_str(&object, "uid").unwrap_or_default();
            ctx.reports.report(&of(key), uid, meta::event::UNREADABLE, error.to_string()).await;
            Err(Action::AwaitChange)
        }
    }
}

/// Reads an Instance of which only the row is cached.
async fn look(ctx: &InstanceContext, key: &NamespacedName) -> Result<Arc<Value>, Action> {
    // Another Instance of that name may be created during the read.
    let known = ctx.store.uid_of(key);
    match ctx.bookkeeping.instance(key).await {
        Ok(Some(object)) => Ok(ctx.store.pin(key, object)),
        Ok(None) => {
            ctx.watches.missed(key, known.as_deref());
            Err(Action::AwaitChange)
        }
        Err(error) => {
            warn!(instance = %key, message = %error.message, "an Instance could not be read");
            Err(Action::Retry)
        }
    }
}

/// Reads an Instance of which a write has failed; `None` where that shows nothing new.
async fn read_again(ctx: &InstanceContext, key: &NamespacedName, uid: &str) -> Option<Flow> {
    match ctx.bookkeeping.instance(key).await {
        Ok(Some(object)) => ctx.saw(key, &WatchChange::Applied(object)).then_some(Flow::Again),
        Ok(None) => {
            ctx.watches.missed(key, Some(uid));
            Some(Flow::End(Action::AwaitChange))
        }
        Err(error) => {
            warn!(instance = %key, message = %error.message, "an Instance could not be read");
            None
        }
    }
}

/// After a failed write: reads again after a conflict, waits after anything else.
async fn recover(ctx: &InstanceContext, key: &NamespacedName, uid: &str, failure: &ApiFailure) -> Flow {
    // The API server answers 422 when a JSON patch's test fails.
    if matches!(failure.code, 404 | 409 | 422)
        && let Some(flow) = read_again(ctx, key, uid).await
    {
        return flow;
    }
    warn!(instance = %key, code = failure.code, message = %failure.message, "a write failed; trying again");
    if failure.is_too_large()
        && let Ok(subject) = whole(ctx, key).await
        && let Ok(stamped) = stamped_spec(ctx, &subject).await
        && let Some(Ok(flow)) = no_room::end(ctx, &subject, stamped).await
    {
        return flow;
    }
    if failure.code != 409 && !stalled_by(ctx, key, failure).await {
        ctx.reports.failed(&of(key), uid, NOT_RECORDED, failure).await;
    }
    Flow::End(Action::Retry)
}

/// Says in `Stalled` what keeps a plan from going on, where only a person can help; whether it is said. It goes with
/// the next status of the run.
async fn stalled_by(ctx: &InstanceContext, key: &NamespacedName, failure: &ApiFailure) -> bool {
    let Ok(subject) = whole(ctx, key).await else { return false };
    if subject.plan().is_empty() || failure.code == 0 || !Rejection::of(failure).kind.needs_person() {
        return false;
    }
    let (reason, message) = failure_reports::text(NOT_RECORDED, failure);
    execute::stall(ctx, &subject, reason, message).await.is_ok()
}

fn of(key: &NamespacedName) -> ObjectKey {
    let gvk = Gvk::new(meta::KUDO_API_VERSION, "Instance");
    ObjectKey { gvk, namespace: Some(key.namespace.clone()), name: key.name.clone() }
}

async fn step(ctx: &InstanceContext, subject: InstanceView) -> Result<Flow, ApiFailure> {
    if subject.deleted_at().is_none() && ctx.no_room.holds(&subject) {
        return Ok(Flow::End(Action::AwaitChange));
    }
    let subject = match restore(ctx, &subject).await? {
        Restoration::Unneeded => subject,
        Restoration::Unseen(current) => *current,
        Restoration::Ended(flow) => return Ok(flow),
    };
    if let Some(flow) = plan_request::look(ctx, &subject).await? {
        return Ok(flow);
    }
    let stamped = stamped_spec(ctx, &subject).await?;
    let next = decide(ctx, &subject, stamped.as_ref());
    debug!(instance = %subject.key, ?next, "next");
    execute::act(ctx, subject, stamped, next).await
}

/// What became of a status that others have written.
enum Restoration {
    /// None has.
    Unneeded,
    /// None has, but the watch shows another: it has the object without fields that its definition got since, and no
    /// event corrects that before the next write. What the API server has goes on.
    Unseen(Box<InstanceView>),
    /// It is restored, or not this process's to restore.
    Ended(Flow),
}

/// Restores the status where others have written it.
async fn restore(ctx: &InstanceContext, subject: &InstanceView) -> Result<Restoration, ApiFailure> {
    let Some(status) = ctx.status_cache.restoration(subject) else { return Ok(Restoration::Unneeded) };
    // It may be what another leader wrote, where this process does not know yet that it was suspended.
    match ctx.lease.is_this_process().await {
        Ok(true) => {}
        Ok(false) => return Ok(Restoration::Ended(Flow::End(Action::AwaitChange))),
        Err(error) => {
            warn!(instance = %subject.key, %error, "the status was changed by another process, and the lease could not be read");
            return Ok(Restoration::Ended(Flow::End(Action::Retry)));
        }
    }
    let written = api_calls::write_status(ctx, subject, status).await?;
    match written.filter(|written| written.resource_version() == subject.resource_version()) {
        Some(current) => Ok(Restoration::Unseen(Box::new(current))),
        None => {
            warn!(instance = %subject.key, "the status was written by another user and is restored");
            Ok(Restoration::Ended(Flow::Again))
        }
    }
}

/// The stamp's spec, wherever it is stored.
async fn stamped_spec(
    ctx: &InstanceContext,
    subject: &InstanceView,
) -> Result<Option<Applied<'static>>, ApiFailure> {
    match (subject.stamped_spec(), &subject.stamp) {
        (None, Some(stamp)) => spec_archive::read(ctx, subject, &stamp.hash).await,
        (found, _) => Ok(found),
    }
}

fn decide(ctx: &InstanceContext, subject: &InstanceView, stamped: Option<&Applied<'static>>) -> Next {
    let entries = subject.entries();
    let package = ctx.package(&subject.spec.operator_version);
    let deletion = subject.deleted_at().map(|since| Deletion {
        namespace_terminating: ctx.store.namespace_terminating(&subject.key.namespace),
        failures: record::cleanup_failures(subject),
        overdue: ctx.instances_leave() && overdue_in(since, Timestamp::now()).is_zero(),
        patient: Timestamp::now() < patient_until(subject, package.as_deref(), since),
    });
    let asked = plan_intent::asked(ctx, subject);
    next::next(&InstanceFacts {
        request: asked.as_ref(),
        requests: subject.requests.as_ref(),
        spec: &subject.spec,
        plan: subject.plan(),
        uid: subject.plan_uid(),
        entries: &entries,
        baseline: subject.basis.as_ref(),
        stamp: subject.stamp.as_ref().map(|stamp| FoundStamp { hash: &stamp.hash, spec: stamped }),
        stampable: subject.stamp.is_some() || patches::stamp(subject, &subject.spec).is_some(),
        finalizer: subject.has_finalizer(),
        created_whole: package.as_ref().is_some_and(|p| subject.created_whole(p)),
        deletion,
        package: &|version| ctx.package(version),
        package_of_baseline: &|| ctx.package_of_basis(subject),
        refusal: &|source| {
            let spec = stamped.filter(|_| source == SpecSource::Stamp).unwrap_or(&subject.spec);
            refusal::refusal(ctx, subject, stamped, spec)
        },
        reference: &|version| ctx.reference(&subject.key.namespace, version),
    })
}

/// Until when a deletion waits for rights that its cleanup needs.
fn patient_until(subject: &InstanceView, package: Option<&Package>, since: Timestamp) -> Timestamp {
    let nothing = Words::default();
    let cleanup = Some(Cleanup { since, failing: true });
    let said = package.map_or(&nothing, |package| &package.limits);
    let limits = RunLimits::new(&Words::of(&subject.object), said, cleanup, since);
    limits.patience.map_or(since, |patience| patience.until)
}

/// How long an Instance may hold up the deletion of its own definition.
const CLEANUP_DEADLINE: Duration = Duration::from_secs(30);

/// Pause before an overdue Instance is reconciled again.
const OVERDUE_PAUSE: Duration = Duration::from_secs(5);

fn overdue_in(deleted_at: Timestamp, now: Timestamp) -> Duration {
    let waited = now.duration_since(deleted_at);
    CLEANUP_DEADLINE.saturating_sub(Duration::try_from(waited).unwrap_or_default())
}

/// While the definition of Instances is terminating, enqueues a deleted Instance at its deadline, whatever
/// its back-off.
fn in_time(ctx: &InstanceContext, key: &NamespacedName) {
    if ctx.instances_leave()
        && let KeptInstance::Whole(object) = ctx.store.instance(key)
        && let Some(deleted_at) = cleanup_awaited_since(&object)
    {
        ctx.queue.add_after(key.clone(), recheck_in(deleted_at, Timestamp::now()));
    }
}

/// The deletion timestamp of an Instance that our finalizer keeps.
fn cleanup_awaited_since(object: &Value) -> Option<Timestamp> {
    let kept = object["metadata"]["finalizers"].as_array()?.iter().any(|name| name == meta::FINALIZER);
    meta_str(object, "deletionTimestamp").filter(|_| kept)?.parse().ok()
}

fn recheck_in(deleted_at: Timestamp, now: Timestamp) -> Duration {
    let left = overdue_in(deleted_at, now);
    if left.is_zero() { OVERDUE_PAUSE } else { left }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::just_deleted("2026-01-01T00:00:00Z", 30)]
    #[case::a_while_ago("2026-01-01T00:00:20Z", 10)]
    #[case::over("2026-01-01T00:00:30Z", 5)]
    #[case::long_over("2026-01-02T00:00:00Z", 5)]
    #[case::by_another_clock("2025-12-31T23:59:50Z", 30)]
    fn a_deleted_instance_is_rechecked_in(#[case] now: Timestamp, #[case] seconds: u64) {
        let deleted_at = "2026-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(recheck_in(deleted_at, now), Duration::from_secs(seconds));
    }
}
