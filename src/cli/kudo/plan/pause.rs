//! `interlock plan pause` and `interlock plan resume`.

use std::collections::BTreeSet;

use interlock_kudo::api::Instance;
use interlock_kudo::instance::change::plan_request::PlanVerb;
use kube::ResourceExt as _;
use kube::api::ListParams;

use super::instance::{InstanceRef, locking_run};
use super::request;
use super::request::RequestFlags;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// Instances that are looked at.
const MOST: u32 = 1000;

/// Instances that are named.
const SHOWN: usize = 8;

/// Pauses the run in progress. What it has started goes on, the plans of child Instances too.
pub(super) async fn pause(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let arguments = subject.arguments();
    let then = format!("is paused; let it go on with `interlock plan resume {arguments} --reason WHY`");
    let parent = run(subject, flags, PlanVerb::Pause, ("is to pause", &then)).await?;
    // Who may not list them sees none.
    let beside = subject.beside::<Instance>().list(&ListParams::default().limit(MOST)).await;
    let running = beside.map(|list| running_below(&parent, &list.items)).unwrap_or_default();
    match told(&running, subject.namespace()) {
        Some(line) => output::line(&line),
        None => Ok(()),
    }
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

/// Lets the paused run go on.
pub(super) async fn resume(subject: &InstanceRef, flags: &RequestFlags) -> Result<(), CliError> {
    let then = format!("goes on; wait for it with `interlock plan wait {}`", subject.arguments());
    run(subject, flags, PlanVerb::Resume, ("is to go on", &then)).await.map(drop)
}

/// Sends a request that changes the run in progress, and tells what becomes of it: at once, and in the end.
async fn run(
    subject: &InstanceRef,
    flags: &RequestFlags,
    verb: PlanVerb,
    (at_once, then): (&str, &str),
) -> Result<Instance, CliError> {
    let instance = subject.get().await?;
    let run = request::run_in_progress(subject, &instance, flags)?;
    let what = request::run_name(&instance, &run);
    let request = request::send(subject, verb, run, &flags.reason).await?;
    output::line(&format!("instance {}: {what} {at_once}", subject.key()))?;
    if flags.wait.wait {
        request::await_result(subject, &request, flags.wait.limit.timeout).await?;
        output::line(&format!("instance {}: {what} {then}", subject.key()))?;
    }
    Ok(instance)
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
