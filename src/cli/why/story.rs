//! From what was read to what is told: pure, so that every case is a line of a table.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::facts::{self, Facts};
use crate::api::condition::Condition;
use crate::api::kudo::{ExecutionStatus, Instance, OperatorVersionSpec, PlanStatus};
use crate::api::meta;
use crate::api::object::{Gvk, annotation, meta_str};
use crate::cli::reader::Found;
use crate::plan::health::{self, Health};
use crate::plan::{history, lock};

/// How many happenings are told.
const TOLD: usize = 12;

/// What is told of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Story {
    pub(super) object: Named,
    /// What it is and how it stands.
    pub(super) is: Vec<String>,
    pub(super) depends_on: Vec<Dependency>,
    pub(super) acted_on_by: Vec<Actor>,
    /// Newest first.
    pub(super) happened: Vec<Happening>,
    /// What could not be told, and why.
    pub(super) unknown: Vec<String>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Named {
    /// Kind with its group.
    pub(super) kind: String,
    /// Absent for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// Something that the object cannot do without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Dependency {
    #[serde(flatten)]
    pub(super) on: Named,
    /// Name of the link between them.
    pub(super) link: &'static str,
    pub(super) state: Presence,
    /// Why nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Presence {
    Present,
    Terminating,
    Missing,
    Unknown,
}

impl Presence {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Terminating => "being deleted",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// Somebody who writes the object or decides about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Actor {
    pub(super) who: String,
    pub(super) does: String,
}

/// Something that happened to the object or to its Instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Happening {
    pub(super) at: Timestamp,
    pub(super) what: String,
}

impl Story {
    /// Tells what was read.
    pub(super) fn of(facts: &Facts) -> Self {
        let mut happened = happenings(facts);
        happened.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.what.cmp(&b.what)));
        happened.dedup();
        happened.truncate(TOLD);
        let unseen = |what: &str, why: &String| format!("{what}: {why}");
        let events = facts.events.as_ref().err().map(|why| unseen("Events", why));
        let user = facts.bookkeeper.as_ref().err().filter(|_| facts.instance().is_some());
        let user = user.map(|why| unseen("the user that Interlock works as", why));
        Self {
            object: named(&facts.object),
            is: what_it_is(facts),
            depends_on: dependencies(facts),
            acted_on_by: actors(facts),
            happened,
            unknown: events.into_iter().chain(user).collect(),
        }
    }
}

fn named(object: &Value) -> Named {
    let of = |field| meta_str(object, field).unwrap_or_default().to_owned();
    let kind = Gvk::of(object).map(|gvk| facts::name_of(&gvk.group, &gvk.kind)).unwrap_or_default();
    Named { kind, namespace: of("namespace"), name: of("name") }
}

fn what_it_is(facts: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    let object = &facts.object;
    match read_instance(object) {
        Some(instance) => {
            lines.push(of_what_package(&instance, facts));
            lines.extend(running(&instance));
            let conditions = instance.status.iter().flat_map(|status| &status.conditions);
            lines.extend(conditions.filter_map(standing));
        }
        None => {
            if let Some(maker) = facts.makers.first() {
                let kind = maker.kind.split('.').next().unwrap_or_default();
                let owner = Named {
                    kind: kind.to_owned(),
                    namespace: maker.namespace.clone(),
                    name: maker.name.clone(),
                };
                lines.push(format!("made by {owner}"));
            }
            lines.push(match health::of(object) {
                Health::Healthy => "as it should be".to_owned(),
                Health::Waiting(why) => format!("not yet as it should be: {why}"),
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

fn read_instance(object: &Value) -> Option<Instance> {
    facts::is_instance(object).then(|| Instance::deserialize(object).ok()).flatten()
}

fn of_what_package(instance: &Instance, facts: &Facts) -> String {
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

/// The plan that is scheduled or runs, and the steps that are not done.
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

/// A condition that says more than that all is well; those whose message is for programs are not
/// told.
fn standing(condition: &Condition) -> Option<String> {
    use meta::condition::{PLAN_RUNNING, READY, SPEC_STAMPED};
    let told = match condition.type_.as_str() {
        PLAN_RUNNING | SPEC_STAMPED => false,
        READY => true,
        _ => condition.status != "False",
    };
    let message = one_line(&condition.message);
    let message = if message.is_empty() { String::new() } else { format!(": {message}") };
    told.then(|| format!("{}={} ({}){message}", condition.type_, condition.status, condition.reason))
}

fn dependencies(facts: &Facts) -> Vec<Dependency> {
    let references = facts.references.iter().map(|reference| {
        let on = Named {
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        };
        (on, reference.link, &reference.found)
    });
    let maker = facts.makers.first().map(|maker| {
        let on =
            Named { kind: maker.kind.clone(), namespace: maker.namespace.clone(), name: maker.name.clone() };
        (on, crate::topology::kinds::link::MADE_BY, &maker.found)
    });
    references
        .chain(maker)
        .map(|(on, link, found)| {
            let (state, why) = match found {
                Found::There(object) if meta_str(object, "deletionTimestamp").is_some() => {
                    (Presence::Terminating, None)
                }
                Found::There(_) => (Presence::Present, None),
                Found::Missing => (Presence::Missing, None),
                Found::Unknown(why) => (Presence::Unknown, Some(why.clone())),
            };
            Dependency { on, link, state, why }
        })
        .collect()
}

fn actors(facts: &Facts) -> Vec<Actor> {
    let mut actors = Vec::new();
    if let Some(instance) = facts.instance() {
        if let Some([plan, phase, step]) = facts::written_by(&facts.object) {
            let run = annotation(&facts.object, meta::PLAN_UID).unwrap_or_default();
            let mut does = format!("wrote it last: plan {plan}, phase {phase}, step {step}");
            if let Some(tasks) = tasks_of(facts, plan, phase, step) {
                let _ = write!(does, ", {tasks}");
            }
            let _ = write!(does, " (run {run})");
            actors.push(Actor { who: named(instance).to_string(), does });
        }
        let who = match &facts.bookkeeper {
            Ok(user) => format!("Interlock, as {user}"),
            Err(_) => "Interlock".to_owned(),
        };
        let does = if facts::is_instance(&facts.object) {
            "judges its changes, runs its plans and keeps its status"
        } else {
            "brings it back to what its plan wrote whenever a plan of the Instance runs"
        };
        actors.push(Actor { who, does: does.to_owned() });
    }
    actors.extend(managers(&facts.object));
    actors
}

/// The tasks of a step, as the package of the Instance lists them now.
fn tasks_of(facts: &Facts, plan: &str, phase: &str, step: &str) -> Option<String> {
    let spec = OperatorVersionSpec::deserialize(&facts.package.as_ref()?["spec"]).ok()?;
    let plan = spec.plans?.remove(plan)?;
    let phase = plan.phases?.into_iter().find(|found| found.name.as_deref() == Some(phase))?;
    let step = phase.steps?.into_iter().find(|found| found.name.as_deref() == Some(step))?;
    let tasks = step.tasks.filter(|tasks| !tasks.is_empty())?;
    let noun = if tasks.len() == 1 { "task" } else { "one of the tasks" };
    Some(format!("{noun} {}", tasks.join(", ")))
}

/// Who wrote which part of the object, as the API server keeps it.
fn managers(object: &Value) -> Vec<Actor> {
    let fields = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let actors = fields.iter().filter_map(|entry| {
        let who = format!("field manager {}", entry["manager"].as_str()?);
        let part = entry["subresource"].as_str().filter(|part| !part.is_empty()).unwrap_or("object");
        let at = entry["time"].as_str().unwrap_or("an unknown time");
        Some(Actor { who, does: format!("wrote the {part} at {at}") })
    });
    actors.collect()
}

fn happenings(facts: &Facts) -> Vec<Happening> {
    let mut told = Vec::new();
    if let Some(instance) = facts.instance().and_then(read_instance) {
        let whose = if facts::is_instance(&facts.object) {
            String::new()
        } else {
            format!("Instance {}: ", instance.metadata.name.as_deref().unwrap_or_default())
        };
        let annotations = instance.metadata.annotations.as_ref();
        let annotation = annotations.and_then(|all| all.get(meta::HISTORY)).map(String::as_str);
        for run in history::read(annotation) {
            let ended = |at| Happening { at, what: format!("{whose}plan {} ended {}", run.plan, run.result) };
            told.extend(run.end.map(ended));
        }
        let conditions = instance.status.iter().flat_map(|status| &status.conditions);
        told.extend(conditions.map(|condition| Happening {
            at: condition.last_transition_time.0,
            what: format!("{whose}{} became {} ({})", condition.type_, condition.status, condition.reason),
        }));
    }
    told.extend(facts.events.iter().flatten().filter_map(event));
    told
}

fn event(event: &Value) -> Option<Happening> {
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let at = time(&event["series"]["lastObservedTime"])
        .or_else(|| time(&event["eventTime"]))
        .or_else(|| time(&event["deprecatedLastTimestamp"]))
        .or_else(|| time(&event["metadata"]["creationTimestamp"]))?;
    let regarding = &event["regarding"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let warning = if event["type"] == "Warning" { "Warning " } else { "" };
    let what = format!(
        "{warning}{} on {} {}: {}",
        word(&event["reason"]),
        word(&regarding["kind"]),
        word(&regarding["name"]),
        one_line(&word(&event["note"])),
    );
    Some(Happening { at, what })
}

/// Line breaks would break the form.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
