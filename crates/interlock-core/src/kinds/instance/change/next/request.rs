//! The answer to a plan request.

use super::facts::InstanceFacts;
use super::step::RequestAnswer;
use crate::api::kudo::ExecutionStatus;
use crate::kinds::instance::change::plan_request;
use crate::kinds::instance::change::plan_request::{PendingRequest, PlanVerb, RequestResolution, Runs};

/// The answer to a request, unless the request waits for the steps below.
pub(super) fn answer(facts: &InstanceFacts<'_>) -> Option<RequestAnswer> {
    let pending = facts.request?;
    match plan_request::resolve(
        pending,
        Runs { plan: facts.plan, uid: facts.uid, entries: &facts.lock_entries() },
    ) {
        RequestResolution::Abort(plan) => Some(RequestAnswer::Abort { plan: plan.to_owned() }),
        // `planExecution` is cleared of a finished run first.
        RequestResolution::Retry(_) if !facts.plan.is_empty() => None,
        RequestResolution::Retry(plan) => Some(match facts.refusal_of(facts.source()) {
            _ if !runnable(facts) => {
                RequestAnswer::Remove(Some("the spec that it would run on is lost".to_owned()))
            }
            Some(refusal) => RequestAnswer::Remove(Some(format!(
                "the spec that it would run on is refused: {} (rule {})",
                refusal.message, refusal.rule
            ))),
            None => RequestAnswer::Retry { plan: plan.to_owned() },
        }),
        RequestResolution::Clear | RequestResolution::Scheduled => None,
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
