//! `interlock plan adopt`.

use interlock_kudo::api::{HeldObject, Instance};
use interlock_kudo::instance::change::plan_request::PlanVerb;

use super::instance::{InstanceRef, failed, locking_run};
use super::request;
use super::request::RequestFlags;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// Retries a run that objects held, with these objects.
pub(super) async fn run(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let instance = subject.get().await?;
    let (run, objects) = held(&instance, flags.run.as_deref()).ok_or_else(|| {
        CliError::refused(format!(
            "Instance {}: no plan is held by objects that exist already",
            subject.key()
        ))
        .next(format!("look at what ended it: `interlock plan status {}`", subject.arguments()))
    })?;
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, PlanVerb::Adopt, run, &flags.reason).await?;
    output::line(&format!("instance {}: {what} is to be retried, and takes over {objects}", subject.key()))?;
    if !flags.wait.wait {
        return Ok(());
    }
    let begun = request::await_result(subject, &request, flags.wait.limit.timeout).await?;
    output::line(&request::runs_again(subject, locking_run(&begun)))
}

/// The failed run, and the objects that hold it.
fn held(instance: &Instance, run: Option<&str>) -> Option<(String, String)> {
    let run = run.map(str::to_owned).or_else(|| failed(instance).map(|(_, run)| run))?;
    let requests = instance.status.as_ref()?.requests.as_ref()?;
    let held = requests.run == run && !requests.held_by.is_empty();
    held.then(|| (run, HeldObject::list(&requests.held_by)))
}
