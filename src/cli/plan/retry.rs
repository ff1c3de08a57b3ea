//! `interlock plan retry`.

use anyhow::Context as _;
use interlock_core::kinds::instance::change::plan_request::PlanVerb;

use super::instance::{InstanceRef, current, failed};
use super::request;

pub(super) use super::request::RequestFlags;

/// Runs a failed plan again.
pub(super) async fn run(subject: &InstanceRef, flags: &RequestFlags) -> anyhow::Result<()> {
    let instance = subject.get().await?;
    let run = match &flags.run {
        Some(run) => run.clone(),
        None => {
            let (_, run) = failed(&instance)
                .with_context(|| format!("instance {}: no plan has failed", subject.key()))?;
            run
        }
    };
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, PlanVerb::Retry, run, &flags.reason).await?;
    println!("instance {}: {what} is to be retried", subject.key());
    if !flags.wait.wait {
        return Ok(());
    }
    let begun = request::await_result(subject, &request, flags.wait.limit.timeout).await?;
    match current(&begun) {
        Some((plan, run)) => println!(
            "instance {}: plan {plan} runs again (run {run}); wait for it with `interlock plan wait`",
            subject.key()
        ),
        None => println!(
            "instance {}: the plan has run; `interlock plan history` shows its result",
            subject.key()
        ),
    }
    Ok(())
}
