//! The targets of a policy whose rules are not known: selectors become references, and what no graph of the Gateway API
//! has is set apart.

use std::collections::BTreeSet;

use gateway_policies::{NodeKey, ObjectKind};
use serde_json::{Map, Value, json};

use super::generic::{FIELDS, NO_RULES, Precedence};
use super::known::SeenKind;
use super::labels::{Labels, SELECTORS, Selector, namespace_of, node_kind};
use crate::names::KUADRANT;

/// A policy, and what of its targets no graph of the Gateway API has.
#[derive(Default)]
pub(super) struct Linked {
    /// The policy with references to nodes alone; none where it has no such reference.
    pub(super) object: Option<Value>,
    /// The other targets, as `KIND/NAME`.
    pub(super) elsewhere: Vec<String>,
    /// Whether it names targets by selectors, and nothing matches.
    pub(super) is_unmatched: bool,
    /// The kinds that its selectors select in other namespaces, which are not looked into.
    pub(super) selects_outside: BTreeSet<ObjectKind>,
    /// What of its targets is not as it may seem.
    pub(super) notes: Vec<String>,
}

/// Reads the targets of a policy; none where it is no policy of the Gateway API, as Istio's with a selector of pods.
pub(super) fn linked(kind: &SeenKind, object: &Value, labels: &Labels) -> Option<Linked> {
    let mut linked = Linked { notes: version_notes(kind, object), ..Linked::default() };
    if kind.is_understood {
        linked.object = Some(object.clone());
        return Some(linked);
    }
    let empty = Map::new();
    let spec = object.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let one = spec.get("targetRef").filter(|target| !target.is_null());
    if one.is_some() && list("targetRefs").next().is_some() {
        linked.notes.push("has targetRef and targetRefs, of which the API server takes one".to_owned());
    }
    let references: Vec<Value> = one.into_iter().chain(list("targetRefs")).cloned().collect();
    let mut selected: BTreeSet<&NodeKey> = BTreeSet::new();
    for selector in Selector::all(object) {
        selected.extend(labels.selected(namespace_of(object), selector));
    }
    for selector in list("targetSelectors").take(SELECTORS) {
        if selector["namespaces"]["from"].as_str().is_some_and(|from| from != "Same") {
            linked.selects_outside.extend(node_kind(selector));
        }
    }
    if !linked.selects_outside.is_empty() {
        linked.notes.push("targets of other namespaces, which targetSelectors name, are left out".to_owned());
    }
    if list("targetSelectors").count() > SELECTORS {
        linked.notes.push(format!("targetSelectors after the first {SELECTORS} are left out"));
    }
    let has_selector = list("targetSelectors").next().is_some();
    if references.is_empty() && !has_selector {
        // Without targets Istio's act on a namespace, and those of others are invalid.
        if kind.kind.group().ends_with("istio.io") {
            return None;
        }
        linked.object = Some(with_targets(kind, object, spec, Vec::new()));
        return Some(linked);
    }
    linked.is_unmatched = references.is_empty() && selected.is_empty();
    let selected = selected
        .into_iter()
        .map(|node| json!({"group": node.kind.group(), "kind": node.kind.name(), "name": &*node.name}));
    let (nodes, elsewhere): (Vec<Value>, Vec<Value>) =
        references.into_iter().chain(selected).partition(|target| !is_elsewhere(target));
    // A target that the kind cannot have makes the policy invalid only where it is the only one.
    let (good, bad): (Vec<Value>, Vec<Value>) =
        nodes.into_iter().partition(|target| is_admitted(kind, target));
    let name = |target: &Value| format!("{}/{}", text(target, "kind"), text(target, "name"));
    let (nodes, bad) = if good.is_empty() { (bad, Vec::new()) } else { (good, bad) };
    linked.notes.extend(bad.iter().map(|target| format!("{} is no target that it can have", name(target))));
    linked.elsewhere = elsewhere.iter().chain(&bad).map(name).collect();
    linked.object = (!nodes.is_empty()).then(|| with_targets(kind, object, spec, nodes));
    Some(linked)
}

/// Kuadrant's kinds have changed their fields between versions.
fn version_notes(kind: &SeenKind, object: &Value) -> Vec<String> {
    let version = text(object, "apiVersion");
    let is_other = kind.kind.group() == KUADRANT && version.contains("/v1beta");
    let note = || format!("is of {version}, which is read as if it were {KUADRANT}/v1");
    is_other.then(note).into_iter().collect()
}

/// The policy with these targets, and its rules where its kind looks for them.
fn with_targets(kind: &SeenKind, object: &Value, spec: &Map<String, Value>, targets: Vec<Value>) -> Value {
    let rest = spec.iter().filter(|(field, _)| match kind.precedence {
        Precedence::Inherited => !field.starts_with("target"),
        _ => !NO_RULES.contains(&field.as_str()),
    });
    let mut rest: Map<String, Value> = rest.map(|(field, value)| (field.clone(), value.clone())).collect();
    if kind.precedence != Precedence::Inherited {
        // A policy without fields replaces others too.
        if rest.is_empty() {
            rest.insert("spec".to_owned(), json!({}));
        }
        rest = Map::from_iter([(FIELDS.to_owned(), Value::Object(rest))]);
    }
    // A violation names the field that the policy has.
    match targets.as_slice() {
        [only] if spec.contains_key("targetRef") => rest.insert("targetRef".to_owned(), only.clone()),
        _ => rest.insert("targetRefs".to_owned(), targets.into()),
    };
    let mut object = object.clone();
    object["spec"] = Value::Object(rest);
    object
}

/// Whether a reference names a kind that no path goes through.
fn is_elsewhere(reference: &Value) -> bool {
    reference["kind"].is_string() && node_kind(reference).is_none()
}

/// Whether a policy of a kind can have a target.
fn is_admitted(kind: &SeenKind, reference: &Value) -> bool {
    let Some(node) = node_kind(reference) else { return false };
    let mut admitted = kind.kind.targets().iter().filter(|target| target.kind == node);
    let has_section = !text(reference, "sectionName").is_empty();
    reference["name"].is_string() && admitted.any(|target| target.has_sections || !has_section)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
