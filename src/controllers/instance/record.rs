//! The status of a run in progress: entries, conditions, and their Events. Pure.

use std::collections::BTreeMap;

use interlock_core::api::condition::{ConditionStatus, WantedCondition};
use interlock_core::api::kudo::{ExecutionStatus, PlanStatus};
use interlock_core::api::meta::{condition as types, event, plan as plans};
use interlock_core::api::stamp::Applied;
use interlock_core::effect::{Note, Severity};
use interlock_core::engine::lookup::{Fatal, PlanState};
use interlock_core::engine::progress::Progress;
use interlock_core::engine::state;
use interlock_core::kinds::instance::change::baseline::{Baseline, CarriedOutRun};
use interlock_core::kinds::instance::change::drift;
use interlock_core::kinds::instance::change::drift::RunEnd;
use interlock_core::kinds::instance::change::validate::ChangedPackages;
use interlock_core::package::Package;
use jiff::Timestamp;

use super::not_served;
use super::patches::StatusChange;
use super::view::InstanceView;

/// The phase of a run in a record.
#[derive(Clone, Debug)]
pub enum RecordPhase {
    /// It is about to write.
    Running,
    /// It waits, perhaps to retry after this error.
    Waiting {
        /// The first retriable error.
        stalled: Option<String>,
        /// What blocks it for ever without action by a person.
        held: Option<String>,
        /// What it waits for.
        waits: Vec<String>,
    },
    /// It is over.
    Over {
        /// The error that ended it, if one did.
        fatal: Option<Fatal>,
        /// Whether a request aborted it.
        aborted: bool,
    },
}

/// The input of a record.
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
    /// Whether its start is recorded.
    pub started: bool,
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
    let mut conditions = vec![running(view, phase, now)];
    conditions.extend(stalled(view, phase));
    if let Some(basis) = basis(view, phase, now) {
        if let RecordPhase::Over { fatal, .. } = phase {
            conditions.push(ready_at_end(view, &basis, fatal.is_none()));
            conditions.extend(owed(view, &basis));
        } else if !view.started && [plans::DEPLOY, plans::UPDATE, plans::UPGRADE].contains(&plan.as_str()) {
            conditions.push(in_progress(plan));
        }
        conditions.push(wanted(types::SPEC_STAMPED, ConditionStatus::True, "Stamped", basis.message()));
    }
    if !matches!(phase, RecordPhase::Over { .. }) && not_served::says(&view.subject.conditions()) {
        conditions.push(in_progress(plan));
    }
    StatusChange { entries, conditions }
}

fn in_progress(plan: &str) -> WantedCondition {
    wanted(types::READY, ConditionStatus::Unknown, "PlanInProgress", format!("plan {plan} runs"))
}

/// The wanted baseline; `None` while the run only continues.
fn basis(view: &RecordInput<'_>, phase: &RecordPhase, now: Timestamp) -> Option<Baseline> {
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
        started: now,
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

fn wanted(type_: &'static str, status: ConditionStatus, reason: &str, message: String) -> WantedCondition {
    WantedCondition { type_, status, reason: reason.to_owned(), message }
}

fn running(view: &RecordInput<'_>, phase: &RecordPhase, now: Timestamp) -> WantedCondition {
    let PlanState { status, done, begun, unsaved: _ } = view.state;
    if let RecordPhase::Over { .. } = phase {
        let message = format!("plan {} finished with status {}", status.name, status.status);
        return wanted(types::PLAN_RUNNING, ConditionStatus::False, "PlanFinished", message);
    }
    let recorded = view.subject.progress.as_ref().filter(|p| p.uid == status.uid);
    let progress = Progress {
        plan: status.name.clone(),
        uid: status.uid.clone(),
        package: recorded.map_or_else(|| view.package.hash.clone(), |p| p.package.clone()),
        started: recorded.map_or(now, |p| p.started),
        done: done.clone(),
        begun: begun.clone(),
    };
    wanted(types::PLAN_RUNNING, ConditionStatus::True, "PlanStarted", progress.message())
}

/// `Stalled` names what a run waits for: True with a retriable error, or with what needs action by a
/// person; else False with the objects that are not healthy yet. It is cleared when the run continues.
fn stalled(view: &RecordInput<'_>, phase: &RecordPhase) -> Option<WantedCondition> {
    let conditions = view.subject.conditions();
    let found = interlock_core::api::condition::find(&conditions, types::STALLED);
    let (status, reason, text) = match phase {
        RecordPhase::Waiting { stalled: Some(error), .. } => {
            (ConditionStatus::True, "TransientError", error.clone())
        }
        RecordPhase::Waiting { held: Some(held), .. } => (ConditionStatus::True, "NeverDone", held.clone()),
        RecordPhase::Waiting { waits, .. } if !waits.is_empty() => {
            (ConditionStatus::False, "Waiting", waits.join("; "))
        }
        RecordPhase::Running if found.is_some_and(|c| c.status != "True") => return None,
        _ => {
            let says = found.is_some_and(|c| c.status == "True" || !c.message.is_empty());
            return says.then(|| wanted(types::STALLED, ConditionStatus::False, "GoingOn", String::new()));
        }
    };
    Some(wanted(types::STALLED, status, reason, shortened(text)))
}

/// A message of a condition is limited to 32,768 bytes.
fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(16_384));
    text
}

fn ready_at_end(view: &RecordInput<'_>, basis: &Baseline, complete: bool) -> WantedCondition {
    let plan = &view.state.status.name;
    let failed = drift::failed(basis);
    match (complete, failed.as_slice()) {
        (false, _) => wanted(
            types::READY,
            ConditionStatus::Unknown,
            "PlanInFatalError",
            format!("plan {plan} ended in FATAL_ERROR"),
        ),
        (true, []) => wanted(types::READY, ConditionStatus::True, "ResourcesReady", String::new()),
        (true, owed) => wanted(types::READY, ConditionStatus::False, "PlanOwed", owed_text(owed)),
    }
}

/// `SpecDrift` names failed plans that are pending; it is cleared without any.
fn owed(view: &RecordInput<'_>, basis: &Baseline) -> Option<WantedCondition> {
    let failed = drift::failed(basis);
    if !failed.is_empty() {
        return Some(wanted(types::SPEC_DRIFT, ConditionStatus::True, "PlanOwed", owed_text(&failed)));
    }
    let conditions = view.subject.conditions();
    let was = interlock_core::api::condition::is_true(&conditions, types::SPEC_DRIFT);
    (was && view.subject.hash == basis.hash)
        .then(|| wanted(types::SPEC_DRIFT, ConditionStatus::False, "CarriedOut", String::new()))
}

fn owed_text(plans: &[String]) -> String {
    format!(
        "these plans failed and have not completed since: {}; mend the cause and trigger them again",
        plans.join(", ")
    )
}

/// The Event of a run that continues after its first pass. One that ends in it has only the Event of its
/// end, which also names the plan: one request less where most plans are short.
pub fn started(state: &PlanState) -> Note {
    normal(event::PLAN_STARTED, format!("Execution of plan {} started", state.status.name))
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
    let text = format!("Execution of plan {name} finished with status {status}");
    fatal.iter().map(warning).chain([normal(event::PLAN_FINISHED, text)]).collect()
}

fn normal(reason: &str, message: String) -> Note {
    Note { severity: Severity::Normal, reason: reason.to_owned(), message }
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
        let basis = json!({"hash": HASH, "run": run}).to_string();
        let stamped = json!({"type": types::SPEC_STAMPED, "status": "True", "reason": "Stamped", "message": basis,
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({
            "metadata": {"name": "i", "namespace": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"planExecution": {"planName": "cleanup", "uid": "c"}},
            "status": {
                "planStatus": {"cleanup": {"name": "cleanup", "uid": "c", "status": "FATAL_ERROR"}},
                "conditions": [stamped],
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
