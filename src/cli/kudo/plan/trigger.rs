//! `interlock plan trigger`: names a plan in `spec.planExecution`, as any user of an Instance may.

use clap::Args;
use interlock_core::api::meta::plan::CLEANUP;
use interlock_core::api::suggest;
use interlock_kudo::api::Instance;
use serde_json::json;

use crate::cli::common::error::CliError;
use crate::cli::common::output;
use crate::cli::kudo::instance::{InstanceName, InstanceRef, WaitFlags, locking_run};
use crate::cli::kudo::wait;

/// Flags of `trigger`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct TriggerFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    /// The plan, one of those that `interlock plan list INSTANCE` shows.
    #[arg(long)]
    plan: String,
    #[command(flatten)]
    wait: WaitFlags,
}

/// Schedules the plan.
pub(super) async fn run(subject: &InstanceRef, flags: &TriggerFlags) -> Result<(), CliError> {
    let instance = subject.read().await?;
    // Who may not read the OperatorVersion learns from admission whether the plan exists.
    if let Ok(Some(version)) = subject.operator_version(&instance).await {
        let name = version.metadata.name.as_deref().unwrap_or_default();
        let plans: Vec<&str> = version.spec.plans.iter().flatten().map(|(plan, _)| plan.as_str()).collect();
        exists(name, &plans, &flags.plan)?;
    }
    free(subject, &instance, &flags.plan)?;
    let patch = json!({ "spec": { "planExecution": { "planName": flags.plan } } });
    let scheduled = subject.merge(patch).await?;
    let run = locking_run(&scheduled).ok_or_else(|| left_out(subject, &scheduled, &flags.plan))?.1;
    let run = format!(" (run {run})");
    output::line(&format!("instance {}: plan {}{run} is scheduled", subject.key(), flags.plan))?;
    if flags.wait.wait { wait::run(subject, flags.wait.limit.timeout).await } else { Ok(()) }
}

/// Admission has taken the plan out again: of an Instance that waits for its OperatorVersion nothing is carried out.
fn left_out(subject: &InstanceRef, instance: &Instance, wanted: &str) -> CliError {
    let reference = instance.spec.operator_version.as_ref().map_or("", |version| version.name());
    CliError::refused(format!("plan {wanted} is not triggered"))
        .place(subject.to_string())
        .why(format!("it waits for OperatorVersion {reference}: plan deploy runs first"))
        .next(format!("look at it: `interlock plan status {}`", subject.arguments()))
}

/// A write that names the plan that already runs would change nothing, and be admitted.
fn free(subject: &InstanceRef, instance: &Instance, wanted: &str) -> Result<(), CliError> {
    let Some((plan, run)) = locking_run(instance) else { return Ok(()) };
    let arguments = subject.arguments();
    Err(CliError::refused(format!("plan {wanted} is not triggered"))
        .place(subject.to_string())
        .why(format!("plan {plan} (run {run}) is scheduled or runs"))
        .next(format!(
            "wait with `interlock plan wait {arguments}`, or end it with `interlock plan abort {arguments} --reason WHY`"
        )))
}

fn exists(version: &str, plans: &[&str], wanted: &str) -> Result<(), CliError> {
    if plans.contains(&wanted) {
        return Ok(());
    }
    let plans: Vec<&str> = plans.iter().filter(|plan| **plan != CLEANUP).copied().collect();
    let error = CliError::unreached(format!("OperatorVersion {version} has no plan {wanted:?}"));
    Err(error.next_where(suggest::remedy(wanted, "plans", &plans)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_does_not_exist_is_named_with_those_that_do() {
        let plans = ["backup", "cleanup", "deploy"];
        assert!(exists("held-0.1.0", &plans, "backup").is_ok());
        assert_eq!(
            exists("held-0.1.0", &plans, "bakcup").unwrap_err().text(),
            "error: OperatorVersion held-0.1.0 has no plan \"bakcup\"\n  next:  did you mean backup?\n"
        );
        assert_eq!(
            exists("held-0.1.0", &plans, "migrate").unwrap_err().text(),
            "error: OperatorVersion held-0.1.0 has no plan \"migrate\"\n  next:  name one of the plans: backup, deploy\n"
        );
    }
}
