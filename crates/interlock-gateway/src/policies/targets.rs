//! The targets of a policy whose rules are not known: selectors become references, and kinds that are no nodes are
//! set apart.

use std::collections::BTreeSet;

use gateway_policies::{GATEWAY_GROUP, NodeKey, ObjectKind};
use serde_json::{Map, Value, json};

use super::generic::{FIELDS, NO_RULES, Precedence};
use super::known::SeenKind;
use super::labels::{Labels, Selector, namespace_of};

/// A policy, and what of its targets no graph of the Gateway API has.
pub(super) struct Linked {
    /// The policy with references to nodes alone; none where it has no such reference.
    pub(super) object: Option<Value>,
    /// The other targets, as `KIND/NAME`.
    pub(super) elsewhere: Vec<String>,
    /// Whether it names targets by selectors, and nothing matches.
    pub(super) is_unmatched: bool,
}

/// Reads the targets of a policy; none where it names none, as Istio's policies with a selector of pods.
pub(super) fn linked(kind: &SeenKind, object: &Value, labels: &Labels) -> Option<Linked> {
    if kind.is_understood {
        return Some(Linked { object: Some(object.clone()), elsewhere: Vec::new(), is_unmatched: false });
    }
    let spec = object.get("spec")?.as_object()?;
    let list = |field: &str| spec.get(field).and_then(Value::as_array).into_iter().flatten();
    let references = spec.get("targetRef").into_iter().chain(list("targetRefs")).cloned();
    let namespace = namespace_of(object);
    let selected: BTreeSet<&NodeKey> =
        Selector::all(object).flat_map(|selector| labels.selected(namespace, selector)).collect();
    let selected = selected
        .into_iter()
        .map(|node| json!({"group": node.kind.group(), "kind": node.kind.name(), "name": &*node.name}));
    let references: Vec<Value> = references.chain(selected).collect();
    let is_unmatched = references.is_empty();
    if is_unmatched && list("targetSelectors").next().is_none() {
        return None;
    }
    let (elsewhere, nodes): (Vec<Value>, Vec<Value>) = references.into_iter().partition(is_elsewhere);
    let elsewhere =
        elsewhere.iter().map(|target| format!("{}/{}", text(target, "kind"), text(target, "name")));
    let object = (!nodes.is_empty()).then(|| with_targets(kind, object, spec, nodes));
    Some(Linked { object, elsewhere: elsewhere.collect(), is_unmatched })
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
    let group = reference["group"].as_str().unwrap_or(GATEWAY_GROUP);
    reference["kind"].as_str().is_some_and(|kind| ObjectKind::find(group, kind).is_none())
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
