//! An Instance that leaves no room for the record of its plan: the plan ends, and a deletion goes on without a cleanup.
//! Admission refuses such an Instance; one may be stored from before, or have come past it.

use std::collections::BTreeMap;

use interlock_core::api::condition;
use interlock_core::api::meta::event;
use interlock_core::api::stamp::Applied;
use interlock_core::effect::{ApiFailure, Severity};
use interlock_kudo::api::{ExecutionStatus, PlanStatus};
use interlock_kudo::instance::change::baseline::{Baseline, PendingPlan};
use interlock_kudo::instance::change::conditions;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::api_calls::{note, unschedule};
use super::context::InstanceContext;
use super::execute;
use super::view::InstanceView;
use crate::cluster::watch::WatchChange;
use crate::runtime::rounds::Flow;

const WHY: &str = "the Instance and the record of its plans are larger together than the API server takes (1.5 MiB): set \
                   fewer or shorter parameters, or use a package with fewer steps, then trigger the plan again";

/// Ends what cannot be recorded; `None` where no plan is under way, so that nothing has to end.
pub(super) async fn end(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<Applied<'static>>,
) -> Option<Result<Flow, ApiFailure>> {
    let entries = subject.entries();
    let is_least = entries.values().all(|entry| entry.phases.is_none());
    if subject.deleted_at().is_some() && is_least {
        let warning = "cleanup was not run: there is no room to record it; what the package made may remain";
        return Some(execute::release(ctx, subject, Some(warning.to_owned())).await);
    }
    let named = entries.get(subject.plan()).filter(|entry| entry.uid == subject.plan_uid());
    if named.is_some_and(|entry| entry.status.is_terminal()) {
        // The history of runs has no room either.
        return Some(unschedule(ctx, subject).await);
    }
    let runs = entries.values().any(|entry| entry.status.is_running());
    if subject.plan().is_empty() && !runs && subject.deleted_at().is_none() {
        return None;
    }
    let object = least(subject, stamped.as_ref().unwrap_or(&subject.spec), Timestamp::now());
    Some(match ctx.bookkeeping.replace_status(&subject.key, &object).await {
        Ok(object) => {
            ctx.status_cache.invalidate(&subject.key);
            ctx.saw(&subject.key, &WatchChange::Applied(object));
            note(ctx, subject, Severity::Warning, event::LIMIT_EXCEEDED, WHY.to_owned()).await;
            Ok(Flow::Again)
        }
        // Not even that: nothing is scheduled any more, so that its user can make it smaller.
        Err(failure) if failure.is_too_large() && !subject.plan().is_empty() => {
            ctx.no_room.remember(subject);
            note(ctx, subject, Severity::Warning, event::LIMIT_EXCEEDED, WHY.to_owned()).await;
            unschedule(ctx, subject).await
        }
        Err(failure) => Err(failure),
    })
}

/// The object with a status that says no more than which plans have run, and that the one in progress, on that spec, is
/// over.
fn least(subject: &InstanceView, spec: &Applied<'static>, now: Timestamp) -> Value {
    let mut entries: BTreeMap<String, PlanStatus> = subject.entries().into_owned();
    entries.retain(|_, entry| entry.status != ExecutionStatus::NeverRun);
    let (plan, uid) = (subject.plan(), subject.plan_uid());
    // A cleanup is tried again with what room there is then.
    let starts = !plan.is_empty() && subject.deleted_at().is_none();
    if starts && entries.get(plan).is_none_or(|entry| entry.uid != uid) {
        let status = ExecutionStatus::InProgress;
        let entry =
            PlanStatus { name: plan.to_owned(), uid: uid.to_owned(), status, ..PlanStatus::default() };
        entries.insert(plan.to_owned(), entry);
    }
    let known = subject.basis.as_ref().filter(|basis| basis.hash == spec.hash());
    let mut pending = subject.basis.as_ref().map(|basis| basis.pending.clone()).unwrap_or_default();
    for (plan, entry) in &mut entries {
        entry.phases = None;
        if entry.status.is_running() {
            entry.status = ExecutionStatus::FatalError;
            entry.message = Some(WHY.to_owned());
            entry.last_updated_timestamp = Some(condition::Time(now));
            pending.insert(plan.clone(), PendingPlan::Failed);
        }
    }
    let owed: Vec<String> = pending.keys().cloned().collect();
    let baseline = match known {
        Some(known) => known.with_pending(pending),
        None => Baseline::new(spec, pending).after(subject.basis.as_ref()),
    };
    let mut found = subject.conditions();
    condition::apply(&mut found, conditions::failed(WHY, &owed), subject.generation(), &condition::Time(now));
    let mut object = Value::clone(&subject.object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object["status"] = json!({
        "planStatus": entries, "conditions": found, "lastApplied": baseline.shortened(),
        "observedGeneration": subject.generation(),
    });
    object
}
