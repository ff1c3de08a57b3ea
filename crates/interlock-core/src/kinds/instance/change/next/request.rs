//! The answer to a plan request.

use super::facts::InstanceFacts;
use super::step::RequestAnswer;
use crate::api::kudo::ExecutionStatus;
use crate::kinds::instance::change::plan_request;
use crate::kinds::instance::change::plan_request::{PendingRequest, PlanVerb, RequestResolution, Runs};

/// The answer to a request, unless the request waits for the steps below.
pub(super) fn answer(facts: &InstanceFacts<'_>) -> Option<RequestAnswer> {
    let asked = facts.asked?;
    match plan_request::course(
        asked,
        Runs { plan: facts.plan, uid: facts.uid, entries: &facts.lock_entries() },
    ) {
        RequestResolution::Abort(plan) => Some(RequestAnswer::Abort { plan: plan.to_owned() }),
        // `planExecution` is cleared of a finished run first.
        RequestResolution::Retry(_) if !facts.plan.is_empty() => None,
        RequestResolution::Retry(plan) => Some(match facts.objection(facts.source()) {
            _ if !runnable(facts) => {
                RequestAnswer::Forget(Some("the spec that it would run on is lost".to_owned()))
            }
            Some(refusal) => RequestAnswer::Forget(Some(format!(
                "the spec that it would run on is refused: {} (rule {})",
                refusal.message, refusal.rule
            ))),
            None => RequestAnswer::Retry { plan: plan.to_owned() },
        }),
        RequestResolution::Clear | RequestResolution::Marked => None,
        // The write that reverts the spec drops the request.
        RequestResolution::Done
            if asked.request.verb == (PlanVerb::Abort { revert: true }) && failed(facts, asked) =>
        {
            Some(RequestAnswer::Overtaken)
        }
        RequestResolution::Done => Some(RequestAnswer::Forget(None)),
        RequestResolution::Dropped(objection) => Some(RequestAnswer::Forget(Some(objection.to_string()))),
    }
}

/// Whether the run of a request ended in failure.
fn failed(facts: &InstanceFacts<'_>, asked: &PendingRequest) -> bool {
    let mut entries = facts.entries.values();
    entries.any(|entry| entry.uid == asked.request.run && entry.status == ExecutionStatus::FatalError)
}

/// Whether an accepted spec exists.
fn runnable(facts: &InstanceFacts<'_>) -> bool {
    let stamped = facts.stamp.is_some_and(|stamp| stamp.spec.is_some());
    stamped || facts.basis.is_none_or(|basis| basis.hash == facts.spec.hash())
}
