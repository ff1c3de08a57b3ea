//! `interlock plan restart`.

use interlock_kudo::instance::change::plan_request::PlanVerb;

use super::instance::{InstanceRef, locking_run};
use super::request;
use super::request::RequestFlags;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// Ends the run in progress, and starts its plan at the first step.
pub(super) async fn run(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let instance = subject.get().await?;
    let run = request::run_in_progress(subject, &instance, flags)?;
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, PlanVerb::Restart, run, &flags.reason).await?;
    output::line(&format!("instance {}: {what} is to begin anew", subject.key()))?;
    if !flags.wait.wait {
        return Ok(());
    }
    let begun = request::await_result(subject, &request, flags.wait.limit.timeout).await?;
    output::line(&request::runs_again(subject, locking_run(&begun)))
}
