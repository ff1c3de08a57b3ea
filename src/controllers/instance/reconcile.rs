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
use crate::runtime::rounds::{self, Decided, Decision, Flow, Rounds};

/// Rounds of one reconcile, for at least 64 steps; each ends in a write or ends the reconcile, and takes a round for the Instance
/// and at times one for a spec that is archived.
const ROUNDS: usize = 3 * 64;

/// What a failed write of an Instance's own records means.
const NOT_RECORDED: &str = "what Interlock records of it was not written";

/// Reconciles one Instance, while the leader epoch of the context lasts.
pub async fn reconcile(ctx: &InstanceContext, key: &NamespacedName) -> Action {
    let mut steps = Steps { ctx, key, uid: String::new(), known: Known::default() };
    let outcome = match rounds::drive(&mut steps, ROUNDS).await {
        Ok(Some(outcome)) => {
            ctx.reports.settle(&of(key));
            outcome
        }
        Ok(None) => {
            warn!(instance = %key, "a reconcile took too many steps and gives way");
            Action::Retry
        }
        Err(outcome) => outcome,
    };
    in_time(ctx, key);
    if outcome == Action::AwaitChange {
        ctx.store.unpin(key);
    }
    outcome
}

/// The steps of one reconcile.
struct Steps<'c> {
    ctx: &'c InstanceContext,
    key: &'c NamespacedName,
    /// The uid of the Instance, once it was looked at.
    uid: String,
    known: Known,
}

/// What a step is decided on.
#[derive(Default)]
struct Known {
    subject: Option<InstanceView>,
    /// Whether the Lease names this process.
    holds_lease: bool,
    /// The spec of the stamp, wherever it is stored.
    stamped: Option<Option<Applied<'static>>>,
}

/// What a step lacks.
enum Lacks {
    Instance,
    /// Whether the Lease names this process. A status that others have written may be what another leader wrote, where
    /// this process does not know yet that it was suspended.
    Lease,
    /// The spec of the stamp, which is archived.
    Spec,
    /// Whether packages may use an OperatorVersion of another namespace.
    Access(NamespacedName),
}

/// What a step does.
enum Step {
    /// Restores the status, which others have written.
    Restore(Value),
    Settle(plan_request::Due),
    Act(Next),
}

impl Rounds for Steps<'_> {
    type Lacks = Lacks;
    type Writes = Step;
    type End = Action;
    /// What follows where nothing is settled.
    type Stop = Action;

    /// Another process may have led since, and continued from this state.
    fn leads(&self) -> Result<(), Action> {
        if self.ctx.lead.holds() { Ok(()) } else { Err(Action::AwaitChange) }
    }

    async fn decide(&mut self) -> Decided<Self> {
        let (ctx, Known { subject, holds_lease, stamped }) = (self.ctx, &mut self.known);
        let Some(subject) = subject else {
            return match ctx.store.instance(self.key) {
                // Nothing to do, and `Ready` is current: no request.
                KeptInstance::AtRest { well: true } => Err(Action::AwaitChange),
                _ => Ok(Decision::Lacks(Lacks::Instance)),
            };
        };
        if subject.deleted_at().is_none() && ctx.no_room.holds(subject) {
            return Ok(Decision::End(Action::AwaitChange));
        }
        if let Some(status) = ctx.status_cache.restoration(subject) {
            let lacks = Decision::Lacks(Lacks::Lease);
            return Ok(if *holds_lease { Decision::Write(Step::Restore(status)) } else { lacks });
        }
        if let Some(due) = plan_request::due(ctx, subject) {
            return Ok(Decision::Write(Step::Settle(due)));
        }
        if stamped.is_none() {
            *stamped = match (subject.stamped_spec(), &subject.stamp) {
                (None, Some(_)) => return Ok(Decision::Lacks(Lacks::Spec)),
                (found, _) => Some(found),
            };
        }
        let next = decide(ctx, subject, stamped.as_ref().and_then(Option::as_ref));
        debug!(instance = %subject.key, ?next, "next");
        Ok(match next {
            Next::CheckAccess(version) => Decision::Lacks(Lacks::Access(version)),
            next => Decision::Write(Step::Act(next)),
        })
    }

    async fn read(&mut self, lacks: Lacks) -> Result<Flow, Action> {
        let ctx = self.ctx;
        let read = match (lacks, &self.known.subject) {
            (Lacks::Lease, Some(_)) => match ctx.lease.is_this_process().await {
                Ok(holds) => {
                    self.known.holds_lease = holds;
                    Ok(if holds { Flow::Again } else { Flow::End(Action::AwaitChange) })
                }
                Err(error) => {
                    warn!(instance = %self.key, %error, "the status was changed by another process, and the lease could not be read");
                    Ok(Flow::End(Action::Retry))
                }
            },
            (Lacks::Spec, Some(subject)) => stamped_spec(ctx, subject).await.map(|found| {
                self.known.stamped = Some(found);
                Flow::Again
            }),
            (Lacks::Access(version), Some(subject)) => match ctx.account(&subject.key.namespace) {
                Ok(account) => {
                    let is_known = ctx.references.ask(&account, &version).await;
                    is_known.map(|is_known| if is_known { Flow::Again } else { Flow::End(Action::Retry) })
                }
                // Without an account there is no subject to check.
                Err(_) => Ok(Flow::End(Action::Retry)),
            },
            (Lacks::Instance, _) | (_, None) => {
                let subject = whole(ctx, self.key).await?;
                subject.uid().clone_into(&mut self.uid);
                self.known.subject = Some(subject);
                Ok(Flow::Again)
            }
        };
        self.after(read).await
    }

    async fn write(&mut self, step: Step) -> Result<Flow, Action> {
        let Known { subject: Some(subject), stamped, .. } = std::mem::take(&mut self.known) else {
            return Ok(Flow::Again);
        };
        let written = match step {
            Step::Restore(status) => self.restore(subject, status).await,
            Step::Settle(due) => plan_request::settle(self.ctx, &subject, due).await,
            Step::Act(next) => execute::act(self.ctx, subject, stamped.flatten(), next).await,
        };
        self.after(written).await
    }
}

impl Steps<'_> {
    /// Restores the status. Where none has written it after all, the watch shows the object without fields that its
    /// definition got since, and no event corrects that before the next write: what the API server has goes on.
    async fn restore(&mut self, subject: InstanceView, status: Value) -> Result<Flow, ApiFailure> {
        let written = api_calls::write_status(self.ctx, &subject, status).await?;
        self.known.subject =
            written.filter(|written| written.resource_version() == subject.resource_version());
        if self.known.subject.is_none() {
            warn!(instance = %subject.key, "the status was written by another user and is restored");
        }
        Ok(Flow::Again)
    }

    /// What follows a read or a write. One that failed ends the step, and what it was decided on is read again.
    async fn after(&mut self, done: Result<Flow, ApiFailure>) -> Result<Flow, Action> {
        let failure = match done {
            Ok(flow) => return Ok(flow),
            Err(failure) => failure,
        };
        self.known = Known::default();
        self.leads()?;
        match recover(self.ctx, self.key, &self.uid, &failure).await {
            Flow::Again => Ok(Flow::Again),
            Flow::End(outcome) => Err(outcome),
        }
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
