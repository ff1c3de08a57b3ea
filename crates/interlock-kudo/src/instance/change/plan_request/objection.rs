//! Whether a request can be executed on an Instance in its present state, and why not.

use interlock_core::api::meta::plan::CLEANUP;
use thiserror::Error;

use super::request::PlanRequest;
use super::runs::{RunState, Runs};
use super::verb::PlanVerb;
use crate::api::ExecutionStatus;

/// Why a request cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestObjection {
    /// No such run.
    #[error("run {run} is none of this Instance's{}", now(.busy.as_ref()))]
    UnknownRun {
        /// The run that was named.
        run: String,
        /// Plan and uid of the current run.
        busy: Option<(String, String)>,
    },
    /// The run has ended.
    #[error("run {run} of plan {plan} has ended: it is {status}")]
    Over {
        /// The run that was named.
        run: String,
        plan: String,
        /// How it ended.
        status: String,
    },
    /// The run has not ended.
    #[error("run {run} of plan {plan} has not ended: abort it first, or wait")]
    NotOver {
        /// The run that was named.
        run: String,
        plan: String,
    },
    /// The run is paused already.
    #[error("run {run} of plan {plan} is paused already")]
    Paused {
        /// The run that was named.
        run: String,
        plan: String,
    },
    /// The run is not paused.
    #[error("run {run} of plan {plan} is not paused")]
    NotPaused {
        /// The run that was named.
        run: String,
        plan: String,
    },
    /// The run was not held by objects that can be taken over.
    #[error(
        "run {run} of plan {plan} is not the last one, or did not end at objects of this namespace that no Instance \
         made: there is nothing to adopt"
    )]
    NothingToAdopt {
        /// The run that was named.
        run: String,
        plan: String,
    },
    /// Another plan runs.
    #[error("plan {plan} runs now (run {run}): wait until it has ended")]
    Busy {
        /// The plan that runs.
        plan: String,
        run: String,
    },
    /// There is no spec to revert to.
    #[error("there is nothing to go back to: no other spec was carried out in full; abort without --revert")]
    NoPrevious,
    /// The Instance is being deleted.
    #[error("the Instance is being deleted: cleanup is tried again by itself")]
    Deleting,
    /// The request has been executed.
    #[error("the request with nonce {0} was carried out already: a new one needs a new nonce")]
    Used(String),
}

fn now(busy: Option<&(String, String)>) -> String {
    busy.map_or_else(
        || "; no plan runs now".to_owned(),
        |(plan, uid)| format!("; plan {plan} runs now as {uid}"),
    )
}

/// Preconditions of a request, apart from the runs.
#[derive(Clone, Copy, Debug)]
pub struct RequestPreconditions {
    /// Whether the last-applied spec holds the one last carried out in full.
    pub previous: bool,
    /// Whether the Instance is being deleted.
    pub deleting: bool,
    /// Whether the history has a request with that nonce.
    pub used: bool,
}

/// Checks whether a request can be executed on an Instance in its present state.
pub fn validate(
    request: &PlanRequest,
    runs: Runs<'_>,
    preconditions: RequestPreconditions,
) -> Result<(), RequestObjection> {
    let run = || request.run.clone();
    let state = runs.state_of(&request.run);
    if preconditions.used {
        return Err(RequestObjection::Used(request.nonce.clone()));
    }
    if state == RunState::Unknown {
        let busy = runs.active().map(|(plan, uid)| (plan.to_owned(), uid.to_owned()));
        return Err(RequestObjection::UnknownRun { run: run(), busy });
    }
    match (request.verb, state) {
        (PlanVerb::Abort { revert: true }, RunState::Scheduled(_) | RunState::Running(_))
            if preconditions.deleting =>
        {
            Err(RequestObjection::Deleting)
        }
        (PlanVerb::Abort { revert: true }, RunState::Scheduled(_) | RunState::Running(_))
            if !preconditions.previous =>
        {
            Err(RequestObjection::NoPrevious)
        }
        (
            PlanVerb::Abort { .. } | PlanVerb::Restart | PlanVerb::Pause | PlanVerb::Resume,
            RunState::Ended(plan, status),
        ) => Err(RequestObjection::Over { run: run(), plan: plan.to_owned(), status: status.to_string() }),
        (PlanVerb::Abort { .. }, _) => Ok(()),
        (
            PlanVerb::Restart | PlanVerb::Pause | PlanVerb::Resume,
            RunState::Scheduled(CLEANUP) | RunState::Running(CLEANUP),
        ) => Err(RequestObjection::Deleting),
        (PlanVerb::Restart | PlanVerb::Pause | PlanVerb::Resume, _) if preconditions.deleting => {
            Err(RequestObjection::Deleting)
        }
        (PlanVerb::Pause, RunState::Scheduled(plan) | RunState::Running(plan))
            if runs.is_paused(&request.run) =>
        {
            Err(RequestObjection::Paused { run: run(), plan: plan.to_owned() })
        }
        (PlanVerb::Resume, RunState::Scheduled(plan) | RunState::Running(plan))
            if !runs.is_paused(&request.run) =>
        {
            Err(RequestObjection::NotPaused { run: run(), plan: plan.to_owned() })
        }
        (PlanVerb::Restart | PlanVerb::Pause | PlanVerb::Resume, _) => Ok(()),
        (PlanVerb::Retry | PlanVerb::Adopt, _) if preconditions.deleting => Err(RequestObjection::Deleting),
        (PlanVerb::Retry | PlanVerb::Adopt, RunState::Ended(CLEANUP, _)) => Err(RequestObjection::Deleting),
        (PlanVerb::Retry | PlanVerb::Adopt, RunState::Ended(plan, ExecutionStatus::FatalError)) => match runs
            .active()
        {
            Some((plan, run)) => Err(RequestObjection::Busy { plan: plan.to_owned(), run: run.to_owned() }),
            None if request.verb == PlanVerb::Adopt && !runs.is_held(&request.run) => {
                Err(RequestObjection::NothingToAdopt { run: run(), plan: plan.to_owned() })
            }
            None => Ok(()),
        },
        (PlanVerb::Retry | PlanVerb::Adopt, RunState::Ended(plan, status)) => {
            Err(RequestObjection::Over { run: run(), plan: plan.to_owned(), status: status.to_string() })
        }
        (PlanVerb::Retry | PlanVerb::Adopt, RunState::Scheduled(plan) | RunState::Running(plan)) => {
            Err(RequestObjection::NotOver { run: run(), plan: plan.to_owned() })
        }
        (PlanVerb::Retry | PlanVerb::Adopt, RunState::Unknown) => Ok(()),
    }
}
