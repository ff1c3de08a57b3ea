//! The HorizontalPodAutoscaler and the PodDisruptionBudget: both of the live side only.

use serde_json::{Map, Value, json};

use super::invalid::{FieldPlace, InvalidTemplate, at};
use super::owner::{ChildMetadata, DataPlaneOwner};
use crate::api::labels;

/// The autoscaler of the Deployment with that name; `None` where the spec asks for none.
pub fn autoscaler(
    owner: &DataPlaneOwner,
    spec: &Value,
    deployment_name: &str,
) -> Result<Option<Value>, InvalidTemplate> {
    let place = FieldPlace::root("spec.deployment.scaling.horizontal");
    let Some(horizontal) = at(spec, &["deployment", "scaling", "horizontal"]) else { return Ok(None) };
    let mut body = copied(
        place.object(horizontal)?,
        &["minReplicas", "maxReplicas", "metrics", "behavior"],
        json!({"minReplicas": 1}),
    );
    body["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment_name});
    Ok(Some(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": owner.metadata(&owner.name, &[], ChildMetadata::default()),
        "spec": body,
    })))
}

/// The disruption budget of the pods with that value of the label; `None` where the spec asks for none.
pub fn disruption_budget(
    owner: &DataPlaneOwner,
    spec: &Value,
    selector: &str,
) -> Result<Option<Value>, InvalidTemplate> {
    let place = FieldPlace::root("spec.resources.podDisruptionBudget");
    let Some(budget) = at(spec, &["resources", "podDisruptionBudget"]) else { return Ok(None) };
    let budget = place.object(budget)?;
    let place = place.field("spec");
    let nothing = Value::Object(Map::new());
    let budget = place.object(budget.get("spec").filter(|spec| !spec.is_null()).unwrap_or(&nothing))?;
    let own = json!({"selector": {"matchLabels": owner.pod_labels(selector)}});
    let body = copied(budget, &["minAvailable", "maxUnavailable", "unhealthyPodEvictionPolicy"], own);
    Ok(Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": owner.metadata(&owner.name, &[(labels::SELECTOR, selector)], ChildMetadata::default()),
        "spec": body,
    })))
}

/// These fields of an object, over others.
fn copied(from: &Map<String, Value>, fields: &[&str], mut over: Value) -> Value {
    for field in fields {
        if let Some(value) = from.get(*field).filter(|value| !value.is_null()) {
            over[*field] = value.clone();
        }
    }
    over
}
