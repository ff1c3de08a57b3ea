//! `interlock plan pause` and `interlock plan resume`.

use interlock_core::kinds::instance::change::plan_request::PlanVerb;

use super::instance::InstanceRef;
use super::request;
use super::request::RequestFlags;
use crate::cli::error::CliError;
use crate::cli::output;

/// Pauses the run in progress.
pub(super) async fn pause(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let arguments = subject.arguments();
    let then = format!("is paused; let it go on with `interlock plan resume {arguments} --reason WHY`");
    run(subject, flags, PlanVerb::Pause, ("is to pause", &then)).await
}

/// Lets the paused run go on.
pub(super) async fn resume(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let then = format!("goes on; wait for it with `interlock plan wait {}`", subject.arguments());
    run(subject, flags, PlanVerb::Resume, ("is to go on", &then)).await
}

/// Sends a request that changes the run in progress, and tells what becomes of it: at once, and in the end.
async fn run(
    subject: &InstanceRef,
    flags: &RequestFlags,
    verb: PlanVerb,
    (at_once, then): (&str, &str),
) -> Result<(), CliError> {
    let instance = subject.get().await?;
    let run = request::run_in_progress(subject, &instance, flags)?;
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, verb, run, &flags.reason).await?;
    output::line(&format!("instance {}: {what} {at_once}", subject.key()))?;
    if flags.wait.wait {
        request::await_result(subject, &request, flags.wait.limit.timeout).await?;
        output::line(&format!("instance {}: {what} {then}", subject.key()))?;
    }
    Ok(())
}
