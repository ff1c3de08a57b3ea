//! A path and its policies, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use gateway_policies::{EffectivePolicy, EffectiveRule, Path, PolicyId};
use interlock_core::api::display::{display, one_line};
use interlock_gateway::policies::PolicySurvey;
use serde_json::{Map, Value, json};

/// The rules of one kind on a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum KindOnPath {
    /// What acts, and what it replaced.
    Known(EffectivePolicy),
    /// Not all of its policies could be listed; what those do that could.
    Unknown(Option<EffectivePolicy>),
}

/// Characters of a rule's name that are shown, and the widest column of them. JSON has all.
const SHOWN: usize = 250;
const COLUMN: usize = 60;

/// Rates of a limit that are shown.
const LISTED: usize = 4;

/// The policies of a path, by kind.
pub(super) type PoliciesOnPath = BTreeMap<String, KindOnPath>;

/// The policies of a path.
pub(super) fn policies_on(survey: &PolicySurvey, path: &Arc<Path>) -> PoliciesOnPath {
    let acting = survey.acting(path).into_iter();
    let mut all: PoliciesOnPath = acting.map(|(kind, own)| (kind, KindOnPath::Known(own))).collect();
    for kind in survey.unknown_on(path) {
        let seen = match all.remove(kind) {
            Some(KindOnPath::Known(own)) => Some(own),
            Some(KindOnPath::Unknown(own)) => own,
            None => None,
        };
        all.insert(kind.to_owned(), KindOnPath::Unknown(seen));
    }
    all
}

/// A path with its policies, as `effective -o json` has it.
pub(super) fn json(path: &Path, policies: &PoliciesOnPath) -> Value {
    let mut value = nodes(path);
    value["policies"] = policies_json(policies);
    value
}

/// The nodes of a path.
pub(super) fn nodes(path: &Path) -> Value {
    json!({
        "gatewayClass": *path.gateway_class.name,
        "gateway": format!("{}/{}", path.gateway.namespace, path.gateway.name),
        "listener": listener(path),
        "route": path.route.to_string(),
        "rule": path.rule_index,
    })
}

/// The policies of a path.
pub(super) fn policies_json(policies: &PoliciesOnPath) -> Value {
    let of_kind = |own: &KindOnPath| match own {
        KindOnPath::Unknown(seen) => {
            let mut value = seen.as_ref().map_or_else(|| json!({}), known);
            value["unknown"] = true.into();
            value
        }
        KindOnPath::Known(effective) => known(effective),
    };
    Value::Object(policies.iter().map(|(kind, own)| (kind.clone(), of_kind(own))).collect())
}

/// The rules with their sources; what was replaced, and what cannot be read, where there is any.
fn known(effective: &EffectivePolicy) -> Value {
    let mut all = effective.to_json();
    let mut value = Map::from_iter([("rules".to_owned(), all["rules"].take())]);
    for field in ["replaced", "unreadable"] {
        if all[field].as_array().is_some_and(|found| !found.is_empty()) {
            value.insert(field.to_owned(), all[field].take());
        }
    }
    Value::Object(value)
}

/// The listener by its name, or as a node where a ListenerSet declares it.
pub(super) fn listener(path: &Path) -> String {
    match &path.listener_set {
        Some(_) => path.listener.to_string(),
        None => path.listener.section.as_deref().unwrap_or_default().to_owned(),
    }
}

/// A path on one line.
pub(super) fn title(path: &Path) -> String {
    let gateway = format!("{}/{}", path.gateway.namespace, path.gateway.name);
    let (listener, rule) = (listener(path), rule(path));
    let title = format!("{} > {gateway} > {listener} > {} > {rule}", path.gateway_class.name, path.route);
    one_line(&title).into_owned()
}

/// The rule of a path: its position, and its name.
pub(super) fn rule(path: &Path) -> String {
    let section = path.rule.section.as_deref().unwrap_or_default();
    // A rule without a name is known by its position alone.
    match path.rule.is_position() || section.starts_with('#') {
        true => format!("rule {}", path.rule_index),
        false => format!("rule {} {section}", path.rule_index),
    }
}

/// The name of a rule, cut where it is long.
pub(super) fn short(rule: &str) -> String {
    display(rule, SHOWN)
}

/// A rule that acts, on one line: its name in a column, its source, and the rates of a limit.
pub(super) fn rule_text(key: &str, rule: &EffectiveRule, width: usize) -> String {
    let source = rule.source.qualified_name();
    // Kinds whose policies act side by side have a rule for each policy, by its name.
    match key == source {
        true => source,
        false => format!("{:width$}  from {source}{}", short(key), rates(&rule.value)),
    }
}

/// `: 10 per 1s, 1000 per 1h`, where a rule has rates, and whether they count some requests only.
fn rates(rule: &Value) -> String {
    let Some(rates) = rule["rates"].as_array().filter(|rates| !rates.is_empty()) else {
        return String::new();
    };
    let rate =
        |rate: &Value| format!("{} per {}", rate["limit"], rate["window"].as_str().unwrap_or_default());
    let more = if rates.len() > LISTED { ", ..." } else { "" };
    let rates: Vec<String> = rates.iter().take(LISTED).map(rate).collect();
    let is_some_only = rule["when"].as_array().is_some_and(|when| !when.is_empty());
    format!(": {}{more}{}", rates.join(", "), if is_some_only { ", of some requests (when)" } else { "" })
}

/// The rules of a kind, a line each, and what they replaced.
pub(super) fn text(kind: &str, own: &KindOnPath) -> String {
    let mut out = format!("  {}\n", one_line(kind));
    let mut line = |text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "    {}", one_line(&text));
    };
    let effective = match own {
        KindOnPath::Known(effective) => effective,
        KindOnPath::Unknown(seen) => {
            line("unknown, as not all of its policies can be listed".to_owned());
            let Some(seen) = seen else { return out };
            seen
        }
    };
    let widths = effective.rules.keys().map(|key| key.chars().count());
    let width = widths.max().unwrap_or_default().min(COLUMN);
    for (key, rule) in &effective.rules {
        line(rule_text(key, rule, width));
    }
    for replaced in &effective.replaced {
        let by: Vec<String> = replaced.by.iter().map(PolicyId::qualified_name).collect();
        let policy = replaced.policy.qualified_name();
        let rule = short(&replaced.rule);
        line(format!("replaced: {rule} of {policy}, by {}", by.join(", ")));
    }
    for policy in &effective.unreadable {
        line(format!("not known: {}, which was never valid", policy.qualified_name()));
    }
    out
}
