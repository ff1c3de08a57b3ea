//! The plan of an Instance as a tree: its phases, steps and pods, with how long each has been so.

use std::collections::BTreeMap;

use interlock_core::api::age::age;
use interlock_core::api::condition;
use interlock_core::api::display::one_line;
use interlock_core::api::meta::condition::{PAUSED, RECONCILING, RETRYING, STALLED, WAITING};
use interlock_kudo::api::{ExecutionStatus, Instance, PlanStatus};
use jiff::Timestamp;

use crate::cli::kudo::instance::{entries, last, locking_run};

/// Pods that are shown; those that are not ready come first.
const MAX_PODS: usize = 12;

/// A pod of the Instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodRow {
    pub(super) ready: bool,
    pub(super) name: String,
    /// Phase, or why its container waits.
    pub(super) state: String,
    pub(super) created: Option<Timestamp>,
}

/// The pods of the Instance, as far as the caller may list them.
pub(super) enum Pods {
    Listed(Vec<PodRow>),
    /// They may not be listed, and why.
    Hidden(String),
}

/// Since when each step has had its state, as far as the watch has seen it change.
#[derive(Debug, Default)]
pub(super) struct StepTimes {
    run: String,
    since: BTreeMap<(String, String), (ExecutionStatus, Option<Timestamp>)>,
}

impl StepTimes {
    /// Takes in a version of the Instance.
    pub(super) fn observe(&mut self, instance: &Instance, now: Timestamp) {
        let Some((_, entry)) = shown(instance) else { return };
        // When a step came into the state that it had at first is not known.
        let at = (self.run == entry.uid).then_some(now);
        if at.is_none() {
            *self = Self { run: entry.uid.clone(), since: BTreeMap::new() };
        }
        for phase in entry.phases.iter().flatten() {
            for step in phase.steps.iter().flatten() {
                let key = (phase.name.clone(), step.name.clone());
                if self.since.get(&key).is_none_or(|(status, _)| *status != step.status) {
                    self.since.insert(key, (step.status.clone(), at));
                }
            }
        }
    }

    fn since(&self, phase: &str, step: &str) -> Option<Timestamp> {
        self.since.get(&(phase.to_owned(), step.to_owned()))?.1
    }
}

/// The record of the plan that is scheduled or runs, else of the one that ran last.
fn shown(instance: &Instance) -> Option<(&String, &PlanStatus)> {
    match locking_run(instance) {
        Some((plan, run)) => entries(instance).find(|(name, entry)| **name == plan && entry.uid == run),
        None => last(instance),
    }
}

/// The tree, a line each.
pub(super) fn lines(instance: &Instance, times: &StepTimes, pods: &Pods, now: Timestamp) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let version = instance.spec.operator_version.as_ref().map_or("", |version| version.name());
    let (namespace, name) = (text(&instance.metadata.namespace), text(&instance.metadata.name));
    let mut out = vec![format!("Instance {namespace}/{name}, OperatorVersion {version}")];
    let mut parts = Vec::new();
    match (shown(instance), locking_run(instance)) {
        (Some((plan, entry)), _) => {
            let since = started(instance, entry);
            out.push(format!("plan {plan}: {}", state(&entry.status, since, now, entry.message.as_ref())));
            parts = phases(entry, times, now);
        }
        (None, Some((plan, _))) => out.push(format!("plan {plan}: scheduled, has not begun")),
        (None, None) => out.push("no plan has run yet".to_owned()),
    }
    parts.extend(pod_part(pods, now));
    branches(&parts, "", &mut out);
    if let Some(why) = waits(instance) {
        out.push(why);
    }
    out.iter().map(|line| one_line(line).into_owned()).collect()
}

/// When the run began, or for one that has ended, when it did.
fn started(instance: &Instance, entry: &PlanStatus) -> Option<Timestamp> {
    let changed = entry.last_updated_timestamp.as_ref().map(|time| time.0);
    if entry.status.is_terminal() {
        return changed;
    }
    let baseline = instance.status.as_ref()?.last_applied.as_ref();
    let run = baseline.and_then(|baseline| baseline.run.as_ref()).filter(|run| run.uid == entry.uid);
    run.map(|run| run.started).or(changed)
}

/// A line with the lines below it.
struct Part {
    line: String,
    below: Vec<Part>,
}

fn phases(entry: &PlanStatus, times: &StepTimes, now: Timestamp) -> Vec<Part> {
    let phases = entry.phases.iter().flatten().map(|phase| Part {
        line: format!("phase {}: {}", phase.name, state(&phase.status, None, now, phase.message.as_ref())),
        below: phase
            .steps
            .iter()
            .flatten()
            .map(|step| {
                let since = times.since(&phase.name, &step.name).filter(|_| step.status.is_running());
                let state = state(&step.status, since, now, step.message.as_ref());
                Part { line: format!("step {}: {state}", step.name), below: Vec::new() }
            })
            .collect(),
    });
    phases.collect()
}

/// `IN_PROGRESS for 12s (message)`; what has ended, so long ago.
fn state(
    status: &ExecutionStatus,
    since: Option<Timestamp>,
    now: Timestamp,
    message: Option<&String>,
) -> String {
    let age = match since.map(|since| age(since, now)) {
        None => String::new(),
        Some(age) if status.is_terminal() => format!(", {age} ago"),
        Some(age) => format!(" for {age}"),
    };
    let message =
        message.filter(|text| !text.is_empty()).map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{status}{age}{message}")
}

fn pod_part(pods: &Pods, now: Timestamp) -> Option<Part> {
    let mut rows = match pods {
        Pods::Hidden(why) => {
            return Some(Part { line: format!("pods: not seen ({why})"), below: Vec::new() });
        }
        Pods::Listed(rows) if rows.is_empty() => return None,
        Pods::Listed(rows) => rows.clone(),
    };
    rows.sort();
    let ready = rows.iter().filter(|pod| pod.ready).count();
    let mut below: Vec<Part> = rows
        .iter()
        .take(MAX_PODS)
        .map(|pod| {
            let age = pod.created.map(|created| format!(", age {}", age(created, now))).unwrap_or_default();
            let ready = if pod.ready { "ready" } else { "not ready" };
            Part { line: format!("{}: {}, {ready}{age}", pod.name, pod.state), below: Vec::new() }
        })
        .collect();
    if let Some(more) = rows.len().checked_sub(MAX_PODS).filter(|more| *more > 0) {
        below.push(Part { line: format!("and {more} more"), below: Vec::new() });
    }
    Some(Part { line: format!("pods: {ready} of {} ready", rows.len()), below })
}

fn branches(parts: &[Part], indent: &str, out: &mut Vec<String>) {
    for (i, part) in parts.iter().enumerate() {
        let (branch, rest) = if i + 1 == parts.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        out.push(format!("{indent}{branch}{}", part.line));
        branches(&part.below, &format!("{indent}{rest}"), out);
    }
}

/// What the plan waits for, while it runs.
fn waits(instance: &Instance) -> Option<String> {
    locking_run(instance)?;
    let conditions = &instance.status.as_ref()?.conditions;
    let waiting = condition::find(conditions, RECONCILING)
        .filter(|found| [WAITING, RETRYING, PAUSED].contains(&found.reason.as_str()));
    let found = condition::find(conditions, STALLED).or(waiting)?;
    if found.reason == PAUSED {
        return Some(found.message.clone());
    }
    (!found.message.is_empty()).then(|| format!("waits for: {}", found.message))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn instance(status: &str, steps: [&str; 2], message: &str) -> Instance {
        let steps = json!([{"name": "before", "status": steps[0]}, {"name": "gate", "status": steps[1]}]);
        let basis = json!({"hash": "sha256:0",
            "run": {"uid": "u1", "package": "sha256:1", "started": "2026-01-02T03:04:05Z"}});
        let condition = json!({"type": "Reconciling", "status": "True", "reason": "Waiting", "message": message,
            "lastTransitionTime": "2026-01-02T03:04:05Z"});
        let execution =
            if status == "COMPLETE" { Value::Null } else { json!({"planName": "deploy", "uid": "u1"}) };
        serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": "demo", "namespace": "team"},
            "spec": {"operatorVersion": {"name": "held-0.1.0"}, "planExecution": execution},
            "status": {
                "planStatus": {"deploy": {"status": status, "uid": "u1",
                    "lastUpdatedTimestamp": "2026-01-02T03:05:05Z",
                    "phases": [{"name": "main", "status": status, "steps": steps}]}},
                "conditions": [condition], "lastApplied": basis,
            },
        }))
        .unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        "2026-01-02T03:06:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(seconds)
    }

    fn pod(name: &str, ready: bool) -> PodRow {
        PodRow { ready, name: name.to_owned(), state: "Running".to_owned(), created: Some(at(-5)) }
    }

    #[test]
    fn a_plan_from_its_begin_to_its_end() {
        let mut times = StepTimes::default();
        let waiting = instance("IN_PROGRESS", ["IN_PROGRESS", "PENDING"], "");
        times.observe(&waiting, at(0));
        let gated = instance("IN_PROGRESS", ["COMPLETE", "IN_PROGRESS"], "Service team/gate: no address");
        times.observe(&gated, at(10));
        let pods = Pods::Listed(vec![pod("demo-0", true), pod("demo-1", false)]);
        assert_eq!(
            lines(&waiting, &StepTimes::default(), &Pods::Hidden("pods is forbidden".to_owned()), at(0)),
            [
                "Instance team/demo, OperatorVersion held-0.1.0",
                "plan deploy: IN_PROGRESS for 1m55s",
                "├─ phase main: IN_PROGRESS",
                "│  ├─ step before: IN_PROGRESS",
                "│  └─ step gate: PENDING",
                "└─ pods: not seen (pods is forbidden)",
            ]
        );
        assert_eq!(
            lines(&gated, &times, &pods, at(22)),
            [
                "Instance team/demo, OperatorVersion held-0.1.0",
                "plan deploy: IN_PROGRESS for 2m17s",
                "├─ phase main: IN_PROGRESS",
                "│  ├─ step before: COMPLETE",
                "│  └─ step gate: IN_PROGRESS for 12s",
                "└─ pods: 1 of 2 ready",
                "   ├─ demo-1: Running, not ready, age 27s",
                "   └─ demo-0: Running, ready, age 27s",
                "waits for: Service team/gate: no address",
            ]
        );
        let done = instance("COMPLETE", ["COMPLETE", "COMPLETE"], "");
        times.observe(&done, at(30));
        assert_eq!(
            lines(&done, &times, &Pods::Listed(Vec::new()), at(35)),
            [
                "Instance team/demo, OperatorVersion held-0.1.0",
                "plan deploy: COMPLETE, 1m30s ago",
                "└─ phase main: COMPLETE",
                "   ├─ step before: COMPLETE",
                "   └─ step gate: COMPLETE",
            ]
        );
    }

    /// A package names its phases and steps, and what a plan waits for.
    #[test]
    fn no_name_steers_the_terminal() {
        let mut instance = instance("IN_PROGRESS", ["IN_PROGRESS", "PENDING"], "\u{202e}a\nb");
        let entry = instance.status.as_mut().unwrap().plan_status.get_mut("deploy").unwrap();
        let phase = &mut entry.phases.as_mut().unwrap()[0];
        phase.name = "\u{1b}[2Jmain\nplan deploy: COMPLETE".to_owned();
        phase.steps.as_mut().unwrap()[0].name = "\u{9b}1A".to_owned();
        let lines = lines(&instance, &StepTimes::default(), &Pods::Listed(Vec::new()), at(0));
        assert_eq!(
            lines[2..],
            [
                "└─ phase \\u001b[2Jmain plan deploy: COMPLETE: IN_PROGRESS",
                "   ├─ step \\u009b1A: IN_PROGRESS",
                "   └─ step gate: PENDING",
                "waits for: \\u202ea b",
            ]
        );
    }

    #[test]
    fn many_pods_are_counted() {
        let pods = Pods::Listed((0..20).map(|i| pod(&format!("demo-{i:02}"), i != 17)).collect());
        let lines = lines(&instance("IN_PROGRESS", ["PENDING"; 2], ""), &StepTimes::default(), &pods, at(0));
        assert!(lines.contains(&"└─ pods: 19 of 20 ready".to_owned()), "{lines:#?}");
        assert!(lines.contains(&"   ├─ demo-17: Running, not ready, age 5s".to_owned()), "{lines:#?}");
        assert_eq!(lines.last().unwrap(), "   └─ and 8 more");
    }

    #[test]
    fn without_a_plan_it_says_so() {
        let instance: Instance = serde_json::from_value(json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "demo"}, "spec": {},
        }))
        .unwrap();
        let lines = lines(&instance, &StepTimes::default(), &Pods::Listed(Vec::new()), at(0));
        assert_eq!(lines, ["Instance /demo, OperatorVersion ", "no plan has run yet"]);
    }
}
