//! `interlock plan wait`: 0 COMPLETE, 1 FATAL_ERROR, 2 no end in time, or an error.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use interlock_core::api::kudo::{ExecutionStatus, Instance};

use super::flags::InstanceName;
use super::instance;
use super::instance::InstanceRef;
use crate::cli::flags::Limit;
use crate::cli::follow::{self, Follower, PlanEnd};

/// Flags of `wait`.
#[derive(Args, Debug)]
pub(super) struct PlanWaitFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    #[command(flatten)]
    limit: Limit,
}

/// Waits for the run in progress; without one, reports how the last one ended, and without that, waits for
/// the first.
pub(super) async fn run(subject: &InstanceRef, flags: &PlanWaitFlags) -> anyhow::Result<ExitCode> {
    let instance = subject.get().await?;
    if instance::current(&instance).is_none()
        && let Some(end) = ended(&instance)
    {
        return print_end(subject, end);
    }
    let mut follower = Follower::default();
    // The running plan is known even if no event follows.
    follower.observe(&instance).0.iter().for_each(|line| println!("{line}"));
    let end = subject.until(flags.limit.timeout, |seen| {
        let Some(instance) = seen else {
            return Some(Err(anyhow!("instance {} was deleted meanwhile", subject.key())));
        };
        let (lines, end) = follower.observe(&instance);
        lines.iter().for_each(|line| println!("{line}"));
        // Only the record shows a run that ended before the watch began.
        let end = match end {
            PlanEnd::No if instance::current(&instance).is_none() => ended(&instance),
            PlanEnd::No => None,
            end => Some(end),
        };
        end.map(Ok)
    });
    match end.await? {
        Some(end) => print_end(subject, end?),
        None => Err(anyhow!(
            "instance {} is not done after {:?}: {}",
            subject.key(),
            flags.limit.timeout,
            follower.current_state()
        )),
    }
}

fn ended(instance: &Instance) -> Option<PlanEnd> {
    let (plan, entry) = instance::last(instance)?;
    Some(match entry.status {
        ExecutionStatus::Complete => PlanEnd::Complete(plan.clone()),
        _ => PlanEnd::Failed(follow::failure_message(plan, entry)),
    })
}

fn print_end(subject: &InstanceRef, end: PlanEnd) -> anyhow::Result<ExitCode> {
    match end {
        PlanEnd::Complete(plan) => {
            println!("instance {}: plan {plan} is COMPLETE", subject.key());
            Ok(ExitCode::SUCCESS)
        }
        PlanEnd::Failed(why) => {
            eprintln!("instance {}: {why}", subject.key());
            Ok(ExitCode::FAILURE)
        }
        PlanEnd::No => Err(anyhow!("instance {}: no plan has ended", subject.key())),
    }
}
