//! Executes one decision about an Instance: a patch, a status, a run, an Event.

use std::collections::BTreeMap;
use std::time::Duration;

use interlock_core::api::condition;
use interlock_core::api::condition::{Condition, ConditionChange};
use interlock_core::api::display::printable;
use interlock_core::api::meta;
use interlock_core::api::meta::{condition as types, event};
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::Applied;
use interlock_core::effect::{ApiFailure, Severity};
use interlock_kudo::api::ExecutionStatus;
use interlock_kudo::engine::lookup::PlanState;
use interlock_kudo::instance::change::baseline::Baseline;
use interlock_kudo::instance::change::conditions;
use interlock_kudo::instance::change::creation;
use interlock_kudo::instance::change::creation::Creation;
use interlock_kudo::instance::change::drift;
use interlock_kudo::instance::change::next::{DriftRefusal, Next, SpecSource};
use interlock_kudo::instance::change::readiness;
use interlock_kudo::operator_version::PackageLister as _;
use jiff::Timestamp;
use tracing::{info, warn};

use super::api_calls::{clear, fresh_uid, note, patch, patch_status, schedule_as, unschedule};
use super::context::InstanceContext;
use super::pass::{Begin, Pass};
use super::patches;
use super::patches::InstanceChange;
use super::status_patch::{RecordChange, StatusChange};
use super::view::InstanceView;
use super::{cluster_objects, package_health, plan_intent, plan_request, refusal, spec_archive};
use crate::runtime::controller::Action;
use crate::runtime::rounds::Flow;

/// First delay of a repeated cleanup; doubled with each failure.
const CLEANUP_BACKOFF: Duration = Duration::from_secs(2);

/// Pause before an Instance is reconciled again whose OperatorVersion exceeds the size budget.
const ROOM: Duration = Duration::from_secs(30);

/// Executes the next step.
pub(super) async fn act(
    ctx: &InstanceContext,
    subject: InstanceView,
    stamped: Option<Applied<'static>>,
    next: Next,
) -> Result<Flow, ApiFailure> {
    match next {
        Next::Idle => idle(ctx, &subject).await,
        Next::End(entries) => end(ctx, &subject, entries).await,
        Next::Restore { plan, uid } => {
            let put_back = Some((plan.as_str(), uid.as_str()));
            patch(ctx, &subject, InstanceChange { put_back, ..InstanceChange::default() }).await
        }
        Next::Schedule { plan, source } => schedule(ctx, &subject, stamped, &plan, source).await,
        Next::Create => create(ctx, &subject).await,
        Next::Start { source } | Next::Continue { source } => {
            run(ctx, subject, stamped, source, Begin::First).await
        }
        Next::Retry { source } => run(ctx, subject, stamped, source, Begin::WhereItFailed).await,
        Next::Answer(answer) => plan_request::carry_out(ctx, &subject, stamped, answer).await,
        Next::AwaitResume => plan_request::paused(ctx, &subject).await,
        Next::Clear => clear(ctx, &subject).await,
        Next::DropTrigger => drop_trigger(ctx, &subject).await,
        Next::Adopt => adopt(ctx, &subject).await,
        Next::Restamp => restamp(ctx, &subject).await,
        Next::Report(refusal) => report(ctx, &subject, refusal).await,
        Next::AwaitVersion(version) => missing(ctx, &subject, &version).await,
        // It is read before anything is written.
        Next::CheckAccess(_) => Ok(Flow::Again),
        Next::RemoveFinalizer { warning } => release(ctx, &subject, warning).await,
        Next::RetryCleanup { failures } => retry_cleanup(ctx, &subject, stamped, failures).await,
    }
}

async fn drop_trigger(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    info!(instance = %subject.key, plan = subject.plan(), "a trigger on a spec that nobody accepted is dropped");
    unschedule(ctx, subject).await
}

async fn restamp(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let Some(stamp) = patches::stamp(subject, &subject.spec) else { return idle(ctx, subject).await };
    patch(ctx, subject, InstanceChange { stamp: Some(stamp), ..InstanceChange::default() }).await
}

async fn schedule(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
    plan: &str,
    source: SpecSource,
) -> Result<Flow, ApiFailure> {
    let uid = fresh_uid(
        subject,
        plan,
        stamped.as_ref().filter(|_| source == SpecSource::Stamp).unwrap_or(&subject.spec),
    );
    let on_stamp = stamped.is_some() && source == SpecSource::Stamp;
    schedule_as(ctx, subject, on_stamp, (plan, &uid), plan_intent::finished_run(ctx, subject)).await
}

async fn create(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let Some(package) = ctx.package(&subject.spec.operator_version) else {
        return Ok(Flow::End(Action::Retry));
    };
    let creation = Creation::new(&package, &subject.spec.parameters);
    let spec = creation.spec(&subject.spec);
    let uid = fresh_uid(subject, creation::PLAN, &spec);
    info!(instance = %subject.key, "an Instance that admission never saw is created");
    let change = InstanceChange {
        schedule: Some((creation::PLAN, &uid)),
        stamp: patches::stamp(subject, &spec),
        create: Some(&creation),
        ..InstanceChange::default()
    };
    patch(ctx, subject, change).await
}

/// Ends entries without a step of the engine.
async fn end(
    ctx: &InstanceContext,
    subject: &InstanceView,
    ended: BTreeMap<String, String>,
) -> Result<Flow, ApiFailure> {
    let found = subject.entries();
    let mut change = StatusChange::default();
    let mut owed = subject.basis.as_ref().map(|b| b.pending.clone()).unwrap_or_default();
    for (plan, message) in &ended {
        let Some(entry) = found.get(plan) else { continue };
        let state = PlanState { status: entry.clone(), ..PlanState::default() }.end(message);
        change.entries.insert(plan.clone(), state.status);
        owed = drift::pending_at_end(&owed, plan, drift::RunEnd::Failed);
        ctx.metrics.plan_ended(ExecutionStatus::FatalError.as_str());
    }
    change.baseline = subject.basis.as_ref().map(|baseline| baseline.with_pending(owed));
    let owed = change.baseline.as_ref().map(drift::failed).unwrap_or_default();
    change.progress = RecordChange::Remove;
    change.requests = RecordChange::Remove;
    let texts: Vec<String> =
        ended.iter().map(|(plan, message)| format!("plan {plan} ended in FATAL_ERROR: {message}")).collect();
    change.conditions = conditions::failed(&texts.join("; "), &owed);
    patch_status(ctx, subject, change).await?;
    for (plan, message) in ended {
        warn!(instance = %subject.key, plan, why = message, "a plan failed");
        let text = format!("Execution of plan {plan} finished with status FATAL_ERROR: {message}");
        note(ctx, subject, Severity::Warning, event::PLAN_FINISHED, text).await;
    }
    Ok(Flow::Again)
}

async fn run(
    ctx: &InstanceContext,
    subject: InstanceView,
    stamped: Option<Applied<'static>>,
    source: SpecSource,
    begin: Begin,
) -> Result<Flow, ApiFailure> {
    let spec = match (source, stamped) {
        (SpecSource::Stamp, Some(spec)) => spec,
        _ => subject.spec.clone(),
    };
    let Some(package) = ctx.package(&spec.operator_version) else {
        let version = &spec.operator_version;
        return missing(ctx, &subject, &format!("{}/{}", version.namespace, version.name)).await;
    };
    let progress = subject.progress.as_ref().filter(|p| p.uid == subject.plan_uid());
    if progress.is_some_and(|p| p.package != package.hash) {
        let message = "ended: the OperatorVersion was changed while it ran; a run never mixes two packages";
        return end(ctx, &subject, BTreeMap::from([(subject.plan().to_owned(), message.to_owned())])).await;
    }
    let objects = match ctx.account(&subject.key.namespace) {
        Ok(account) => ctx.objects.under(account),
        Err(why) => {
            stall(ctx, &subject, "NoServiceAccount", why).await?;
            return Ok(Flow::End(Action::Retry));
        }
    };
    // Waits for the settings: it never runs on assumed ones.
    let Some((adoption, references)) = ctx.settings(&subject.key.namespace) else {
        return Ok(Flow::End(Action::Retry));
    };
    let started = subject.entries().get(subject.plan()).is_some_and(|entry| entry.uid == subject.plan_uid());
    if !started {
        tell_overrides(ctx, &subject, source, &spec).await;
    }
    if let Err(failure) = keep_spec(ctx, &subject, &spec, progress.is_none()).await {
        return not_kept(ctx, &subject, failure).await;
    }
    Pass::new(ctx, (objects, adoption, references), subject, &spec, &package, begin).run().await
}

/// Tells by which Overrides a run may start on a spec that status does not vouch for: an Event on the Instance
/// for each.
async fn tell_overrides(
    ctx: &InstanceContext,
    subject: &InstanceView,
    source: SpecSource,
    spec: &Applied<'static>,
) {
    if subject.basis.as_ref().is_some_and(|basis| basis.has_validated(&spec.hash())) {
        return;
    }
    let stamped = Some(spec).filter(|_| source == SpecSource::Stamp);
    for (violation, name) in refusal::overridden(ctx, subject, stamped, spec) {
        let rule = violation.rule.id();
        let plan = subject.plan();
        let message =
            format!("plan {plan} starts against rule {rule}, by Override {name}: {}", violation.sentence);
        note(ctx, subject, Severity::Warning, event::OVERRIDE_USED, message).await;
    }
}

/// Archives the spec of a run in ControllerRevisions where the stamp only refers to it: before any other
/// effect of the run, and as long as the object itself, which may change during the run, is the only
/// source.
async fn keep_spec(
    ctx: &InstanceContext,
    subject: &InstanceView,
    spec: &Applied<'static>,
    first: bool,
) -> Result<(), ApiFailure> {
    let hash = spec.hash();
    let referenced = patches::referenced(subject.stamp.as_ref()).contains(&hash);
    let alone = subject.hash == hash && !ctx.status_cache.has_archived(subject, &hash);
    if referenced && (first || alone) {
        spec_archive::write(ctx, subject, spec).await?;
        ctx.status_cache.record_archived(subject, hash);
    }
    Ok(())
}

/// Reports why a spec could not be archived, where a person has to act; its plan does not begin.
async fn not_kept(
    ctx: &InstanceContext,
    subject: &InstanceView,
    failure: ApiFailure,
) -> Result<Flow, ApiFailure> {
    let reason = match failure.code {
        403 if failure.namespace_terminating => return Err(failure),
        403 => types::MISSING_RIGHT,
        409 | 413 | 422 => types::SPEC_NOT_KEPT,
        _ => return Err(failure),
    };
    let remedy = if failure.code == 403 { "; apply what `interlock render rbac` prints" } else { "" };
    let message = format!(
        "the spec is too large for the annotation and cannot be kept in a ControllerRevision: {}{remedy}",
        failure.message
    );
    stall(ctx, subject, reason, message).await?;
    Ok(Flow::End(Action::Retry))
}

/// Sets baseline and stamp to the present spec, without a rollout.
async fn adopt(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let owed = subject.basis.as_ref().map(|b| b.pending.clone()).unwrap_or_default();
    let previous = subject.basis.as_ref().and_then(|basis| basis.previous.clone());
    let basis = Baseline { previous, ..Baseline::new(&subject.spec, owed) };
    let mut changes = Vec::new();
    if condition::is_true(&subject.conditions(), types::SPEC_DRIFT) {
        changes = conditions::settled(None);
    }
    let change = StatusChange { conditions: changes, baseline: Some(basis), ..StatusChange::default() };
    patch_status(ctx, subject, change).await?;
    Ok(Flow::Again)
}

async fn report(
    ctx: &InstanceContext,
    subject: &InstanceView,
    refusal: DriftRefusal,
) -> Result<Flow, ApiFailure> {
    let reason = reason_of(&refusal.rule);
    let DriftRefusal { rule, message, passes } = refusal;
    let message = match (passes, subject.plan()) {
        (true, _) => format!("{message} (rule {rule})"),
        (false, "") => {
            format!("{message} (rule {rule}); the edit was made past admission and is not carried out")
        }
        (false, plan) => format!(
            "{message} (rule {rule}); it was written past admission and is not carried out: end plan {plan} with \
             `interlock plan abort {} -n {} --reason WHY`, or delete the Instance and create it again",
            subject.key.name, subject.key.namespace
        ),
    };
    let change =
        StatusChange { conditions: conditions::drifted(&reason, &message), ..StatusChange::default() };
    if patch_status(ctx, subject, change).await? {
        note(ctx, subject, Severity::Warning, &reason, message).await;
    }
    Ok(Flow::End(if passes { Action::Retry } else { Action::AwaitChange }))
}

/// A rule id as the reason of a condition: CamelCase.
fn reason_of(rule: &str) -> String {
    let words = rule.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.filter_map(|word| word.split_at_checked(1));
    let camel: String = words.map(|(first, rest)| first.to_ascii_uppercase() + rest).collect();
    if camel.starts_with(|c: char| c.is_ascii_alphabetic()) { camel } else { "Refused".to_owned() }
}

async fn missing(ctx: &InstanceContext, subject: &InstanceView, version: &str) -> Result<Flow, ApiFailure> {
    let reference = &subject.spec.operator_version;
    let left_out =
        ctx.store.left_out(&NamespacedName::new(reference.namespace.as_ref(), reference.name.as_ref()));
    if let Some(why) = left_out {
        let message = format!("OperatorVersion {version} waits: {why}");
        stall(ctx, subject, event::INVALID_OPERATOR_VERSION, message).await?;
        return Ok(Flow::End(Action::Requeue(ROOM)));
    }
    let message = format!(
        "OperatorVersion {version} is not there; create it, or set spec.operatorVersion to one that is"
    );
    let message = printable(&message).into_owned();
    let now = Timestamp::now();
    let known = awaited_since(subject, &message);
    let since = known.unwrap_or(now);
    let drifts = subject.basis.as_ref().is_some_and(|basis| basis.hash != subject.hash);
    let mut conditions = conditions::awaiting_version(&message, drifts, since, now);
    if known.is_none() {
        // Its time is that of this OperatorVersion.
        conditions.insert(0, ConditionChange::Remove(types::RECONCILING));
    }
    let change = StatusChange { conditions, ..StatusChange::default() };
    let is_new = patch_status(ctx, subject, change).await?;
    let left = Duration::try_from(conditions::RETRY_LIMIT - now.duration_since(since)).unwrap_or_default();
    if !left.is_zero() {
        return Ok(Flow::End(Action::Requeue(left)));
    }
    if is_new {
        note(ctx, subject, Severity::Warning, event::INVALID_OPERATOR_VERSION, message).await;
    }
    Ok(Flow::End(Action::AwaitChange))
}

/// Since when the conditions say that this OperatorVersion is not there.
fn awaited_since(subject: &InstanceView, message: &str) -> Option<Timestamp> {
    let says =
        |found: &&Condition| found.reason == types::OPERATOR_VERSION_MISSING && found.message == message;
    let found = subject.instance.status.iter().flat_map(|status| &status.conditions).filter(says);
    found
        .filter_map(|found| match found.type_.as_str() {
            types::STALLED => Some(Timestamp::UNIX_EPOCH),
            types::RECONCILING => Some(found.last_transition_time.0),
            _ => None,
        })
        .min()
}

/// Reports what blocks a plan, in `Stalled` and in an Event.
pub(super) async fn stall(
    ctx: &InstanceContext,
    subject: &InstanceView,
    reason: &str,
    message: String,
) -> Result<(), ApiFailure> {
    let conditions = conditions::stalled(reason, message.as_str());
    let change = StatusChange { conditions, ..StatusChange::default() };
    if patch_status(ctx, subject, change).await? {
        note(ctx, subject, Severity::Warning, reason, message).await;
    }
    Ok(())
}

pub(super) async fn release(
    ctx: &InstanceContext,
    subject: &InstanceView,
    warning: Option<String>,
) -> Result<Flow, ApiFailure> {
    if let Some(pause) = cluster_objects::remove(ctx, subject).await {
        return Ok(Flow::End(Action::Requeue(pause)));
    }
    if let Some(warning) = warning {
        note(ctx, subject, Severity::Warning, "CleanupSkipped", warning).await;
    }
    let body = patches::instance(subject, InstanceChange { release: true, ..InstanceChange::default() });
    // Does not store the answer: the object may be gone with it.
    ctx.bookkeeping.patch_instance(&subject.key, subject.resource_version(), body).await?;
    Ok(Flow::End(Action::AwaitChange))
}

async fn retry_cleanup(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
    failures: usize,
) -> Result<Flow, ApiFailure> {
    let doubled = u32::try_from(failures.saturating_sub(1)).unwrap_or(8).min(8);
    let wait = CLEANUP_BACKOFF * 2_u32.pow(doubled);
    let entries = subject.entries();
    let ended = entries.get(meta::plan::CLEANUP).and_then(|e| e.last_updated_timestamp.as_ref()).map(|t| t.0);
    let since = ended.map(|at| Timestamp::now().duration_since(at).unsigned_abs()).unwrap_or(wait);
    if since < wait {
        return Ok(Flow::End(Action::Requeue(wait - since)));
    }
    let source = if stamped.is_some() { SpecSource::Stamp } else { SpecSource::Spec };
    schedule(ctx, subject, stamped, meta::plan::CLEANUP, source).await
}

/// No work is left; updates the conditions. A failed plan stays reported until one completes.
async fn idle(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    ctx.store.mark_clean(&subject.key);
    let found = subject.conditions();
    let failed = readiness::failed(&found);
    let owed = subject.basis.as_ref().map(drift::failed).unwrap_or_default();
    let conditions = match (failed, owed.as_slice()) {
        (Some(failed), owed) => conditions::failed(&failed.message, owed),
        (None, []) => conditions::settled(package_health::condition(ctx, subject).await),
        (None, owed) => conditions::owed(owed),
    };
    patch_status(ctx, subject, StatusChange { conditions, ..StatusChange::default() }).await?;
    Ok(Flow::End(Action::AwaitChange))
}
