//! From facts to the answer: pure, so that every case is a line of a table.

use interlock_core::api::condition::Condition;
use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use interlock_core::health;
use interlock_core::health::Health;
use interlock_kudo::api::{ExecutionStatus, Instance, OperatorVersionSpec, PlanStatus};
use interlock_kudo::instance::change::lock;
use serde::Deserialize as _;
use serde_json::Value;

use super::answer::{AnsweredObject, Dependency, Presence, WhyAnswer, named, one_line, read_instance};
use super::data_plane::is_data_plane;
use super::facts::ClusterFacts;
use super::rollout::RolloutAnswer;
use super::{actors, recent_events};
use crate::cli::common::reader::ReadOutcome;

/// Maximum length of the history.
const HISTORY_LENGTH: usize = 12;

impl WhyAnswer {
    /// Builds the answer.
    pub(super) fn of(facts: &ClusterFacts) -> Self {
        let mut happened = recent_events::all(facts);
        happened.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.what.cmp(&b.what)));
        happened.dedup();
        happened.truncate(HISTORY_LENGTH);
        let rollout = facts.data_plane().map(|of| RolloutAnswer::of(of, &facts.of_data_plane));
        let unknown_part = |what: &str, why: &String| format!("{what}: {why}");
        let deployments = facts.of_data_plane.deployments.as_ref().err();
        let deployments = deployments.map(|why| unknown_part("the Deployments of the DataPlane", why));
        let events = facts.events.as_ref().err().map(|why| unknown_part("Events", why));
        let user = facts.controller_user.as_ref().err().filter(|_| facts.instance().is_some());
        let user = user.map(|why| unknown_part("the user that Interlock works as", why));
        let report = match &facts.report {
            ReadOutcome::Unknown(why) if actors::capabilities(facts).next().is_some() => {
                Some(unknown_part("the state of Interlock's capabilities", why))
            }
            _ => None,
        };
        Self {
            object: named(&facts.object),
            is: describe(facts, rollout.as_ref()),
            rollout,
            depends_on: dependencies(facts),
            acted_on_by: actors::all(facts),
            happened,
            unknown: deployments.into_iter().chain(events).chain(user).chain(report).collect(),
        }
    }
}

fn describe(facts: &ClusterFacts, rollout: Option<&RolloutAnswer>) -> Vec<String> {
    let mut lines = Vec::new();
    let object = &facts.object;
    match (read_instance(object), rollout) {
        (None, Some(rollout)) if is_data_plane(object) => {
            lines.extend(rollout.lines().iter().map(|line| keep_indent(line)));
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let conditions = conditions.filter_map(|condition| Condition::deserialize(condition).ok());
            lines.extend(conditions.filter_map(|condition| current_state(&condition)));
        }
        (Some(instance), _) => {
            lines.push(describe_package(&instance, facts));
            lines.extend(running(&instance));
            let conditions = instance.status.iter().flat_map(|status| &status.conditions);
            lines.extend(conditions.filter_map(current_state));
        }
        (None, rollout) => {
            if let Some(owner) = facts.owners.first() {
                let kind = owner.kind.split('.').next().unwrap_or_default();
                let owner = AnsweredObject {
                    kind: kind.to_owned(),
                    namespace: owner.namespace.clone(),
                    name: owner.name.clone(),
                };
                lines.push(format!("made by {owner}"));
            }
            let of_child = rollout.map(|rollout| rollout.lines_of_child(object, facts.data_plane()));
            lines.extend(of_child.iter().flatten().map(|line| one_line(line)));
            lines.push(match health::of(object) {
                Health::Healthy => "healthy".to_owned(),
                Health::Waiting(why) => format!("not yet healthy: {why}"),
                Health::Failed(why) => format!("failed: {why}"),
            });
        }
    }
    if let Some(since) = meta_str(object, "deletionTimestamp") {
        let held = object["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
        let held: Vec<&str> = held.iter().filter_map(Value::as_str).collect();
        let by = if held.is_empty() { String::new() } else { format!("; held by {}", held.join(", ")) };
        lines.push(format!("being deleted since {since}{by}"));
    }
    lines
}

fn describe_package(instance: &Instance, facts: &ClusterFacts) -> String {
    let reference = instance.spec.operator_version.clone().unwrap_or_default();
    let spec =
        facts.package.as_ref().and_then(|package| OperatorVersionSpec::deserialize(&package["spec"]).ok());
    let Some(spec) = spec else {
        return format!("an Instance of OperatorVersion {}", reference.name());
    };
    let operator = spec.operator.as_ref().map_or(reference.name(), |operator| operator.name());
    let app = spec.app_version.filter(|app| !app.is_empty());
    let app = app.map_or_else(String::new, |app| format!(", application {app}"));
    format!("an Instance of the package {operator} {}{app}", spec.version.unwrap_or_default())
}

/// The plan that is scheduled or runs, and its unfinished steps.
fn running(instance: &Instance) -> Vec<String> {
    let Some(lock) = lock::of(instance) else { return Vec::new() };
    let status = lock.status.map_or("scheduled", ExecutionStatus::as_str);
    let mut lines = vec![format!("plan {} is {status}", lock.plan)];
    let entry = instance.status.as_ref().and_then(|status| status.plan_status.get(lock.plan));
    lines.extend(entry.into_iter().flat_map(open_steps));
    lines
}

fn open_steps(entry: &PlanStatus) -> Vec<String> {
    let phases = entry.phases.iter().flatten();
    let steps = phases.flat_map(|phase| phase.steps.iter().flatten().map(move |step| (phase, step)));
    let open =
        steps.filter(|(_, step)| step.status.is_running() || step.status == ExecutionStatus::FatalError);
    let line =
        |message: Option<&str>| message.map_or_else(String::new, |text| format!(": {}", one_line(text)));
    open.map(|(phase, step)| {
        format!(
            "phase {}, step {} is {}{}",
            phase.name,
            step.name,
            step.status,
            line(step.message.as_deref())
        )
    })
    .collect()
}

/// A condition that reports more than success; omits those whose message is for programs.
fn current_state(condition: &Condition) -> Option<String> {
    use meta::condition::{LIVE_SPEC_RECORDED, MANAGED, READY, ROUTER_FLAVOR_CONSISTENT};
    let told = match condition.type_.as_str() {
        LIVE_SPEC_RECORDED => false,
        READY | MANAGED | ROUTER_FLAVOR_CONSISTENT => true,
        _ => condition.status != "False",
    };
    let message = one_line(&condition.message);
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    told.then(|| format!("{}={} ({}){message}", condition.type_, condition.status, condition.reason))
}

fn dependencies(facts: &ClusterFacts) -> Vec<Dependency> {
    let references = facts.references.iter().map(|reference| {
        let on = AnsweredObject {
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        };
        (on, reference.link, &reference.found)
    });
    let owner = facts.owners.first().map(|owner| {
        let on = AnsweredObject {
            kind: owner.kind.clone(),
            namespace: owner.namespace.clone(),
            name: owner.name.clone(),
        };
        (on, interlock_core::kinds::link::MADE_BY, &owner.found)
    });
    references
        .chain(owner)
        .map(|(on, link, found)| {
            let (state, why) = match found {
                ReadOutcome::There(object) if meta_str(object, "deletionTimestamp").is_some() => {
                    (Presence::Terminating, None)
                }
                ReadOutcome::There(_) => (Presence::Present, None),
                ReadOutcome::Missing => (Presence::Missing, None),
                ReadOutcome::Unknown(why) => (Presence::Unknown, Some(why.clone())),
            };
            Dependency { on, link, state, why }
        })
        .collect()
}

/// One line, with the blanks at its beginning.
fn keep_indent(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", &line[..indent], one_line(line))
}

#[cfg(test)]
mod tests;
