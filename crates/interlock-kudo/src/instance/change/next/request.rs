//! The answer to a plan request.

use super::facts::InstanceFacts;
use super::step::RequestAnswer;
use crate::api::ExecutionStatus;
use crate::instance::change::plan_request;
use crate::instance::change::plan_request::{PendingRequest, PlanVerb, RequestResolution};

/// The answer to a request, unless the request waits for the steps below.
pub(super) fn answer(facts: &InstanceFacts<'_>) -> Option<RequestAnswer> {
    let pending = facts.request?;
    let entries = facts.lock_entries();
    match plan_request::resolve(pending, facts.runs(&entries)) {
        RequestResolution::Abort(plan) => Some(RequestAnswer::Abort { plan: plan.to_owned() }),
        // `planExecution` is cleared of a finished run first.
        RequestResolution::Retry(_) if !facts.plan.is_empty() => None,
        RequestResolution::Retry(plan) => Some(again(facts, RequestAnswer::Retry { plan: plan.to_owned() })),
        RequestResolution::Restart(plan) => {
            Some(again(facts, RequestAnswer::Restart { plan: plan.to_owned() }))
        }
        RequestResolution::Pause(plan) => Some(RequestAnswer::Pause { plan: plan.to_owned() }),
        RequestResolution::Resume(plan) => Some(RequestAnswer::Resume { plan: plan.to_owned() }),
        RequestResolution::Clear | RequestResolution::Scheduled | RequestResolution::AwaitStart => None,
        // The write that reverts the spec drops the request.
        RequestResolution::Done
            if pending.request.verb == (PlanVerb::Abort { revert: true }) && failed(facts, pending) =>
        {
            Some(RequestAnswer::Superseded)
        }
        RequestResolution::Done => Some(RequestAnswer::Remove(None)),
        RequestResolution::Dropped(error) => Some(RequestAnswer::Remove(Some(error.to_string()))),
    }
}

/// An answer that runs a plan again, where its spec may run.
fn again(facts: &InstanceFacts<'_>, answer: RequestAnswer) -> RequestAnswer {
    if !runnable(facts) {
        return RequestAnswer::Remove(Some("the spec that it would run on is lost".to_owned()));
    }
    facts.refusal_of(facts.source()).map_or(answer, |refusal| {
        RequestAnswer::Remove(Some(format!(
            "the spec that it would run on is refused: {} (rule {})",
            refusal.message, refusal.rule
        )))
    })
}

/// Whether the run of a request ended in failure.
fn failed(facts: &InstanceFacts<'_>, pending: &PendingRequest) -> bool {
    let mut entries = facts.entries.values();
    entries.any(|entry| entry.uid == pending.request.run && entry.status == ExecutionStatus::FatalError)
}

/// Whether an accepted spec exists.
fn runnable(facts: &InstanceFacts<'_>) -> bool {
    let stamped = facts.stamp.is_some_and(|stamp| stamp.spec.is_some());
    stamped || facts.baseline.is_none_or(|baseline| baseline.hash == facts.spec.hash())
}
