//! The writers of an object, and the components that decide about it.

use interlock_core::api::object::Gvk;
use interlock_core::kinds::story::{Subject, Told, one_line};
use serde_json::Value;

use super::answer::{Actor, named};
use super::facts::ClusterFacts;
use crate::cli::common::reader::ReadOutcome;
use crate::cluster::supervisor::Capability;
use crate::controllers::capabilities::{CAPABILITIES, INSTANCES, SETTINGS};

/// Packages, then Interlock, then the field managers that the API server records.
pub(super) fn all(facts: &ClusterFacts, told: &[(Subject<'_>, Told)]) -> Vec<Actor> {
    let mut actors = Vec::new();
    for (Subject { root, .. }, told) in told {
        actors.extend(told.wrote.clone().map(|does| Actor { who: named(root).to_string(), does }));
    }
    actors.extend(capabilities(facts).map(|capability| interlock(facts, capability)));
    actors.extend(managers(&facts.object));
    actors
}

/// The capabilities of Interlock that act on the object or read it.
pub(super) fn capabilities(facts: &ClusterFacts) -> impl Iterator<Item = &'static Capability> {
    let kind = Gvk::of(&facts.object);
    let made = facts.is_of_an_instance();
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
    let made = facts.is_of_an_instance();
    let user = facts.controller_user.as_ref().ok().filter(|_| made);
    let user = user.map_or_else(String::new, |user| format!(", as {user}"));
    let stories = facts.stories();
    let story = stories.iter().find(|(story, _)| story.capability == capability.name);
    let does = match (story, capability.name) {
        (Some((story, root)), _) if std::ptr::eq(*root, &*facts.object) => story.does,
        (Some((story, _)), _) => story.does_to_parts,
        (None, INSTANCES) => "runs plans of the Instances that need it",
        (None, SETTINGS) => "is set up by it",
        (None, _) => "keeps an inventory of it",
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
