//! `interlock plan retry`.

use interlock_kudo::instance::change::plan_request::PlanVerb;

use super::instance::{InstanceRef, failed, locking_run};
use super::request;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

pub(super) use super::request::RequestFlags;

/// Runs a failed plan again.
pub(super) async fn run(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let instance = subject.get().await?;
    let run = match &flags.run {
        Some(run) => run.clone(),
        None => {
            let (_, run) = failed(&instance).ok_or_else(|| {
                CliError::refused(format!("Instance {}: no plan has failed", subject.key()))
                    .next(format!("look at what ran: `interlock plan history {}`", subject.arguments()))
            })?;
            run
        }
    };
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, PlanVerb::Retry, run, &flags.reason).await?;
    output::line(&format!("instance {}: {what} is to be retried", subject.key()))?;
    if !flags.wait.wait {
        return Ok(());
    }
    let begun = request::await_result(subject, &request, flags.wait.limit.timeout).await?;
    output::line(&request::runs_again(subject, locking_run(&begun)))
}
