//! Following the plans of an Instance, as a user sees them.

use std::time::Duration;

use serde_json::Value;

use super::{Client, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(90);

/// The Instance, which must be there.
#[track_caller]
pub fn instance(user: &Client, name: &str) -> Value {
    user.get("instances.kudo.dev", name).expect("the Instance")
}

/// Uid of the last run of a plan; empty where it never ran.
pub fn run_of(instance: &Value, plan: &str) -> String {
    instance["status"]["planStatus"][plan]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Whether nothing is scheduled.
pub fn idle(instance: &Value) -> bool {
    instance["spec"]["planExecution"]["planName"].as_str().unwrap_or_default().is_empty()
}

/// A condition of an object; `null` where it is absent.
pub fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|c| c["type"] == type_).unwrap_or(&Value::Null)
}

/// Waits until a plan is COMPLETE in another run than `before`, and nothing is scheduled.
#[track_caller]
pub fn await_run(user: &Client, name: &str, plan: &str, before: &str) -> Value {
    wait_until(&format!("plan {plan} has run"), CAP, || {
        let found = instance(user, name);
        let done = found["status"]["planStatus"][plan]["status"] == "COMPLETE";
        if idle(&found) && done && run_of(&found, plan) != before {
            Ok(found)
        } else {
            Err(format!("{:#}", found["status"]))
        }
    })
}

/// Waits for an Event with this reason in a namespace, as what is told of a run comes after its end;
/// its text.
#[track_caller]
pub fn await_event(ns: &Namespace<'_>, reason: &str) -> String {
    wait_until(&format!("an Event {reason}"), CAP, || {
        let list = ns.admin().read(&ns.path("events.k8s.io/v1", "events", "")).ok();
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let found = all.iter().find(|event| event["reason"] == reason);
        let note = found.and_then(|event| event["note"].as_str());
        note.map(str::to_owned).ok_or_else(|| format!("{all:#?}"))
    })
}

/// Names of all objects of these kinds in the user's namespace, as `kubectl get -o name` gives them.
#[track_caller]
pub fn names(user: &Client, kinds: &str) -> Vec<String> {
    let out = user.kubectl(&["get", kinds, "-o", "name", "--ignore-not-found"]).ok();
    let mut names: Vec<String> = out.lines().map(str::to_owned).collect();
    names.sort();
    names
}

/// Waits until exactly these objects are left: the garbage collector takes its time.
#[track_caller]
pub fn await_names(user: &Client, kinds: &str, left: &[&str]) {
    wait_until(&format!("of {kinds} these are left: {left:?}"), CAP, || {
        let found = names(user, kinds);
        if found == left { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

/// How many Jobs of that name have completed, as their Events tell; a plan may have deleted them since.
#[track_caller]
pub fn completed_jobs(user: &Client, name: &str) -> usize {
    let fields = format!("involvedObject.kind=Job,involvedObject.name={name},reason=Completed");
    let arguments =
        ["get", "events", "--field-selector", &fields, "-o", "jsonpath={.items[*].involvedObject.uid}"];
    let uids = user.kubectl(&arguments).ok();
    uids.split_whitespace().collect::<std::collections::BTreeSet<_>>().len()
}
