//! Deletion of an Instance: running plans end, `cleanup` runs, then the finalizer is removed.

use std::collections::BTreeMap;

use interlock_core::api::meta::plan::CLEANUP;

use super::facts::{Deletion, InstanceFacts, ReferenceAccess};
use super::step::{Next, RequestAnswer, SpecSource};
use crate::api::{ExecutionStatus, PlanStatus};
use crate::instance::change::plan_request;
use crate::instance::change::plan_request::{PlanVerb, RequestResolution};

/// Attempts of `cleanup` before the finalizer is removed nevertheless.
const CLEANUP_ATTEMPTS: usize = 3;

/// The next step of a deletion.
pub(super) fn deleting(facts: &InstanceFacts<'_>, deletion: &Deletion) -> Next {
    let ended: BTreeMap<String, String> = facts
        .entries
        .iter()
        .filter(|(plan, e)| e.status.is_running() && plan.as_str() != CLEANUP)
        .map(|(plan, _)| (plan.clone(), "ended: the Instance is being deleted".to_owned()))
        .collect();
    if !ended.is_empty() {
        return Next::End(ended);
    }
    if !facts.finalizer {
        return Next::Idle;
    }
    let release = |why: String| Next::RemoveFinalizer { warning: Some(why) };
    if deletion.overdue {
        return release(
            "cleanup was not finished: the CustomResourceDefinition of Instances is being deleted and waited \
             too long for it; what the package made may remain"
                .to_owned(),
        );
    }
    if deletion.namespace_terminating {
        return release("cleanup was not run: the namespace is being terminated".to_owned());
    }
    // A last-applied spec that is not trusted counts as absent.
    let source = match facts.source() {
        SpecSource::Stamp if facts.refusal_of(SpecSource::Stamp).is_some() => SpecSource::Spec,
        source => source,
    };
    if let Some(refusal) = facts.refusal_of(source) {
        return release(format!("cleanup was not run: {}", refusal.message));
    }
    let version = &facts.spec_of(source).operator_version;
    if let ReferenceAccess::Refused(refusal) = (facts.reference)(version)
        && !deletion.patient
    {
        return release(format!("cleanup was not run: {}", refusal.message));
    }
    match (facts.package)(version) {
        None => release(format!(
            "cleanup was not run: OperatorVersion {}/{} is gone",
            version.namespace, version.name
        )),
        // The finalizer is there for the cluster-scoped objects of the Instance.
        Some(package) if package.plan(CLEANUP).is_none() => Next::RemoveFinalizer { warning: None },
        Some(_) => cleanup(facts, deletion, source),
    }
}

fn cleanup(facts: &InstanceFacts<'_>, deletion: &Deletion, source: SpecSource) -> Next {
    let schedule = Next::Schedule { plan: CLEANUP.to_owned(), source };
    if let Some(next) = aborted_cleanup(facts) {
        return next;
    }
    let Some(entry) = facts.entries.get(CLEANUP) else {
        return if facts.plan == CLEANUP && !facts.uid.is_empty() {
            Next::Start { source }
        } else {
            schedule
        };
    };
    let named = facts.names(CLEANUP, entry);
    if !named && facts.plan == CLEANUP && !facts.uid.is_empty() {
        return Next::Start { source };
    }
    if entry.status.is_running() {
        return match named {
            true => Next::Continue { source },
            false => Next::Restore { plan: CLEANUP.to_owned(), uid: entry.uid.clone() },
        };
    }
    // No user may name `cleanup` before the deletion, and it stays named until the end. Timestamps
    // prove nothing here, as the two come from different clocks.
    match entry.status {
        ExecutionStatus::Complete if named => Next::RemoveFinalizer { warning: None },
        ExecutionStatus::FatalError if named && deletion.failures >= CLEANUP_ATTEMPTS => {
            give_up(&format!("cleanup failed {} times", deletion.failures), entry)
        }
        ExecutionStatus::FatalError if named => Next::RetryCleanup { failures: deletion.failures },
        _ => schedule,
    }
}

fn give_up(why: &str, cleanup: &PlanStatus) -> Next {
    let left = unfinished_steps(cleanup);
    let warning =
        format!("{why}; the finalizer was taken off, what the package made may remain. Not done: {left}");
    Next::RemoveFinalizer { warning: Some(warning) }
}

/// The unfinished steps of a cleanup, with their messages.
fn unfinished_steps(cleanup: &PlanStatus) -> String {
    let phases = cleanup.phases.iter().flatten();
    let steps = phases.flat_map(|phase| phase.steps.iter().flatten().map(|step| (phase.name.as_str(), step)));
    let open = steps.filter(|(_, step)| step.status != ExecutionStatus::Complete);
    let named = open.map(|(phase, step)| match &step.message {
        Some(why) => format!("step {phase}.{} ({why})", step.name),
        None => format!("step {phase}.{}", step.name),
    });
    cleanup.message.iter().cloned().chain(named).collect::<Vec<_>>().join("; ")
}

/// The engine does not retry an aborted cleanup.
fn aborted_cleanup(facts: &InstanceFacts<'_>) -> Option<Next> {
    let pending = facts.request.filter(|pending| matches!(pending.request.verb, PlanVerb::Abort { .. }))?;
    let entries = facts.lock_entries();
    match plan_request::resolve(pending, facts.runs(&entries)) {
        RequestResolution::Abort(CLEANUP) => {
            Some(Next::Answer(RequestAnswer::Abort { plan: CLEANUP.to_owned() }))
        }
        RequestResolution::Clear | RequestResolution::Done
            if facts.entries.get(CLEANUP).is_some_and(|entry| {
                entry.uid == pending.request.run && entry.status == ExecutionStatus::FatalError
            }) =>
        {
            let why = pending.describe();
            Some(Next::RemoveFinalizer {
                warning: Some(format!("cleanup was aborted {why}; what the package made may remain")),
            })
        }
        _ => None,
    }
}
