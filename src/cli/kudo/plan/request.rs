//! Shared by the requests: the run, the annotation, and the wait for its result.

use std::time::Duration;

use clap::Args;
use interlock_core::api::condition;
use interlock_core::api::meta;
use interlock_kudo::api::Instance;
use interlock_kudo::instance::change::history;
use interlock_kudo::instance::change::plan_request;
use interlock_kudo::instance::change::plan_request::{PlanRequest, PlanVerb};
use serde_json::json;

use super::flags::{InstanceName, WaitLimit};
use super::instance::{InstanceRef, annotation, entries, locking_run};
use super::wait::gone;
use crate::cli::common::error::CliError;

/// The likely cause where a request gets no reaction.
const LIKELY_CAUSE: &str = "Interlock does not react";

/// Flags of a request.
#[derive(Args, Debug)]
pub(super) struct RequestFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    /// Why, in one line: it goes into the Event and the history.
    #[arg(long)]
    pub(super) reason: String,
    /// Uid of the run, if it is not the current or last one.
    #[arg(long, value_name = "UID")]
    pub(super) run: Option<String>,
    #[command(flatten)]
    pub(super) wait: WaitLimit,
}

/// The run of the flag, else the one that is scheduled or runs.
pub(super) fn run_in_progress(
    subject: &InstanceRef,
    instance: &Instance,
    flags: &RequestFlags,
) -> Result<String, CliError> {
    let run = flags.run.clone().or_else(|| locking_run(instance).map(|(_, run)| run));
    run.ok_or_else(|| {
        CliError::refused(format!("Instance {}: no plan runs", subject.key()))
            .next(format!("look at what ran: `interlock plan history {}`", subject.arguments()))
    })
}

/// Writes a plan request.
pub(super) async fn send(
    subject: &InstanceRef,
    verb: PlanVerb,
    run: String,
    reason: &str,
) -> Result<PlanRequest, CliError> {
    plan_request::check_reason(reason).map_err(|error| CliError::usage(format!("--reason: {error}")))?;
    let request = PlanRequest { verb, run, nonce: uuid::Uuid::new_v4().simple().to_string() };
    let annotations = json!({ meta::REQUEST: request.to_string(), meta::REASON: reason });
    subject.patch(json!({ "metadata": { "annotations": annotations } })).await?;
    Ok(request)
}

/// Waits until a request was carried out; returns the new Instance.
pub(super) async fn await_result(
    subject: &InstanceRef,
    request: &PlanRequest,
    limit: Duration,
) -> Result<Instance, CliError> {
    let text = request.to_string();
    let mut unavailable = None;
    let seen = subject.watched(limit, |seen| match seen {
        None => Some(None),
        Some(instance) => {
            unavailable = not_carried_out(&instance);
            (annotation(&instance, meta::REQUEST) != Some(&text)).then_some(Some(instance))
        }
    });
    match seen.await? {
        Some(Some(instance)) => {
            let runs = history::read(annotation(&instance, meta::HISTORY));
            if !history::knows(&runs, &request.nonce) {
                return Err(CliError::refused("the request was removed without effect")
                    .place(format!("Instance {}", subject.key()))
                    .next(format!(
                        "look at the Event {}: `kubectl describe instance {}`",
                        meta::event::REQUEST_DROPPED,
                        subject.arguments()
                    )));
            }
            Ok(instance)
        }
        Some(None) => Err(gone(subject)),
        None => Err(CliError::unreached(format!("the request is not carried out after {limit:?}"))
            .place(format!("Instance {}", subject.key()))
            .why(unavailable.unwrap_or_else(|| LIKELY_CAUSE.to_owned()))
            .next("look at Interlock: `kubectl get pods -n interlock-system`")),
    }
}

/// Why requests are not carried out.
fn not_carried_out(instance: &Instance) -> Option<String> {
    let conditions = &instance.status.as_ref()?.conditions;
    let found = condition::find(conditions, meta::condition::VERBS_UNAVAILABLE)?;
    Some(if found.status == "True" { found.message.clone() } else { LIKELY_CAUSE.to_owned() })
}

/// `plan PLAN (run UID)`.
pub(super) fn run_name(instance: &Instance, run: &str) -> String {
    let plan = entries(instance).find(|(_, entry)| entry.uid == run).map(|(plan, _)| plan.as_str());
    let execution = instance.spec.plan_execution.as_ref().filter(|e| e.uid() == run);
    let plan = plan.or(execution.map(|e| e.plan()));
    plan.map_or_else(|| format!("run {run}"), |plan| format!("plan {plan} (run {run})"))
}

/// What became of a request that starts a run; `now` is the plan and run that is scheduled or runs.
pub(super) fn runs_again(subject: &InstanceRef, now: Option<(String, String)>) -> String {
    let (key, arguments) = (subject.key(), subject.arguments());
    match now {
        Some((plan, run)) => format!(
            "instance {key}: plan {plan} runs again (run {run}); wait for it with `interlock plan wait {arguments}`"
        ),
        None => {
            format!("instance {key}: the plan has run; `interlock plan history {arguments}` shows its result")
        }
    }
}
