//! What is to be done about a request now.

use interlock_core::api::meta::plan::CLEANUP;

use super::objection::{RequestObjection, RequestPreconditions, validate};
use super::request::PendingRequest;
use super::runs::{RunState, Runs};
use super::verb::PlanVerb;
use crate::api::ExecutionStatus;

/// Resolution of a request on an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestResolution<'a> {
    /// End the run of this plan.
    Abort(&'a str),
    /// Its run has ended, but `planExecution` names it: the write that clears it drops the request.
    Clear,
    /// Schedule the plan again.
    Retry(&'a str),
    /// End the run of this plan, and schedule the plan again.
    Restart(&'a str),
    /// Pause the run of this plan.
    Pause(&'a str),
    /// Its run has not begun, and is paused when it has.
    AwaitStart,
    /// Let the run of this plan go on.
    Resume(&'a str),
    /// The run that it starts is scheduled, and the request marks it.
    Scheduled,
    /// The request has been executed: remove it.
    Done,
    /// The request cannot be executed any more: remove and report it.
    Dropped(RequestObjection),
}

/// Resolves a request on an Instance that is not being deleted.
pub fn resolve<'a>(pending: &PendingRequest, runs: Runs<'a>) -> RequestResolution<'a> {
    let run = pending.request.run.as_str();
    match (pending.request.verb, runs.state_of(run)) {
        (PlanVerb::Abort { .. }, RunState::Scheduled(plan) | RunState::Running(plan)) => {
            RequestResolution::Abort(plan)
        }
        (PlanVerb::Abort { .. }, RunState::Ended(..)) if runs.names(run) => RequestResolution::Clear,
        (PlanVerb::Abort { .. }, RunState::Ended(..)) => RequestResolution::Done,
        (PlanVerb::Retry | PlanVerb::Adopt | PlanVerb::Restart, _) if runs.has_begun(&pending.new_run) => {
            RequestResolution::Done
        }
        (PlanVerb::Retry | PlanVerb::Adopt | PlanVerb::Restart, _) if runs.names(&pending.new_run) => {
            RequestResolution::Scheduled
        }
        (PlanVerb::Restart, RunState::Scheduled(plan) | RunState::Running(plan)) if plan != CLEANUP => {
            RequestResolution::Restart(plan)
        }
        (PlanVerb::Retry, RunState::Ended(plan, ExecutionStatus::FatalError))
            if plan != CLEANUP && runs.active().is_none() =>
        {
            RequestResolution::Retry(plan)
        }
        (PlanVerb::Adopt, RunState::Ended(plan, ExecutionStatus::FatalError))
            if plan != CLEANUP && runs.active().is_none() && runs.is_held(run) =>
        {
            RequestResolution::Retry(plan)
        }
        (PlanVerb::Pause | PlanVerb::Resume, _) if runs.has_answered(run, &pending.request.nonce) => {
            RequestResolution::Done
        }
        (PlanVerb::Pause, RunState::Running(plan)) if plan != CLEANUP && !runs.is_paused(run) => {
            RequestResolution::Pause(plan)
        }
        (PlanVerb::Pause, RunState::Scheduled(plan)) if plan != CLEANUP => RequestResolution::AwaitStart,
        (PlanVerb::Resume, RunState::Running(plan)) if runs.is_paused(run) => RequestResolution::Resume(plan),
        _ => {
            let preconditions = RequestPreconditions { previous: true, deleting: false, used: false };
            match validate(&pending.request, runs, preconditions) {
                Err(error) => RequestResolution::Dropped(error),
                Ok(()) => RequestResolution::Done,
            }
        }
    }
}
