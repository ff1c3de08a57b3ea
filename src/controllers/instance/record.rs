//! The status of a run in progress: entries, conditions, and their Events. Pure.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::condition;
use interlock_core::api::condition::{Condition, ConditionChange};
use interlock_core::api::meta::{condition as types, event, plan as plans};
use interlock_core::api::stamp::Applied;
use interlock_core::effect::{Note, Severity};
use interlock_kudo::api::{ExecutionStatus, HeldObject, PlanStatus, RunRequests};
use interlock_kudo::engine::lookup::{Fatal, PlanState, TaskFailure};
use interlock_kudo::engine::progress::Progress;
use interlock_kudo::engine::state;
use interlock_kudo::instance::change::baseline::{Baseline, CarriedOutRun};
use interlock_kudo::instance::change::conditions;
use interlock_kudo::instance::change::drift;
use interlock_kudo::instance::change::drift::RunEnd;
use interlock_kudo::instance::change::readiness;
use interlock_kudo::instance::change::readiness::Readiness;
use interlock_kudo::instance::change::validate::ChangedPackages;
use interlock_kudo::package::Package;
use jiff::Timestamp;

use super::status_patch::{RecordChange, StatusChange};
use super::view::InstanceView;

/// The phase of a run in a record.
#[derive(Clone, Debug)]
pub enum RecordPhase {
    /// It is about to write.
    Running,
    /// It waits, perhaps to retry after this error.
    Waiting {
        /// The first error after which it is tried again.
        failure: Option<TaskFailure>,
        /// What blocks it for ever without action by a person.
        held: Option<String>,
        waits: Vec<String>,
    },
    Over {
        /// The error that ended it, if one did.
        fatal: Option<Fatal>,
        /// Whether a request aborted it.
        aborted: bool,
        /// Objects that no Instance made and that ended it.
        held_by: BTreeSet<HeldObject>,
    },
}

pub struct RecordInput<'a> {
    /// The Instance as last read.
    pub subject: &'a InstanceView,
    /// The package of the run.
    pub package: &'a Package,
    /// The package of the baseline before it started.
    pub old: Option<&'a Package>,
    /// The spec of the run.
    pub spec: &'a Applied<'static>,
    /// The run.
    pub state: &'a PlanState,
    pub started: bool,
    /// Objects that no Instance made and that it takes over.
    pub adopts: &'a BTreeSet<HeldObject>,
    /// When it started, unless that is recorded: `now` of what was rendered before.
    pub began: Timestamp,
    /// Whether its spec passed validation; else the record only states that the run is over.
    pub vouches: bool,
}

/// The status of a run.
pub fn change(view: &RecordInput<'_>, phase: &RecordPhase, now: Timestamp) -> StatusChange {
    let plan = &view.state.status.name;
    let mut entries = BTreeMap::new();
    if !view.started {
        entries = state::all_plans(&view.subject.entries(), view.package);
    }
    entries.insert(plan.clone(), view.state.status.clone());
    let baseline = basis(view, phase);
    let mut conditions = match phase {
        RecordPhase::Over { fatal, .. } => ended(view, baseline.as_ref(), fatal.as_ref()),
        RecordPhase::Running | RecordPhase::Waiting { .. } => going_on(view, phase, now),
    };
    let over = matches!(phase, RecordPhase::Over { .. });
    let deploys = [plans::DEPLOY, plans::UPDATE, plans::UPGRADE].contains(&plan.as_str());
    let begins = baseline.is_some() && !view.started && deploys;
    if !over && (begins || readiness::is_unserved(&view.subject.conditions())) {
        conditions.push(Readiness::InProgress(plan.to_owned()).change());
    }
    let progress = if over { RecordChange::Remove } else { RecordChange::Set(progress(view, phase, now)) };
    let requests = requests(view, phase);
    StatusChange { entries, conditions, baseline, progress, requests, conditions_only: false }
}

/// What requests have changed about the run, or may change: one that begins may take over what held the one
/// before, and one that ends may be held by objects itself.
fn requests(view: &RecordInput<'_>, phase: &RecordPhase) -> RecordChange<RunRequests> {
    let of = |held_by: &BTreeSet<HeldObject>, adopts: &BTreeSet<HeldObject>| {
        let (run, held_by, adopts) = (view.state.status.uid.clone(), held_by.clone(), adopts.clone());
        RecordChange::Set(RunRequests { run, held_by, adopts, ..RunRequests::default() })
    };
    match phase {
        RecordPhase::Over { held_by, .. } if !held_by.is_empty() => of(held_by, &BTreeSet::new()),
        RecordPhase::Over { .. } => RecordChange::Remove,
        _ if view.started => RecordChange::Keep,
        _ if view.adopts.is_empty() => RecordChange::Remove,
        _ => of(&BTreeSet::new(), view.adopts),
    }
}

/// The wanted baseline; `None` while the run only continues.
fn basis(view: &RecordInput<'_>, phase: &RecordPhase) -> Option<Baseline> {
    let plan = &view.state.status.name;
    let found = view.subject.basis.as_ref();
    let end = match phase {
        RecordPhase::Over { .. } if view.state.status.status == ExecutionStatus::Complete => {
            Some(RunEnd::Complete)
        }
        RecordPhase::Over { aborted: true, .. } => Some(RunEnd::Aborted),
        RecordPhase::Over { .. } => Some(RunEnd::Failed),
        RecordPhase::Running | RecordPhase::Waiting { .. } => None,
    };
    if view.started {
        let found = found?;
        return Some(found.with_pending(drift::pending_at_end(&found.pending, plan, end?)));
    }
    if !view.vouches {
        return found.cloned();
    }
    let packages = ChangedPackages { new: view.package, old: view.old };
    let owed = drift::pending_at_start(found, view.spec, packages, plan);
    let owed = end.map_or_else(|| owed.clone(), |end| drift::pending_at_end(&owed, plan, end));
    let ran = CarriedOutRun {
        uid: view.state.status.uid.clone(),
        package: view.package.hash.clone(),
        started: view.began,
        attempt: 1 + if plan == plans::CLEANUP { cleanup_failures(view.subject) } else { 0 },
    };
    Some(Baseline::new(view.spec, owed).after(found).ran(Some(ran)))
}

/// How often cleanup has failed in a row, from the status, which only Interlock writes: the run history is
/// an annotation.
pub fn cleanup_failures(subject: &InstanceView) -> usize {
    let entries = subject.entries();
    let failed = |entry: &&PlanStatus| entry.status == ExecutionStatus::FatalError;
    let Some(entry) = entries.get(plans::CLEANUP).filter(failed) else { return 0 };
    let run = subject.basis.as_ref().and_then(|basis| basis.run.as_ref());
    // The last started run, as no run follows a cleanup.
    run.filter(|run| run.uid == entry.uid).map_or(1, |run| run.attempt.max(1))
}

/// The progress of a run.
fn progress(view: &RecordInput<'_>, phase: &RecordPhase, now: Timestamp) -> Progress {
    let PlanState { status, done, begun, unsaved: _ } = view.state;
    let recorded = view.subject.progress.as_ref().filter(|p| p.uid == status.uid);
    Progress {
        plan: status.name.clone(),
        uid: status.uid.clone(),
        package: recorded.map_or_else(|| view.package.hash.clone(), |p| p.package.clone()),
        started: recorded.map_or(view.began, |p| p.started),
        retrying_since: retrying_since(view, phase, now),
        done: done.clone(),
        begun: begun.clone(),
    }
}

/// Since when every attempt has failed; an attempt that is about to be made leaves it.
fn retrying_since(view: &RecordInput<'_>, phase: &RecordPhase, now: Timestamp) -> Option<Timestamp> {
    let recorded = view.subject.progress.as_ref().filter(|p| p.uid == view.state.status.uid);
    let since = recorded.and_then(|progress| progress.retrying_since);
    match phase {
        RecordPhase::Waiting { failure: Some(_), .. } => Some(since.unwrap_or(now)),
        RecordPhase::Running => since,
        RecordPhase::Waiting { .. } | RecordPhase::Over { .. } => None,
    }
}

/// The conditions of a run that goes on: what it waits for, is retried, or needs a person.
fn going_on(view: &RecordInput<'_>, phase: &RecordPhase, now: Timestamp) -> Vec<ConditionChange> {
    let plan = &view.state.status.name;
    match phase {
        RecordPhase::Waiting { failure: Some(failure), .. } => {
            let failure = TaskFailure { message: shortened(failure.message.clone()), ..failure.clone() };
            conditions::retrying(&failure, retrying_since(view, phase, now).unwrap_or(now), now)
        }
        RecordPhase::Waiting { held: Some(held), .. } => {
            conditions::stalled("NeverDone", shortened(held.clone()))
        }
        RecordPhase::Waiting { waits, .. } if !waits.is_empty() => {
            conditions::reconciling(types::WAITING, shortened(waits.join("; ")))
        }
        _ => conditions::reconciling(types::PLAN_IN_PROGRESS, format!("plan {plan} runs")),
    }
}

/// A message of a condition is limited to 32,768 bytes.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(16_384));
    text
}

/// The conditions at the end of a run.
fn ended(view: &RecordInput<'_>, baseline: Option<&Baseline>, fatal: Option<&Fatal>) -> Vec<ConditionChange> {
    let PlanStatus { name, status, .. } = &view.state.status;
    let owed = baseline.map(drift::failed).unwrap_or_default();
    if *status != ExecutionStatus::Complete {
        let why = fatal.map(|fatal| format!(": {}", fatal.message)).unwrap_or_default();
        return conditions::failed(&shortened(format!("plan {name} ended in {status}{why}")), &owed);
    }
    if !owed.is_empty() {
        return conditions::owed(&owed);
    }
    let mut changes = conditions::settled(Some(Readiness::Healthy));
    // An edit that came meanwhile is judged next.
    if baseline.is_none_or(|baseline| view.subject.hash != baseline.hash) {
        changes.retain(|change| *change != ConditionChange::Remove(types::SPEC_DRIFT));
    }
    changes
}

/// The Event of a run that begins.
pub fn started(state: &PlanState) -> Note {
    Note {
        severity: Severity::Normal,
        reason: event::PLAN_STARTED.to_owned(),
        message: format!("Execution of plan {} started", state.status.name),
    }
}

/// The Event of a run that a person has to help now; once for each text.
pub fn stalled_since(before: &[Condition], after: &[Condition]) -> Option<Note> {
    let told = |conditions: &[Condition]| {
        let found = condition::find(conditions, types::STALLED)?;
        Some((found.reason.clone(), found.message.clone()))
    };
    let (reason, message) = told(after).filter(|after| told(before).as_ref() != Some(after))?;
    Some(Note { severity: Severity::Warning, reason, message })
}

/// The Events of a record.
pub fn notes(state: &PlanState, phase: &RecordPhase) -> Vec<Note> {
    let RecordPhase::Over { fatal, .. } = phase else { return Vec::new() };
    let warning = |Fatal { reason, message }: &Fatal| Note {
        severity: Severity::Warning,
        reason: reason.clone(),
        message: message.clone(),
    };
    let PlanStatus { name, status, .. } = &state.status;
    let severity = match status {
        ExecutionStatus::Complete => Severity::Normal,
        _ => Severity::Warning,
    };
    let message = format!("Execution of plan {name} finished with status {status}");
    let finished = Note { severity, reason: event::PLAN_FINISHED.to_owned(), message };
    fatal.iter().map(warning).chain([finished]).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use interlock_core::api::meta;
    use interlock_core::api::object::NamespacedName;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    /// An Instance whose cleanup `c` has failed, with the run `run` in its baseline.
    fn failed(run: Value) -> Value {
        json!({
            "metadata": {"name": "i", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"planExecution": {"planName": "cleanup", "uid": "c"}},
            "status": {
                "planStatus": {"cleanup": {"name": "cleanup", "uid": "c", "status": "FATAL_ERROR"}},
                "lastApplied": {"hash": HASH, "run": run},
            },
        })
    }

    fn run(uid: &str, attempt: Option<usize>) -> Value {
        let mut run = json!({"uid": uid, "package": HASH, "started": "2026-01-01T00:00:00Z"});
        if let Some(attempt) = attempt {
            run["attempt"] = json!(attempt);
        }
        run
    }

    /// User-writable data ends no cleanup: only failures in the status count.
    #[rstest]
    #[case::the_first(run("c", None), 1)]
    #[case::the_third(run("c", Some(3)), 3)]
    #[case::after_another_run(run("d", Some(2)), 1)]
    fn a_forged_history_counts_for_nothing(#[case] run: Value, #[case] failures: usize) {
        let ended = |uid: &str| json!({"plan": "cleanup", "uid": uid, "result": "FATAL_ERROR"});
        let mut object = failed(run);
        object["metadata"]["annotations"] =
            json!({meta::HISTORY: json!([ended("a"), ended("b")]).to_string()});
        let subject = InstanceView::read(&NamespacedName::new("ns", "i"), Arc::new(object)).unwrap();
        assert_eq!(cleanup_failures(&subject), failures);
    }
}
