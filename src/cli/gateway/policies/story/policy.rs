//! A policy: where it applies, and what keeps it from applying elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{NodeKey, Path, PolicyId};
use interlock_core::kinds::story::Told;
use interlock_gateway::policies::{PolicyRow, PolicySurvey};
use serde_json::{Value, json};

use super::super::paths;
use super::words::{count, first, first_lines};

/// What a policy does on all paths.
#[derive(Default)]
struct Reach<'a> {
    /// The paths on which one of its rules acts.
    acting: Vec<&'a Arc<Path>>,
    /// How many paths it is on.
    paths: usize,
    /// Whether a rule of it is in force somewhere and can never act.
    has_inert: bool,
    /// By the winner: the rules, and on how many paths.
    replaced: BTreeMap<PolicyId, Replacement>,
}

#[derive(Default)]
struct Replacement {
    rules: BTreeSet<Arc<str>>,
    paths: usize,
}

impl<'a> Reach<'a> {
    fn of(survey: &'a PolicySurvey, id: &PolicyId) -> Self {
        let mut reach = Self::default();
        for path in survey.index().paths() {
            let Some(effective) = survey.acting_of(&id.kind, path) else { continue };
            if !effective.policies.contains(id) {
                continue;
            }
            reach.paths += 1;
            let own = effective
                .rules
                .iter()
                .filter(|(_, rule)| rule.source == *id || rule.with.as_ref() == Some(id));
            let (inert, acting): (Vec<_>, Vec<_>) =
                own.partition(|(key, _)| survey.inert(id, key).is_some_and(|own| own.is_whole));
            reach.has_inert |= !inert.is_empty();
            if !acting.is_empty() {
                reach.acting.push(path);
            }
            let mut winners = BTreeSet::new();
            for own in effective.replaced.iter().filter(|own| own.policy == *id) {
                for winner in own.by.iter() {
                    reach.replaced.entry(winner.clone()).or_default().rules.insert(own.rule.clone());
                    winners.insert(winner);
                }
            }
            for winner in winners {
                reach.replaced.entry(winner.clone()).or_default().paths += 1;
            }
        }
        reach
    }
}

/// The paths on which a rule of a policy acts.
pub(super) fn acting<'a>(survey: &'a PolicySurvey, id: &PolicyId) -> Vec<&'a Arc<Path>> {
    Reach::of(survey, id).acting
}

pub(super) fn told(survey: &PolicySurvey, id: &PolicyId) -> Told {
    let Some(row) = survey.policy_row(id) else {
        let line = "it names no target, so it is no policy of the Gateway API";
        return Told { is: vec![line.to_owned()], ..Told::default() };
    };
    let reach = Reach::of(survey, id);
    let reported = survey.reported(id);
    let member = json(&row, &reach, &reported);
    Told { is: lines(&row, &reach, reported), member: Some(("policy", member)), ..Told::default() }
}

fn lines(row: &PolicyRow, reach: &Reach<'_>, reported: Vec<String>) -> Vec<String> {
    let accepted = &row.accepted;
    let mut lines = vec![match accepted.status {
        "True" => format!("going by the objects: {}", accepted.message),
        status => {
            format!("going by the objects: Accepted={status} ({}): {}", accepted.reason, accepted.message)
        }
    }];
    if !row.targets.is_empty() {
        lines.push(format!("targets {}", first(row.targets.iter().cloned())));
    }
    lines.extend(row.warnings.iter().cloned());
    lines.push(match (reach.acting.len(), reach.paths) {
        (0, _) if accepted.status == "False" => "acts nowhere, as it is not accepted".to_owned(),
        (0, 0) => "acts nowhere: no path leads through a target that it has".to_owned(),
        (0, paths) if reach.has_inert => {
            format!("acts nowhere: what is not replaced on its {} can never act", count(paths, "path"))
        }
        (0, paths) => format!("acts nowhere: all its rules are replaced on its {}", count(paths, "path")),
        (acting, paths) if acting == paths => format!("acts on {}, by route:", count(paths, "path")),
        (acting, paths) => format!("acts on {acting} of its {}, by route:", count(paths, "path")),
    });
    lines.extend(first_lines(places(&reach.acting)));
    let replaced = reach.replaced.iter().map(|(winner, own)| {
        let rules = first(own.rules.iter().map(|rule| paths::short(rule)));
        format!("replaced by {} on {}: {rules}", winner.qualified_name(), count(own.paths, "path"))
    });
    lines.extend(first_lines(replaced.collect()));
    // The winners of conflicts.
    let conflicts = row.by.iter().filter(|winner| !reach.replaced.contains_key(*winner));
    lines.extend(first_lines(
        conflicts.map(|own| format!("an older policy has a target of it: {own}")).collect(),
    ));
    if reported.is_empty() {
        lines.push("its status reports nothing".to_owned());
    }
    let reported = reported.into_iter().map(|line| format!("its status says {line}"));
    lines.extend(first_lines(reported.collect()));
    lines
}

/// The listeners and the rules of a route below a Gateway.
type Place<'a> = (BTreeSet<String>, BTreeMap<usize, &'a Path>);

/// A line for each route below each Gateway.
fn places(acting: &[&Arc<Path>]) -> Vec<String> {
    let mut routes: BTreeMap<(&NodeKey, &NodeKey), Place<'_>> = BTreeMap::new();
    for path in acting {
        let (listeners, rules) = routes.entry((&path.gateway, &path.route)).or_default();
        listeners.insert(paths::listener(path));
        rules.insert(path.rule_index, path);
    }
    let places = routes.into_iter().map(|((gateway, route), (listeners, rules))| {
        let rules = first(rules.values().map(|path| paths::rule(path)));
        format!("  {}/{} > {} > {route} > {rules}", gateway.namespace, gateway.name, first(listeners))
    });
    places.collect()
}

fn json(row: &PolicyRow, reach: &Reach<'_>, reported: &[String]) -> Value {
    let accepted = &row.accepted;
    let acts: Vec<Value> = reach.acting.iter().map(|path| paths::nodes(path)).collect();
    let replaced = reach.replaced.iter().map(|(winner, own)| {
        let rules: Vec<&str> = own.rules.iter().map(|rule| &**rule).collect();
        json!({"by": winner.qualified_name(), "rules": rules, "paths": own.paths})
    });
    json!({
        "accepted": {"status": accepted.status, "reason": accepted.reason, "message": accepted.message},
        "targets": row.targets,
        "paths": reach.paths,
        "acts": acts,
        "replaced": replaced.collect::<Vec<_>>(),
        "conflictsWith": row.by.iter().map(PolicyId::qualified_name).collect::<Vec<_>>(),
        "reported": reported,
    })
}
