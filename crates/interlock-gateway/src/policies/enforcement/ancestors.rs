//! The conditions of a policy by ancestor (GEP-713), where its definition has them.

use gateway_policies::{AncestorStatus, Condition as Found, NodeKey, limits};
use interlock_core::api::condition::Condition;
use serde::Deserialize as _;
use serde_json::{Value, json};

/// Who writes the conditions, as GEP-713 wants it.
const CONTROLLER: &str = "interlock.dev/policy-controller";

/// The entries of `status.ancestors`: those of other controllers as they are, and ours.
pub(super) fn entries(
    object: &Value,
    found: Vec<AncestorStatus>,
    with_found: impl Fn(Vec<Condition>, Vec<Found>) -> Vec<Condition>,
) -> Vec<Value> {
    let present = || object["status"]["ancestors"].as_array().into_iter().flatten();
    let of_others = present().filter(|own| own["controllerName"] != CONTROLLER).cloned();
    let ours = found.into_iter().map(|status| {
        let reference = reference(&status.ancestor);
        let before =
            present().find(|own| own["controllerName"] == CONTROLLER && own["ancestorRef"] == reference);
        let mut before: Vec<Condition> =
            before.and_then(|own| Vec::deserialize(&own["conditions"]).ok()).unwrap_or_default();
        before.retain(|own| status.conditions.iter().any(|found| found.kind == own.type_));
        let conditions = with_found(before, status.conditions);
        json!({"ancestorRef": reference, "controllerName": CONTROLLER, "conditions": conditions})
    });
    of_others.chain(ours).take(limits::ANCESTORS).collect()
}

/// Whether others stand in the object. Kuadrant's definition prunes all of them, so that their absence says nothing.
pub(super) fn differ(object: &Value, wanted: &[Value]) -> bool {
    object["status"]["ancestors"].as_array().is_some_and(|present| present != wanted)
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
