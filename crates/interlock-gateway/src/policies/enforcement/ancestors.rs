//! The conditions of a policy by ancestor (GEP-713), where its definition has them.

use std::collections::BTreeSet;

use gateway_policies::{NodeKey, PolicyId, limits};
use interlock_core::api::condition::Condition;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::finding::Finding;

/// Who writes the conditions, as GEP-713 wants it.
const CONTROLLER: &str = "interlock.dev/policy-controller";

fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["ancestors"].as_array().into_iter().flatten()
}

fn is_ours(entry: &&Value) -> bool {
    entry["controllerName"] == CONTROLLER
}

/// How many entries those of other controllers leave room for.
pub(super) fn room(object: &Value) -> usize {
    limits::ANCESTORS.saturating_sub(entries(object).filter(|own| !is_ours(own)).count())
}

/// Our entries of `status.ancestors`.
pub(super) fn ours(
    object: &Value,
    found: Vec<(NodeKey, Vec<Finding>)>,
    with_found: impl Fn(Vec<Condition>, Vec<Finding>) -> Vec<Condition>,
) -> Vec<Value> {
    let entry = |(ancestor, found): (NodeKey, Vec<Finding>)| {
        let reference = reference(&ancestor);
        let before = entries(object).filter(is_ours).find(|own| own["ancestorRef"] == reference);
        let mut before: Vec<Condition> =
            before.and_then(|own| Vec::deserialize(&own["conditions"]).ok()).unwrap_or_default();
        before.retain(|own| found.iter().any(|found| found.condition.kind == own.type_));
        json!({"ancestorRef": reference, "controllerName": CONTROLLER, "conditions": with_found(before, found)})
    };
    found.into_iter().map(entry).collect()
}

/// All entries, those of other controllers as they are.
pub(super) fn with_others(object: &Value, ours: Vec<Value>) -> Value {
    let others = entries(object).filter(|own| !is_ours(own)).cloned();
    others.chain(ours).collect()
}

/// Whether our entries stand in an object that has the field. Others may stand between them.
pub(super) fn is_written(object: &Value, ours: &[Value]) -> bool {
    object["status"]["ancestors"].is_null() || entries(object).filter(is_ours).eq(ours)
}

fn reference(ancestor: &NodeKey) -> Value {
    let mut reference = json!({
        "group": ancestor.kind.group(), "kind": ancestor.kind.name(), "name": *ancestor.name,
    });
    if !ancestor.namespace.is_empty() {
        reference["namespace"] = (*ancestor.namespace).into();
    }
    if let Some(section) = &ancestor.section {
        reference["sectionName"] = (**section).into();
    }
    reference
}

/// Whether the definition prunes the field, as Kuadrant's does: a policy that is without it after it was written shows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pruning {
    is_seen: bool,
    /// Policies without the field to which it is written.
    tried: BTreeSet<PolicyId>,
}

impl Pruning {
    /// Whether our entries are to be written to a policy that is without the field.
    pub(super) fn is_to_be_tried(&mut self, id: &PolicyId, object: &Value, ours: &[Value]) -> bool {
        if !object["status"]["ancestors"].is_null() {
            // Another definition may have come.
            self.is_seen = false;
            self.tried.remove(id);
            return false;
        }
        if self.is_seen || ours.is_empty() {
            return false;
        }
        let is_first = self.tried.insert(id.clone());
        if !is_first {
            self.is_seen = true;
            self.tried.clear();
        }
        is_first
    }
}
