//! Executes plan requests: abort, revert, retry, adopt, restart, pause, resume.
//!
//! A request is an annotation; the write that makes it superfluous removes it: an abort with the clear of
//! `planExecution`, a retry or restart after the status write that starts its run. Until then every reconcile finds it
//! again, so that a process may die between any two writes.

use std::collections::BTreeSet;

use interlock_core::api::condition;
use interlock_core::api::condition::{ConditionChange, ConditionStatus, Time};
use interlock_core::api::meta;
use interlock_core::api::meta::{condition as types, event};
use interlock_core::api::object::{NamespacedName, annotation};
use interlock_core::api::stamp::Applied;
use interlock_core::effect::{ApiFailure, Severity};
use interlock_kudo::api::{ExecutionStatus, HeldObject, OperatorVersionSpec, Pause, PlanStatus, RunRequests};
use interlock_kudo::engine::lookup::{Fatal, PlanState};
use interlock_kudo::instance::change::conditions;
use interlock_kudo::instance::change::drift;
use interlock_kudo::instance::change::next::RequestAnswer;
use interlock_kudo::instance::change::plan_request::{PendingRequest, PlanRequest};
use interlock_kudo::instance::change::readiness;
use interlock_kudo::instance::change::readiness::Readiness;
use interlock_kudo::instance::change::validate::ChangedPackages;
use interlock_kudo::package::Package;
use jiff::Timestamp;
use serde_json::Value;

use super::api_calls;
use super::api_calls::{fresh_uid, note, patch, patch_status, write_status};
use super::context::InstanceContext;
use super::patches;
use super::patches::InstanceChange;
use super::plan_intent;
use super::plan_intent::{asked, run_of};
use super::record::{self, RecordInput as Recorded, RecordPhase};
use super::request_guard;
use super::request_guard::RequestState;
use super::status_patch::{RecordChange, StatusChange};
use super::view::InstanceView;
use super::{refusal, spec_archive, status_patch};
use crate::runtime::controller::Action;
use crate::runtime::rounds::Flow;

/// What is due about a request before a run goes on.
pub(super) enum Due {
    /// It is removed: it is malformed, or its author may not have been checked. Why, for people.
    Drop(String),
    /// Nothing happens until it is known whether it counts: the Instance is enqueued then.
    Await,
    /// `VerbsUnavailable` is set or cleared, by this status; with the text of an Event where it is set.
    Say(Value, Option<String>),
}

/// What is due about the request of an Instance.
pub(super) fn due(ctx: &InstanceContext, subject: &InstanceView) -> Option<Due> {
    if let Err(error) = subject.asked() {
        return Some(Due::Drop(error.to_string()));
    }
    let broken = match ctx.requests.standing(subject) {
        Some(RequestState::Unavailable(why)) => Some(why),
        Some(RequestState::Unguarded) => return Some(Due::Drop(request_guard::UNGUARDED.to_owned())),
        Some(RequestState::Unknown) => return half_done(subject).then_some(Due::Await),
        Some(RequestState::Guarded) | None => None,
    };
    let said = condition::is_true(&subject.conditions(), types::VERBS_UNAVAILABLE);
    let message = broken
        .map(|why| format!("the request in {} is not carried out: {why}; then ask again", meta::REQUEST));
    let wanted = match &message {
        Some(message) => ConditionChange::set(
            types::VERBS_UNAVAILABLE,
            ConditionStatus::True,
            "PolicyNotIntact",
            message.as_str(),
        ),
        None if said => ConditionChange::Remove(types::VERBS_UNAVAILABLE),
        None => return None,
    };
    let change = StatusChange { conditions: vec![wanted], ..StatusChange::default() };
    Some(Due::Say(status_patch::status(subject, change, Timestamp::now())?, message))
}

/// Does what is due.
pub(super) async fn settle(
    ctx: &InstanceContext,
    subject: &InstanceView,
    due: Due,
) -> Result<Flow, ApiFailure> {
    match due {
        Due::Drop(why) => return forget(ctx, subject, Some(why)).await,
        Due::Await => return Ok(Flow::End(Action::AwaitChange)),
        Due::Say(status, told) => {
            write_status(ctx, subject, status).await?;
            if let Some(message) = told {
                note(ctx, subject, Severity::Warning, types::VERBS_UNAVAILABLE, message).await;
            }
        }
    }
    Ok(Flow::Again)
}

/// Executes the resolution of a request.
pub(super) async fn carry_out(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
    answer: RequestAnswer,
) -> Result<Flow, ApiFailure> {
    match answer {
        RequestAnswer::Abort { plan } => abort(ctx, subject, stamped, &plan).await,
        RequestAnswer::Retry { plan } => retry(ctx, subject, stamped, &plan).await,
        RequestAnswer::Restart { plan } => restart(ctx, subject, stamped, &plan).await,
        RequestAnswer::Pause { plan } => pause(ctx, subject, &plan).await,
        RequestAnswer::Resume { plan } => resume(ctx, subject, &plan).await,
        RequestAnswer::Revert => revert(ctx, subject).await,
        RequestAnswer::Superseded => overtaken(ctx, subject).await,
        RequestAnswer::Remove(why) => forget(ctx, subject, why).await,
    }
}

/// Whether the run that a request names has ended, or the status records that it was executed: continuing
/// without the request would lose its second half. A deletion waits for nothing.
fn half_done(subject: &InstanceView) -> bool {
    let Ok(Some(PendingRequest { request, .. })) = subject.asked() else { return false };
    let ended = |entry: &PlanStatus| entry.uid == request.run && entry.status.is_terminal();
    let recorded = subject.requests.as_ref().is_some_and(|requests| {
        requests.run == request.run && requests.answered.as_ref() == Some(&request.nonce)
    });
    subject.deleted_at().is_none() && (recorded || subject.entries().values().any(ended))
}

/// Ends a run, begun or not: one status write.
async fn abort(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
    plan: &str,
) -> Result<Flow, ApiFailure> {
    let Some(asked) = asked(ctx, subject) else { return Ok(Flow::Again) };
    let run = asked.request.run.as_str();
    // An abort does not make a denied spec valid.
    let refused = |spec: &Applied<'static>| {
        let vouched = subject.basis.as_ref().is_some_and(|basis| basis.has_validated(&spec.hash()));
        !vouched && refusal::refusal(ctx, subject, stamped.as_ref(), spec).is_some()
    };
    let spec = stamped.clone().unwrap_or_else(|| subject.spec.clone());
    let vouches = !refused(&spec);
    let version = &spec.operator_version;
    let package = ctx.package(version).unwrap_or_else(|| {
        let key = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
        Package::new(key, OperatorVersionSpec::default()).into()
    });
    let found = subject.entries().get(plan).filter(|entry| entry.uid == run).cloned();
    let started = found.is_some();
    let state = match found {
        Some(status) => PlanState { status, ..PlanState::default() },
        None => PlanState::start(&package, plan, run),
    };
    let state = state.end(&format!("aborted {}", asked.describe()));
    let message = format!("plan {plan} (run {run}) was aborted {}", asked.describe());
    let fatal = Fatal { reason: event::PLAN_ABORTED.to_owned(), message };
    let phase = RecordPhase::Over { fatal: Some(fatal), aborted: true, held_by: BTreeSet::new() };
    let old = ctx.package_of_basis(subject);
    let now = Timestamp::now();
    let view = Recorded {
        subject,
        package: &package,
        old: old.as_deref(),
        spec: &spec,
        state: &state,
        started,
        adopts: &BTreeSet::new(),
        began: now,
        vouches,
    };
    if patch_status(ctx, subject, record::change(&view, &phase, now)).await? {
        ctx.metrics.plan_ended(state.status.status.as_str());
        for note in record::notes(&state, &phase) {
            ctx.events.publish(&subject.key, subject.uid(), note).await;
        }
    }
    Ok(Flow::Again)
}

/// Schedules a plan again, under the uid of this retry or adoption; the request stays as its mark.
async fn retry(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
    plan: &str,
) -> Result<Flow, ApiFailure> {
    let Some(asked) = asked(ctx, subject) else { return Ok(Flow::Again) };
    let new_run = &asked.new_run;
    let before = plan_intent::finished_run(ctx, subject);
    let flow = api_calls::schedule_as(ctx, subject, stamped.is_some(), (plan, new_run), before).await?;
    let run = &asked.request.run;
    let (reason, takes) = match plan_intent::adopted(subject, &asked) {
        objects if objects.is_empty() => (event::PLAN_RETRIED, String::new()),
        objects => (event::OBJECTS_ADOPTED, format!(", and takes over {}", HeldObject::list(&objects))),
    };
    let message = format!("plan {plan} (run {run}) is retried as run {new_run}{takes} {}", asked.describe());
    note(ctx, subject, Severity::Normal, reason, message).await;
    Ok(flow)
}

/// Ends a run, begun or not, and schedules its plan under the uid of this restart: one write, so that the
/// Instance stays locked. The request stays as the mark.
async fn restart(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
    plan: &str,
) -> Result<Flow, ApiFailure> {
    let Some(asked) = asked(ctx, subject) else { return Ok(Flow::Again) };
    let (run, new_run) = (&asked.request.run, &asked.new_run);
    let ended = PlanStatus {
        uid: run.clone(),
        status: ExecutionStatus::FatalError,
        last_updated_timestamp: Some(Time(Timestamp::now())),
        ..PlanStatus::default()
    };
    let ended = Some(run_of(ctx, subject, plan, &ended));
    let flow = api_calls::schedule_as(ctx, subject, stamped.is_some(), (plan, new_run), ended).await?;
    ctx.metrics.plan_ended(ExecutionStatus::FatalError.as_str());
    let told = asked.describe();
    let message = format!("plan {plan} (run {run}) is ended, and begins anew as run {new_run} {told}");
    note(ctx, subject, Severity::Normal, event::PLAN_RESTARTED, message).await;
    Ok(flow)
}

/// Pauses a run: one status write, which also records that the request is executed.
async fn pause(ctx: &InstanceContext, subject: &InstanceView, plan: &str) -> Result<Flow, ApiFailure> {
    let Some(asked) = asked(ctx, subject) else { return Ok(Flow::Again) };
    let PendingRequest { request, by, reason, .. } = &asked;
    let pause = Pause { since: Timestamp::now(), by: by.clone(), reason: reason.clone() };
    let conditions = conditions::paused(plan, &pause);
    let requests = executed(subject, request, Some(pause));
    let change = StatusChange { conditions, requests, ..StatusChange::default() };
    if patch_status(ctx, subject, change).await? {
        let message = format!("plan {plan} (run {}) is paused {}", request.run, asked.describe());
        note(ctx, subject, Severity::Normal, event::PLAN_PAUSED, message).await;
    }
    Ok(Flow::Again)
}

/// Lets a paused run go on: one status write, which also records that the request is executed.
async fn resume(ctx: &InstanceContext, subject: &InstanceView, plan: &str) -> Result<Flow, ApiFailure> {
    let Some(asked) = asked(ctx, subject) else { return Ok(Flow::Again) };
    let request = &asked.request;
    let now = Timestamp::now();
    let paused = subject.requests.as_ref().and_then(|requests| requests.paused.as_ref());
    let since = paused.map_or(now, |pause| pause.since);
    let progress = subject.progress.clone().filter(|progress| progress.uid == request.run);
    let change = StatusChange {
        conditions: conditions::reconciling(types::PLAN_IN_PROGRESS, format!("plan {plan} runs")),
        requests: executed(subject, request, None),
        progress: progress
            .map_or(RecordChange::Keep, |progress| RecordChange::Set(progress.after_pause(since, now))),
        ..StatusChange::default()
    };
    if patch_status(ctx, subject, change).await? {
        let message = format!("plan {plan} (run {}) goes on {}", request.run, asked.describe());
        note(ctx, subject, Severity::Normal, event::PLAN_RESUMED, message).await;
    }
    Ok(Flow::Again)
}

/// The record of requests about a run, after one more.
fn executed(
    subject: &InstanceView,
    request: &PlanRequest,
    paused: Option<Pause>,
) -> RecordChange<RunRequests> {
    let found = subject.requests.clone().filter(|found| found.run == request.run).unwrap_or_default();
    let (run, answered) = (request.run.clone(), Some(request.nonce.clone()));
    RecordChange::Set(RunRequests { run, answered, paused, ..found })
}

/// Carries out nothing of a paused run, and says so.
pub(super) async fn paused(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let pause = subject.requests.as_ref().and_then(|requests| requests.paused.as_ref());
    let mut conditions = pause.map(|pause| conditions::paused(subject.plan(), pause)).unwrap_or_default();
    if readiness::is_unserved(&subject.conditions()) {
        conditions.push(Readiness::InProgress(subject.plan().to_owned()).change());
    }
    patch_status(ctx, subject, StatusChange { conditions, ..StatusChange::default() }).await?;
    Ok(Flow::End(Action::AwaitChange))
}

/// Removes a request whose second half is obsolete, and reports that.
async fn overtaken(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let Some(asked) = asked(ctx, subject) else { return Ok(Flow::Again) };
    let why = "the spec was edited before it went back, and the newer edit holds";
    let run = &asked.request.run;
    let entries = subject.entries();
    let ended = entries.iter().find(|(_, entry)| entry.uid == *run).map(|(plan, entry)| {
        let mut ended = run_of(ctx, subject, plan, entry);
        ended.asked.iter_mut().for_each(|asked| asked.dropped = Some(why.to_owned()));
        ended
    });
    let change = InstanceChange { ended, answered: true, ..InstanceChange::default() };
    let flow = patch(ctx, subject, change).await?;
    let message = format!("run {run} was aborted, but not reverted {}: {why}", asked.describe());
    note(ctx, subject, Severity::Warning, event::REQUEST_DROPPED, message).await;
    Ok(flow)
}

/// Removes a request, and reports why where it had no effect.
async fn forget(
    ctx: &InstanceContext,
    subject: &InstanceView,
    why: Option<String>,
) -> Result<Flow, ApiFailure> {
    let request = annotation(&subject.object, meta::REQUEST).unwrap_or_default().to_owned();
    let carried_out = asked(ctx, subject).filter(|_| why.is_none());
    let ended = carried_out.and_then(|asked| {
        let entries = subject.entries();
        let run = if asked.request.verb.retries() { &asked.new_run } else { &asked.request.run };
        let (plan, entry) = entries.iter().find(|(_, entry)| entry.uid == *run)?;
        Some(run_of(ctx, subject, plan, entry))
    });
    let flow =
        patch(ctx, subject, InstanceChange { ended, answered: true, ..InstanceChange::default() }).await?;
    if let Some(why) = why {
        let shown: String = request.chars().take(160).collect();
        let message = format!("the request {shown:?} was not carried out: {why}");
        note(ctx, subject, Severity::Warning, event::REQUEST_DROPPED, message).await;
    }
    Ok(flow)
}

/// Reverts to the last spec that was fully carried out: one write, which schedules as an edit does.
async fn revert(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let back = match way_back(ctx, subject).await? {
        Ok(back) => back,
        Err(why) => {
            let flow = api_calls::clear(ctx, subject).await?;
            let message = format!("the spec was not reverted: {why}");
            note(ctx, subject, Severity::Warning, event::REQUEST_DROPPED, message).await;
            return Ok(flow);
        }
    };
    let WayBack { spec, plan } = back;
    let uid = plan.as_deref().map(|plan| fresh_uid(subject, plan, &spec));
    let told = asked(ctx, subject).map(|asked| asked.describe()).unwrap_or_default();
    let change = InstanceChange {
        schedule: plan.as_deref().zip(uid.as_deref()),
        spec: Some(&spec),
        stamp: patches::stamp(subject, &spec),
        ended: plan_intent::finished_run(ctx, subject),
        answered: true,
        ..InstanceChange::default()
    };
    let flow = patch(ctx, subject, change).await?;
    let plan = plan.map_or_else(String::new, |plan| format!("; plan {plan} runs"));
    let message = format!("the spec went back to what last was carried out in full{plan} ({told})");
    note(ctx, subject, Severity::Normal, event::PLAN_REVERTED, message).await;
    Ok(flow)
}

struct WayBack {
    spec: Applied<'static>,
    plan: Option<String>,
}

/// The previous spec and the first plan that it triggers, or why there is none.
async fn way_back(
    ctx: &InstanceContext,
    subject: &InstanceView,
) -> Result<Result<WayBack, String>, ApiFailure> {
    let previous = subject.stamp.as_ref().and_then(|stamp| stamp.previous.as_ref());
    let (Some(previous), Some(basis)) = (previous, &subject.basis) else {
        return Ok(Err("no other spec was carried out in full".to_owned()));
    };
    let spec = match previous.kept.inline() {
        Some(spec) if spec.hash() == previous.hash => Some(spec.clone().into_owned()),
        _ => spec_archive::read(ctx, subject, &previous.hash).await?,
    };
    let Some(spec) = spec else {
        return Ok(Err("the spec to go back to is not there any more".to_owned()));
    };
    // A stamp is user-writable; only status proves what was carried out before.
    if !basis.has_validated(&previous.hash)
        && let Some(refusal) = refusal::refusal(ctx, subject, None, &spec)
    {
        return Ok(Err(format!("{} (rule {})", refusal.message, refusal.rule)));
    }
    let version = &spec.operator_version;
    let Some(package) = ctx.package(version) else {
        return Ok(Err(format!("OperatorVersion {}/{} is gone", version.namespace, version.name)));
    };
    let old = ctx.package_of_basis(subject);
    let packages = ChangedPackages { new: &package, old: old.as_deref() };
    Ok(drift::triggered_by_drift(basis, &spec, packages).map_err(|error| error.to_string()).map(|plans| {
        let plan = drift::in_order(plans.into_iter().chain(drift::queue(basis))).into_iter().next();
        WayBack { spec, plan }
    }))
}
