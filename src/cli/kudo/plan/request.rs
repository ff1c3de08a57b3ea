//! `interlock plan abort`, `retry`, `adopt`, `restart`, `pause` and `resume`: asks for what can be done with a run, and
//! waits for what becomes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use interlock_core::api::condition;
use interlock_core::api::meta;
use interlock_kudo::api::{HeldObject, Instance};
use interlock_kudo::instance::change::history;
use interlock_kudo::instance::change::plan_request;
use interlock_kudo::instance::change::plan_request::{PlanRequest, PlanVerb};
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::cli::common::error::CliError;
use crate::cli::common::output;
use crate::cli::common::target::TargetFlags;
use crate::cli::kudo::instance::{
    InstanceName, InstanceRef, WaitFlags, annotation, entries, failed, locking_run,
};

/// The likely cause where a request gets no reaction.
const LIKELY_CAUSE: &str = "Interlock does not react";

/// Instances that are looked at.
const MOST: u32 = 1000;

/// Instances that are named.
const SHOWN: usize = 8;

/// What is asked of a run.
#[derive(Debug, Subcommand)]
pub(super) enum RequestVerb {
    /// Aborts the scheduled or running plan.
    Abort(AbortFlags),
    /// Retries a failed plan, from the failed step if nothing else has changed.
    Retry(RequestFlags),
    /// Retries a plan that was blocked by objects that no Instance created, and takes them over: they are updated,
    /// and deleted with the Instance.
    Adopt(RequestFlags),
    /// Ends the scheduled or running plan and starts it again, from its first step.
    Restart(RequestFlags),
    /// Pauses the scheduled or running plan: Interlock writes nothing more for it.
    Pause(RequestFlags),
    /// Resumes a paused plan.
    Resume(RequestFlags),
}

/// Flags of a request.
#[derive(Args, Debug)]
pub(super) struct RequestFlags {
    #[command(flatten)]
    name: InstanceName,
    /// Why, in one line: it goes into the Event and the history.
    #[arg(long)]
    reason: String,
    /// Uid of the run, if it is not the current or last one.
    #[arg(long, value_name = "UID")]
    run: Option<String>,
    #[command(flatten)]
    wait: WaitFlags,
}

/// Flags of `abort`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct AbortFlags {
    #[command(flatten)]
    request: RequestFlags,
    /// Then revert to the last spec that was carried out in full.
    #[arg(long)]
    revert: bool,
}

/// Writes a request, and waits for its result where that is wanted.
pub(super) async fn run(verb: RequestVerb, target: &TargetFlags) -> Result<(), CliError> {
    let (verb, flags) = match verb {
        RequestVerb::Abort(AbortFlags { request, revert }) => (PlanVerb::Abort { revert }, request),
        RequestVerb::Retry(flags) => (PlanVerb::Retry, flags),
        RequestVerb::Adopt(flags) => (PlanVerb::Adopt, flags),
        RequestVerb::Restart(flags) => (PlanVerb::Restart, flags),
        RequestVerb::Pause(flags) => (PlanVerb::Pause, flags),
        RequestVerb::Resume(flags) => (PlanVerb::Resume, flags),
    };
    let subject = InstanceRef::connect(target, flags.name.get()).await?;
    let instance = subject.read().await?;
    let (run, done) = asked(&subject, &instance, verb, flags.run.as_deref())?;
    let what = run_name(&instance, &run);
    let request = send(&subject, verb, run, &flags.reason).await?;
    output::line(&format!("instance {}: {what} {done}", subject.key()))?;
    if flags.wait.wait {
        let then = await_result(&subject, &request, flags.wait.limit.timeout).await?;
        for line in became(&subject, &request, &what, &then) {
            output::line(&format!("instance {}: {line}", subject.key()))?;
        }
    }
    if verb != PlanVerb::Pause {
        return Ok(());
    }
    // What it has started goes on, the plans of child Instances too. Who may not list them sees none.
    let beside = subject.objects.list(&ListParams::default().limit(MOST)).await;
    let running = beside.map(|list| running_below(&instance, &list.items)).unwrap_or_default();
    told(&running, &subject.namespace).map_or(Ok(()), |line| output::line(&line))
}

/// The run that a request is about, that of the flag where there is one, and what is to become of it.
fn asked(
    subject: &InstanceRef,
    instance: &Instance,
    verb: PlanVerb,
    given: Option<&str>,
) -> Result<(String, String), CliError> {
    let given = given.map(str::to_owned);
    let run = match verb {
        PlanVerb::Retry | PlanVerb::Adopt => given.or_else(|| failed(instance).map(|(_, run)| run)),
        _ => given.or_else(|| locking_run(instance).map(|(_, run)| run)),
    };
    let held = run.as_ref().and_then(|run| held(instance, run));
    let arguments = subject.arguments();
    let (none, look) = match verb {
        PlanVerb::Retry => {
            ("no plan has failed", format!("look at what ran: `interlock plan history {arguments}`"))
        }
        PlanVerb::Adopt => (
            "no plan is held by objects that exist already",
            format!("look at what ended it: `interlock plan status {arguments}`"),
        ),
        _ => ("no plan runs", format!("look at what ran: `interlock plan history {arguments}`")),
    };
    let run = run.filter(|_| verb != PlanVerb::Adopt || held.is_some());
    let run = run.ok_or_else(|| CliError::refused(format!("{subject}: {none}")).next(look))?;
    let done = match verb {
        PlanVerb::Abort { revert: false } => "is to end".to_owned(),
        PlanVerb::Abort { revert: true } => {
            "is to end; then the spec reverts to the last one that was carried out in full".to_owned()
        }
        PlanVerb::Retry => "is to be retried".to_owned(),
        PlanVerb::Adopt => format!("is to be retried, and takes over {}", held.unwrap_or_default()),
        PlanVerb::Restart => "is to begin anew".to_owned(),
        PlanVerb::Pause => "is to pause".to_owned(),
        PlanVerb::Resume => "is to go on".to_owned(),
    };
    Ok((run, done))
}

/// The objects that hold a failed run.
fn held(instance: &Instance, run: &str) -> Option<String> {
    let requests = instance.status.as_ref()?.requests.as_ref()?;
    (requests.run == run && !requests.held_by.is_empty()).then(|| HeldObject::list(&requests.held_by))
}

/// What became of a run, which is called `what`, once the request was carried out.
fn became(subject: &InstanceRef, request: &PlanRequest, what: &str, then: &Instance) -> Vec<String> {
    let arguments = subject.arguments();
    let locks = locking_run(then);
    match request.verb {
        PlanVerb::Pause => {
            vec![format!(
                "{what} is paused; let it go on with `interlock plan resume {arguments} --reason WHY`"
            )]
        }
        PlanVerb::Resume => {
            vec![format!("{what} goes on; wait for it with `interlock plan wait {arguments}`")]
        }
        PlanVerb::Abort { revert } => {
            let entry = entries(then).find(|(_, entry)| entry.uid == request.run);
            let end = entry.map_or_else(
                || "has ended".to_owned(),
                |(_, e)| format!("is {}: {}", e.status, e.message.clone().unwrap_or_default()),
            );
            let reverts = locks.filter(|_| revert).map(|(plan, run)| {
                format!(
                    "plan {plan} (run {run}) reverts the spec; wait for it with `interlock plan wait {arguments}`"
                )
            });
            std::iter::once(format!("{what} {end}")).chain(reverts).collect()
        }
        PlanVerb::Retry | PlanVerb::Adopt | PlanVerb::Restart => vec![match locks {
            Some((plan, run)) => format!(
                "plan {plan} runs again (run {run}); wait for it with `interlock plan wait {arguments}`"
            ),
            None => format!("the plan has run; `interlock plan history {arguments}` shows its result"),
        }],
    }
}

/// Writes a plan request.
async fn send(
    subject: &InstanceRef,
    verb: PlanVerb,
    run: String,
    reason: &str,
) -> Result<PlanRequest, CliError> {
    plan_request::check_reason(reason).map_err(|error| CliError::usage(format!("--reason: {error}")))?;
    let request = PlanRequest { verb, run, nonce: uuid::Uuid::new_v4().simple().to_string() };
    let annotations = json!({ meta::REQUEST: request.to_string(), meta::REASON: reason });
    subject.merge(json!({ "metadata": { "annotations": annotations } })).await?;
    Ok(request)
}

/// Waits until a request was carried out; returns the new Instance.
async fn await_result(
    subject: &InstanceRef,
    request: &PlanRequest,
    limit: Duration,
) -> Result<Instance, CliError> {
    let text = request.to_string();
    let mut unavailable = None;
    let seen = subject.until(limit, |instance| {
        unavailable = not_carried_out(&instance);
        (annotation(&instance, meta::REQUEST) != Some(&text)).then_some(Ok(instance))
    });
    let Some(instance) = seen.await? else {
        return Err(CliError::unreached(format!("the request is not carried out after {limit:?}"))
            .place(subject.to_string())
            .why(unavailable.unwrap_or_else(|| LIKELY_CAUSE.to_owned()))
            .next("look at Interlock: `kubectl get pods -n interlock-system`"));
    };
    if history::knows(&history::read(annotation(&instance, meta::HISTORY)), &request.nonce) {
        return Ok(instance);
    }
    Err(CliError::refused("the request was removed without effect").place(subject.to_string()).next(format!(
        "look at the Event {}: `kubectl describe instance {}`",
        meta::event::REQUEST_DROPPED,
        subject.arguments()
    )))
}

/// Why requests are not carried out.
fn not_carried_out(instance: &Instance) -> Option<String> {
    let conditions = &instance.status.as_ref()?.conditions;
    let found = condition::find(conditions, meta::condition::VERBS_UNAVAILABLE)?;
    Some(if found.status == "True" { found.message.clone() } else { LIKELY_CAUSE.to_owned() })
}

/// `plan PLAN (run UID)`.
fn run_name(instance: &Instance, run: &str) -> String {
    let plan = entries(instance).find(|(_, entry)| entry.uid == run).map(|(plan, _)| plan.as_str());
    let execution = instance.spec.plan_execution.as_ref().filter(|e| e.uid() == run);
    let plan = plan.or(execution.map(|e| e.plan()));
    plan.map_or_else(|| format!("run {run}"), |plan| format!("plan {plan} (run {run})"))
}

/// The Instances that an Instance made, directly and through others, and whose plans run: plan and name.
fn running_below(parent: &Instance, all: &[Instance]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<String> = parent.metadata.uid.iter().cloned().collect();
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(uid) = open.pop() {
        for child in all {
            let mut owners = child.metadata.owner_references.iter().flatten();
            let own = child.metadata.uid.clone().unwrap_or_default();
            if owners.any(|owner| owner.uid == uid) && seen.insert(own.clone()) {
                found.extend(locking_run(child).map(|(plan, _)| (child.name_any(), plan)));
                open.push(own);
            }
        }
    }
    found.sort_unstable();
    found
}

fn told(running: &[(String, String)], namespace: &str) -> Option<String> {
    let names: Vec<String> =
        running.iter().take(SHOWN).map(|(name, plan)| format!("plan {plan} of {name}")).collect();
    let more = match running.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (!names.is_empty()).then(|| {
        format!(
            "Instances that it made go on: {}{more}; pause each with `interlock plan pause NAME -n {namespace} --reason WHY`",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    fn instance(name: &str, owner: &str, plan: &str) -> Instance {
        let owners: Value = match owner {
            "" => json!([]),
            owner => {
                json!([{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": owner, "uid": format!("u-{owner}")}])
            }
        };
        Instance::deserialize(json!({
            "metadata": {"name": name, "uid": format!("u-{name}"), "ownerReferences": owners},
            "spec": {"planExecution": {"planName": plan, "uid": "r"}},
        }))
        .unwrap()
    }

    #[test]
    fn what_an_instance_made_and_goes_on_is_named() {
        let parent = instance("shop", "", "deploy");
        let all = [
            parent.clone(),
            instance("shop-db", "shop", "deploy"),
            instance("shop-cache", "shop", ""),
            instance("disk", "shop-cache", "backup"),
            instance("other", "", "deploy"),
            instance("other-db", "other", "deploy"),
        ];
        let text = told(&running_below(&parent, &all), "team").unwrap();
        assert_eq!(
            text,
            "Instances that it made go on: plan backup of disk, plan deploy of shop-db; pause each with `interlock \
             plan pause NAME -n team --reason WHY`"
        );
        assert_eq!(told(&running_below(&all[5], &all), "team"), None);
        let many = vec![("a".to_owned(), "deploy".to_owned()); SHOWN + 2];
        assert!(told(&many, "team").unwrap().contains("of a, and 2 more; pause"));
    }
}
