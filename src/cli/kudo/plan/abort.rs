//! `interlock plan abort`.

use clap::Args;
use interlock_kudo::instance::change::plan_request::PlanVerb;

use super::instance::{InstanceRef, entries, locking_run};
use super::request;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// Flags of `abort`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct AbortFlags {
    #[command(flatten)]
    pub(super) request: request::RequestFlags,
    /// Then revert to the last spec that was carried out in full.
    #[arg(long)]
    revert: bool,
}

/// Ends the run in progress.
pub(super) async fn run(subject: &InstanceRef, flags: &AbortFlags) -> Result<(), CliError> {
    let instance = subject.get().await?;
    let run = request::run_in_progress(subject, &instance, &flags.request)?;
    let verb = PlanVerb::Abort { revert: flags.revert };
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, verb, run, &flags.request.reason).await?;
    let then = if flags.revert {
        "; then the spec reverts to the last one that was carried out in full"
    } else {
        ""
    };
    output::line(&format!("instance {}: {what} is to end{then}", subject.key()))?;
    if !flags.request.wait.wait {
        return Ok(());
    }
    let ended = request::await_result(subject, &request, flags.request.wait.limit.timeout).await?;
    let entry = entries(&ended).find(|(_, entry)| entry.uid == request.run);
    let end = entry.map_or_else(
        || "has ended".to_owned(),
        |(_, e)| format!("is {}: {}", e.status, e.message.clone().unwrap_or_default()),
    );
    output::line(&format!("instance {}: {what} {end}", subject.key()))?;
    if let (true, Some((plan, run))) = (flags.revert, locking_run(&ended)) {
        output::line(&format!(
            "instance {}: plan {plan} (run {run}) reverts the spec; wait for it with `interlock plan wait {}`",
            subject.key(),
            subject.arguments()
        ))?;
    }
    Ok(())
}
