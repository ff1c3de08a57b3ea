//! From facts to the answer: pure, so that every case is a line of a table.

use interlock_core::api::object::meta_str;
use interlock_core::health;
use interlock_core::health::Health;
use interlock_core::kinds::story::{Subject, Told};
use serde_json::Value;

use super::answer::{AnsweredObject, Dependency, Presence, WhyAnswer, named};
use super::facts::ClusterFacts;
use super::{actors, recent_events};
use crate::cli::common::reader::ReadOutcome;

/// Maximum length of the history.
const HISTORY_LENGTH: usize = 12;

impl WhyAnswer {
    /// Builds the answer.
    pub(super) fn of(facts: &ClusterFacts) -> Self {
        let mut told = facts.told();
        let mut happened = recent_events::all(facts, &told);
        happened.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.what.cmp(&b.what)));
        happened.dedup();
        happened.truncate(HISTORY_LENGTH);
        let unknown_part = |what: &str, why: &String| format!("{what}: {why}");
        let events = facts.events.as_ref().err().map(|why| unknown_part("Events", why));
        let user = facts.controller_user.as_ref().err().filter(|_| facts.is_of_an_instance());
        let user = user.map(|why| unknown_part("the user that Interlock works as", why));
        let report = match &facts.report {
            ReadOutcome::Unknown(why) if actors::capabilities(facts).next().is_some() => {
                Some(unknown_part("the state of Interlock's capabilities", why))
            }
            _ => None,
        };
        let (is, acted_on_by) = (describe(facts, &told), actors::all(facts, &told));
        let members = told.iter_mut().filter_map(|(_, told)| told.member.take()).collect();
        let untold = told.into_iter().flat_map(|(_, told)| told.unknown);
        Self {
            object: named(&facts.object),
            is,
            members,
            depends_on: dependencies(facts),
            acted_on_by,
            happened,
            unknown: untold.chain(events).chain(user).chain(report).collect(),
        }
    }
}

fn describe(facts: &ClusterFacts, told: &[(Subject<'_>, Told)]) -> Vec<String> {
    let object = &facts.object;
    let own = told.iter().find(|(subject, told)| subject.is_root() && !told.is.is_empty());
    let mut lines = match own {
        Some((_, told)) => told.is.clone(),
        None => describe_part(facts, told),
    };
    if let Some(since) = meta_str(object, "deletionTimestamp") {
        let held = object["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
        let held: Vec<&str> = held.iter().filter_map(Value::as_str).collect();
        let by = if held.is_empty() { String::new() } else { format!("; held by {}", held.join(", ")) };
        lines.push(format!("being deleted since {since}{by}"));
    }
    lines
}

/// An object that no story is about.
fn describe_part(facts: &ClusterFacts, told: &[(Subject<'_>, Told)]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(owner) = facts.owners.first() {
        let kind = owner.kind.split('.').next().unwrap_or_default();
        let owner = AnsweredObject {
            kind: kind.to_owned(),
            namespace: owner.namespace.clone(),
            name: owner.name.clone(),
        };
        lines.push(format!("made by {owner}"));
    }
    lines.extend(told.iter().flat_map(|(_, told)| told.is.iter().cloned()));
    lines.push(match health::of(&facts.object) {
        Health::Healthy => "healthy".to_owned(),
        Health::Waiting(why) => format!("not yet healthy: {why}"),
        Health::Failed(why) => format!("failed: {why}"),
    });
    lines
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

#[cfg(test)]
mod tests;
