//! The writers of an object, and the components that decide about it.

use std::fmt::Write as _;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, annotation};
use interlock_kudo::api::OperatorVersionSpec;
use serde::Deserialize as _;
use serde_json::Value;

use super::answer::{Actor, named, one_line};
use super::data_plane::is_data_plane;
use super::facts;
use super::facts::ClusterFacts;
use crate::cli::common::reader::ReadOutcome;
use crate::cluster::supervisor::Capability;
use crate::controllers::capabilities::{CAPABILITIES, DATA_PLANES, INSTANCES, SETTINGS};

/// Packages, then Interlock, then the field managers that the API server records.
pub(super) fn all(facts: &ClusterFacts) -> Vec<Actor> {
    let mut actors = Vec::new();
    if let Some(instance) = facts.instance()
        && let Some([plan, phase, step]) = facts::written_by(&facts.object)
    {
        let run = annotation(&facts.object, meta::PLAN_UID).unwrap_or_default();
        let mut does = format!("wrote it last: plan {plan}, phase {phase}, step {step}");
        if let Some(tasks) = tasks_of(facts, plan, phase, step) {
            let _ = write!(does, ", {tasks}");
        }
        let _ = write!(does, " (run {run})");
        actors.push(Actor { who: named(instance).to_string(), does });
    }
    actors.extend(capabilities(facts).map(|capability| interlock(facts, capability)));
    actors.extend(managers(&facts.object));
    actors
}

/// The capabilities of Interlock that act on the object or read it.
pub(super) fn capabilities(facts: &ClusterFacts) -> impl Iterator<Item = &'static Capability> {
    let kind = Gvk::of(&facts.object);
    let made = facts.instance().is_some();
    let all = CAPABILITIES.iter().filter(move |capability| {
        let reads = capability.all().any(|read| {
            kind.as_ref().is_some_and(|kind| (read.group, read.kind) == (&kind.group, &kind.kind))
                && read.labelled.is_none_or(|labelled| labelled.holds(&facts.object))
        });
        reads || made && capability.declared.name == INSTANCES
    });
    all.map(|capability| capability.declared)
}

fn interlock(facts: &ClusterFacts, capability: &Capability) -> Actor {
    let state = match &facts.report {
        ReadOutcome::There(report) => {
            reported(report, capability.name).unwrap_or("state not reported".to_owned())
        }
        ReadOutcome::Missing => "state not reported: no Interlock \"default\"".to_owned(),
        ReadOutcome::Unknown(_) => "state unknown".to_owned(),
    };
    let made = facts.instance().is_some();
    let user = facts.controller_user.as_ref().ok().filter(|_| made);
    let user = user.map_or_else(String::new, |user| format!(", as {user}"));
    let does = match capability.name {
        INSTANCES if facts::is_instance(&facts.object) => {
            "judges its changes, runs its plans and keeps its status"
        }
        INSTANCES if made => "brings it back to what its plan wrote whenever a plan of the Instance runs",
        INSTANCES => "runs plans of the Instances that need it",
        DATA_PLANES if is_data_plane(&facts.object) => {
            "makes its pods and Services, and rolls its changes out"
        }
        DATA_PLANES if facts.data_plane().is_some() => {
            "makes it, and puts it right from the spec of its side"
        }
        SETTINGS => "is set up by it",
        _ => "keeps an inventory of it",
    };
    Actor { who: format!("Interlock, capability {} ({state}){user}", capability.name), does: does.to_owned() }
}

/// The reported condition of a capability: `InstancesReady` for `instances`.
fn reported(report: &Value, capability: &str) -> Option<String> {
    let conditions = report["status"]["conditions"].as_array()?;
    let of = |condition: &&Value| {
        let name = condition["type"].as_str().and_then(|type_| type_.strip_suffix("Ready"));
        name.is_some_and(|name| name.eq_ignore_ascii_case(capability))
    };
    let condition = conditions.iter().find(of)?;
    let reason = condition["reason"].as_str()?;
    let message = condition["message"].as_str().map(one_line).unwrap_or_default();
    let fine = condition["status"] == "True" || message.is_empty();
    Some(if fine { reason.to_owned() } else { format!("{reason}: {message}") })
}

/// The tasks of a step, as the package of the Instance now lists them.
fn tasks_of(facts: &ClusterFacts, plan: &str, phase: &str, step: &str) -> Option<String> {
    let spec = OperatorVersionSpec::deserialize(&facts.package.as_ref()?["spec"]).ok()?;
    let plan = spec.plans?.remove(plan)?;
    let phase = plan.phases?.into_iter().find(|found| found.name.as_deref() == Some(phase))?;
    let step = phase.steps?.into_iter().find(|found| found.name.as_deref() == Some(step))?;
    let tasks = step.tasks.filter(|tasks| !tasks.is_empty())?;
    let noun = if tasks.len() == 1 { "task" } else { "one of the tasks" };
    Some(format!("{noun} {}", tasks.join(", ")))
}

/// The field managers of the object.
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
