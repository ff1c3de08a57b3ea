//! `interlock plan wait`: 0 COMPLETE, 1 FATAL_ERROR, 3 no end in time.

use std::time::Duration;

use clap::Args;
use interlock_kudo::api::{ExecutionStatus, Instance};

use super::flags::InstanceName;
use super::instance;
use super::instance::InstanceRef;
use crate::cli::common::error::CliError;
use crate::cli::common::flags::Limit;
use crate::cli::common::output;
use crate::cli::kudo::follow;
use crate::cli::kudo::follow::{Follower, PlanEnd};

/// Flags of `wait`.
#[derive(Args, Debug)]
pub(super) struct PlanWaitFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    #[command(flatten)]
    pub(super) limit: Limit,
}

/// Waits for the run in progress, with a line for each change of a step; without one, reports how the last
/// one ended, and without that, waits for the first.
pub(super) async fn run(subject: &InstanceRef, limit: Duration) -> Result<(), CliError> {
    let instance = subject.get().await?;
    if let Some(end) = ended(&instance) {
        return print_end(subject, &end);
    }
    let mut follower = Follower::default();
    // The running plan is known even if no event follows.
    for line in follower.observe(&instance).0 {
        output::line(&line)?;
    }
    let end = subject.watched(limit, |seen| {
        let Some(instance) = seen else { return Some(Err(gone(subject))) };
        let (lines, end) = follower.observe(&instance);
        let printed = lines.iter().try_for_each(|line| output::line(line));
        // Only the record shows a run that ended before the watch began.
        let end = match end {
            PlanEnd::No => ended(&instance),
            end => Some(end),
        };
        match printed {
            Ok(()) => end.map(Ok),
            Err(error) => Some(Err(error)),
        }
    });
    match end.await? {
        Some(end) => print_end(subject, &end?),
        None => Err(CliError::unreached(format!("Instance {} is not done after {limit:?}", subject.key()))
            .why(follower.current_state())
            .next(format!(
                "wait longer with --timeout, or look at what it waits for: `interlock plan status {}`",
                subject.arguments()
            ))),
    }
}

/// How the last run ended, where none is scheduled or runs.
pub(super) fn ended(instance: &Instance) -> Option<PlanEnd> {
    if instance::locking_run(instance).is_some() {
        return None;
    }
    let (plan, entry) = instance::last(instance)?;
    Some(match entry.status {
        ExecutionStatus::Complete => PlanEnd::Complete(plan.clone()),
        _ => PlanEnd::Failed(follow::failure_message(plan, entry)),
    })
}

/// The error where the Instance is deleted while it is waited for.
pub(super) fn gone(subject: &InstanceRef) -> CliError {
    CliError::unreached(format!("Instance {} was deleted meanwhile", subject.key()))
}

/// Prints the end of a plan, or fails with it.
pub(super) fn print_end(subject: &InstanceRef, end: &PlanEnd) -> Result<(), CliError> {
    match end {
        PlanEnd::Complete(plan) => {
            output::line(&format!("instance {}: plan {plan} is COMPLETE", subject.key()))
        }
        PlanEnd::Failed(why) => {
            Err(CliError::refused(why).place(format!("Instance {}", subject.key())).next(format!(
                "correct the cause, then `interlock plan retry {} --reason WHY`",
                subject.arguments()
            )))
        }
        PlanEnd::No => Err(CliError::refused(format!("Instance {}: no plan has ended", subject.key()))),
    }
}
