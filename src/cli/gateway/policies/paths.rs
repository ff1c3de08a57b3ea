//! A path and its policies, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use gateway_policies::{EffectivePolicy, EffectiveRule, Path, PolicyId};
use interlock_core::api::display::{display, one_line};
use interlock_gateway::policies::{Inert, PolicySurvey, counted_as};
use serde_json::{Map, Value, json};

/// The rules of one kind on a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KindOnPath {
    /// What is in force, and what it replaced, of the policies that are seen.
    pub(super) effective: EffectivePolicy,
    /// The rules of it that can never act, by key.
    inert: BTreeMap<Arc<str>, Arc<Inert>>,
    /// Why others may act, too.
    pub(super) unknown: Option<&'static str>,
}

impl KindOnPath {
    /// The rules that are in force, without those that can never act.
    pub(super) fn acting(&self) -> impl Iterator<Item = (&Arc<str>, &EffectiveRule)> {
        let is_inert = |key: &Arc<str>| self.inert.get(key).is_some_and(|own| own.is_whole);
        self.effective.rules.iter().filter(move |(key, _)| !is_inert(key))
    }

    /// That a rule can never act, and why.
    pub(super) fn inert_text(&self, key: &str) -> Option<String> {
        let own = self.inert.get(key)?;
        let how = if own.is_whole { "never acts" } else { "never acts in part" };
        Some(format!("{how}: {}", short(&own.why.join("; "))))
    }
}

/// Characters of a rule's name that are shown, and the widest column of them. JSON has all.
const SHOWN: usize = 250;
const COLUMN: usize = 60;

/// Rates and counters of a limit that are shown.
const LISTED: usize = 4;

/// The policies of a path, by kind.
pub(super) type PoliciesOnPath = BTreeMap<String, KindOnPath>;

/// The policies of a path.
pub(super) fn policies_on(survey: &PolicySurvey, path: &Arc<Path>) -> PoliciesOnPath {
    let of_kind = |effective: EffectivePolicy| {
        let inert =
            |(key, rule): (&Arc<str>, &EffectiveRule)| Some((key.clone(), survey.inert(&rule.source, key)?));
        let inert = effective.rules.iter().filter_map(inert).collect();
        KindOnPath { effective, inert, unknown: None }
    };
    let acting = survey.acting(path).into_iter();
    let mut all: PoliciesOnPath = acting.map(|(kind, own)| (kind, of_kind(own))).collect();
    for (kind, why) in survey.unknown_on(path) {
        all.entry(kind.to_owned()).or_default().unknown = Some(why);
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
    Value::Object(policies.iter().map(|(kind, own)| (kind.clone(), kind_json(own))).collect())
}

/// The rules with their sources; what was replaced, and what cannot be read, where there is any.
fn kind_json(own: &KindOnPath) -> Value {
    let mut all = own.effective.to_json();
    for (key, inert) in &own.inert {
        let field = if inert.is_whole { "neverActs" } else { "neverActsInPart" };
        all["rules"][&**key][field] = json!(inert.why);
    }
    let mut value = Map::new();
    if own.unknown.is_none() || own.effective != EffectivePolicy::default() {
        value.insert("rules".to_owned(), all["rules"].take());
    }
    for field in ["replaced", "unreadable"] {
        if all[field].as_array().is_some_and(|found| !found.is_empty()) {
            value.insert(field.to_owned(), all[field].take());
        }
    }
    if own.unknown.is_some() {
        value.insert("unknown".to_owned(), true.into());
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
        false => format!("{:width$}  from {}{}", short(key), sources(rule), rates(&rule.value)),
    }
}

/// Where a rule comes from: a policy, or two that are merged.
pub(super) fn sources(rule: &EffectiveRule) -> String {
    let with = rule.with.as_ref().map(|with| format!(", merged with that of {}", with.qualified_name()));
    rule.source.qualified_name() + &with.unwrap_or_default()
}

/// `: 10 per 1s, 1000 per 1h`, where a rule has rates, of Kuadrant or of Envoy Gateway, what they are counted for one by
/// one, and whether they count some requests only.
fn rates(rule: &Value) -> String {
    let of_envoy: Vec<&Value> = ["global", "local"].iter().flat_map(|at| list(&rule[*at]["rules"])).collect();
    let counters = list(&rule["counters"]).filter_map(|counter| counter["expression"].as_str()).map(short);
    let of_kuadrant = shown(list(&rule["rates"]).map(rate), ", ") + &for_each(counters);
    let of_each = |own: &&Value| {
        let unit = own["limit"]["unit"].as_str().unwrap_or_default().to_lowercase();
        let each = for_each(list(&own["clientSelectors"]).flat_map(distinct));
        format!("{} per {unit}{each}", own["limit"]["requests"])
    };
    let rates = match of_envoy.is_empty() {
        true if list(&rule["rates"]).next().is_none() => return String::new(),
        true => of_kuadrant,
        false => shown(of_envoy.iter().map(of_each), ", "),
    };
    let is_some_only = list(&rule["when"]).next().is_some()
        || of_envoy.iter().any(|own| list(&own["clientSelectors"]).next().is_some());
    let some = if is_some_only { ", of requests that meet its conditions" } else { "" };
    format!(": {rates}{some}")
}

/// ` for each A and B`.
fn for_each(what: impl Iterator<Item = String>) -> String {
    match shown(what, " and ").as_str() {
        "" => String::new(),
        each => format!(" for each {each}"),
    }
}

/// The first ones; JSON has all.
fn shown(all: impl Iterator<Item = String>, between: &str) -> String {
    let mut all: Vec<String> = all.take(LISTED + 1).collect();
    if all.len() > LISTED {
        all[LISTED] = "...".to_owned();
    }
    all.join(between)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// `5 per 1m`; `5 per 1500ms (counts as 1s)`.
fn rate(own: &Value) -> String {
    let window = own["window"].as_str().unwrap_or_default();
    let counted = counted_as(window).map(|counted| format!(" (counts as {counted})")).unwrap_or_default();
    format!("{} per {window}{counted}", own["limit"])
}

/// What a selector of Envoy Gateway counts one by one: values of headers, addresses.
fn distinct(selector: &Value) -> Vec<String> {
    let is_distinct = |own: &&Value| own["type"] == "Distinct";
    let headers = list(&selector["headers"]).filter(is_distinct);
    let mut all: Vec<String> =
        headers.map(|own| format!("header {}", short(own["name"].as_str().unwrap_or_default()))).collect();
    all.extend(Some(&selector["sourceCIDR"]).filter(is_distinct).map(|_| "address".to_owned()));
    all
}

/// The rules of a kind, a line each, and what they replaced.
pub(super) fn text(kind: &str, own: &KindOnPath) -> String {
    let mut out = format!("  {}\n", one_line(kind));
    let mut line = |text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "    {}", one_line(&text));
    };
    let effective = &own.effective;
    if let Some(why) = own.unknown {
        line(format!("unknown, as {why}"));
    }
    let widths = effective.rules.keys().map(|key| key.chars().count());
    let width = widths.max().unwrap_or_default().min(COLUMN);
    for (key, rule) in &effective.rules {
        line(rule_text(key, rule, width));
        own.inert_text(key).into_iter().for_each(|why| line(format!("  {why}")));
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
