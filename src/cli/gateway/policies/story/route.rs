//! A route: which listeners carry it, which refuse it and why, and what acts on its rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_policies::{EffectivePolicy, NodeKey, Path, PolicyId, Refusal};
use interlock_core::kinds::story::Told;
use interlock_gateway::policies::PolicySurvey;
use serde_json::{Value, json};

use super::super::paths::{self, KindOnPath, PoliciesOnPath, policies_on};
use super::words::{SHOWN, first, first_lines};

/// Rules of one kind that are printed for a path.
const RULES: usize = 16;

pub(super) fn told(survey: &PolicySurvey, route: &NodeKey) -> Told {
    let Some(links) = survey.index().links(route) else {
        return Told {
            unknown: vec!["its paths: the route cannot be decoded".to_owned()],
            ..Told::default()
        };
    };
    let all: Vec<(&Arc<Path>, PoliciesOnPath)> =
        survey.index().paths_of(route).map(|path| (path, policies_on(survey, path))).collect();
    let carried = links.attached.iter().map(|own| match own.hostnames.as_slice() {
        [] => format!("carried by {}", own.listener),
        hostnames => format!("carried by {} for {}", own.listener, first(hostnames.iter().cloned())),
    });
    let mut is: Vec<String> = first_lines(carried.collect()).collect();
    if links.attached.is_empty() {
        is.push("carried by no listener, so no policy acts on it".to_owned());
    }
    let refusal = |own: &Refusal| {
        let (reason, explanation) = survey.reason(own);
        format!("refused by {}: {reason} ({explanation})", own.parent)
    };
    is.extend(first_lines(links.refused.iter().map(refusal).collect()));
    let mut groups: Vec<(&PoliciesOnPath, Vec<&Path>)> = Vec::new();
    for (path, policies) in &all {
        let path: &Path = path;
        match groups.iter_mut().find(|(known, _)| *known == policies) {
            Some((_, paths)) => paths.push(path),
            None => groups.push((policies, vec![path])),
        }
    }
    let more = groups.len().saturating_sub(SHOWN);
    is.extend(groups.iter().take(SHOWN).flat_map(|(policies, paths)| group(policies, paths)));
    if more > 0 {
        is.push(format!("and {more} more; `interlock policies effective` prints all"));
    }
    let listeners = links.attached.iter().map(|own| {
        json!({"gateway": gateway(&own.gateway), "listener": own.listener.to_string(), "hostnames": own.hostnames})
    });
    let refused =
        links.refused.iter().map(|own| json!({"parent": own.parent, "reason": survey.reason(own).0}));
    let member = json!({
        "listeners": listeners.collect::<Vec<Value>>(),
        "refused": refused.collect::<Vec<Value>>(),
        "paths": all.iter().map(|(path, policies)| paths::json(path, policies)).collect::<Vec<_>>(),
    });
    Told { is, member: Some(("route", member)), ..Told::default() }
}

fn gateway(node: &NodeKey) -> String {
    format!("{}/{}", node.namespace, node.name)
}

/// Paths with the same policies: the paths, then each kind with its policies from the root to the leaf, and the winner
/// of each rule.
fn group(policies: &PoliciesOnPath, paths: &[&Path]) -> Vec<String> {
    let mut places: BTreeMap<(String, String), BTreeMap<usize, &Path>> = BTreeMap::new();
    for path in paths {
        let place = (gateway(&path.gateway), paths::listener(path));
        places.entry(place).or_default().insert(path.rule_index, path);
    }
    let places = places.into_iter().map(|((gateway, listener), rules)| {
        format!("on {gateway} > {listener} > {}", first(rules.values().map(|path| paths::rule(path))))
    });
    let mut lines: Vec<String> = first_lines(places.collect()).collect();
    if policies.is_empty() {
        lines.push("  no policies".to_owned());
    }
    for (kind, own) in policies {
        lines.extend(own.unknown.map(|why| format!("  {kind}: unknown, as {why}")));
        if own.effective != EffectivePolicy::default() {
            lines.extend(of_kind(kind, own));
        }
    }
    lines
}

fn of_kind(kind: &str, own: &KindOnPath) -> Vec<String> {
    let effective = &own.effective;
    let names = |ids: &[PolicyId]| first(ids.iter().map(PolicyId::qualified_name));
    let mut lines = vec![format!("  {kind}: {}", names(&effective.policies))];
    let more = effective.rules.len().saturating_sub(RULES);
    for (key, rule) in effective.rules.iter().take(RULES) {
        let losers = effective.replaced.iter().filter(|own| own.rule == *key);
        let losers: Vec<String> = losers.map(|own| own.policy.qualified_name()).collect();
        let over = if losers.is_empty() {
            String::new()
        } else {
            format!(", in place of that of {}", first(losers))
        };
        lines.push(format!("    {}{over}", paths::rule_text(key, rule, 0)));
        lines.extend(own.inert_text(key).map(|why| format!("      {why}")));
    }
    if more > 0 {
        lines.push(format!("    and {more} more"));
    }
    let gone = effective.replaced.iter().filter(|own| !effective.rules.contains_key(&own.rule));
    let gone = gone.map(|own| {
        let rule = paths::short(&own.rule);
        format!("    replaced: {rule} of {}, by {}", own.policy.qualified_name(), names(&own.by))
    });
    lines.extend(gone.take(RULES));
    let unreadable = effective.unreadable.iter();
    lines.extend(
        unreadable.map(|own| format!("    not known: {}, which was never valid", own.qualified_name())),
    );
    lines
}
