//! The spec of a DataPlane's live pods, after a write is accepted.
//!
//! Without a strategy a write takes effect at once. With `blueGreen` changes of the pods wait for a
//! promotion, and other changes take effect at once.

use serde_json::{Map, Value};

/// Fields that take effect at once even if changes are staged: they set the number of pods and the
/// access to them, never their contents. A change of any other field is staged.
pub const IMMEDIATE: [&[&str]; 10] = [
    &["deployment", "replicas"],
    &["deployment", "scaling"],
    &["deployment", "annotations"],
    &["deployment", "labels"],
    &["resources", "podDisruptionBudget"],
    &["network", "services", "ingress", "annotations"],
    &["network", "services", "ingress", "labels"],
    &["network", "services", "ingress", "externalTrafficPolicy"],
    &["network", "services", "ingress", "internalTrafficPolicy"],
    &["network", "services", "ingress", "trafficDistribution"],
];

/// Whether a spec stages changes.
pub fn is_staged(spec: &Value) -> bool {
    spec.pointer("/deployment/rollout/strategy/blueGreen").is_some_and(|strategy| !strategy.is_null())
}

/// The live spec after a write: `live` is the one before it, `None` if there is none yet.
/// `deployment.rollout` describes the rollout of changes, and is not part of the pods.
pub fn after(live: Option<Value>, written: &Value) -> Value {
    let mut spec = match live {
        Some(live) if is_staged(written) => merged(live, written),
        _ => written.clone(),
    };
    if let Some(deployment) = spec.get_mut("deployment").and_then(Value::as_object_mut) {
        deployment.remove("rollout");
    }
    spec
}

fn merged(mut live: Value, written: &Value) -> Value {
    for path in IMMEDIATE {
        let value = path.iter().try_fold(written, |value, member| value.get(member));
        put(&mut live, path, value.filter(|value| !value.is_null()));
    }
    live
}

/// Sets or removes the member at a path.
fn put(value: &mut Value, path: &[&str], wanted: Option<&Value>) {
    let Some((member, rest)) = path.split_first() else { return };
    if value.is_null() && wanted.is_some() {
        *value = Value::Object(Map::new());
    }
    // Validation reports a value that is no object; it has no such member.
    let Some(object) = value.as_object_mut() else { return };
    match (rest.is_empty(), wanted) {
        (true, Some(wanted)) => {
            object.insert((*member).to_owned(), wanted.clone());
        }
        (true, None) => {
            object.remove(*member);
        }
        (false, Some(_)) => put(object.entry(*member).or_insert(Value::Null), rest, wanted),
        (false, None) => {
            if let Some(inner) = object.get_mut(*member) {
                put(inner, rest, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec(image: &str, deployment: Value, rest: Value) -> Value {
        let mut spec = json!({"deployment": {"podTemplateSpec": {"image": image}}});
        json_patch::merge(&mut spec["deployment"], &deployment);
        json_patch::merge(&mut spec, &rest);
        spec
    }

    fn blue_green() -> Value {
        json!({"rollout": {"strategy": {"blueGreen": {}}}})
    }

    fn with(mut deployment: Value, more: Value) -> Value {
        json_patch::merge(&mut deployment, &more);
        deployment
    }

    #[rstest]
    #[case::created(None, spec("a", blue_green(), json!({})), spec("a", json!({}), json!({})))]
    #[case::at_once(Some("a"), spec("b", json!({"rollout": null}), json!({})), spec("b", json!({}), json!({})))]
    #[case::staged(Some("a"), spec("b", blue_green(), json!({})), spec("a", json!({}), json!({})))]
    #[case::scaled(
        Some("a"),
        spec("b", with(blue_green(), json!({"replicas": 5})), json!({})),
        spec("a", json!({"replicas": 5}), json!({}))
    )]
    #[case::traffic(
        Some("a"),
        spec("b", blue_green(), json!({"network": {"services": {"ingress": {"type": "ClusterIP", "labels": {"x": "y"}}}}})),
        spec("a", json!({}), json!({"network": {"services": {"ingress": {"labels": {"x": "y"}}}}}))
    )]
    #[case::unknown_fields_are_staged(
        Some("a"),
        spec("b", with(blue_green(), json!({"hardened": "enabled"})), json!({"pluginsToInstall": [{"name": "p"}]})),
        spec("a", json!({}), json!({}))
    )]
    #[case::nonsense_is_left_alone(Some("a"), json!({"deployment": blue_green(), "network": "x"}), spec("a", json!({}), json!({})))]
    fn what_is_live_after_a_write(#[case] live: Option<&str>, #[case] written: Value, #[case] after: Value) {
        let mut after = after;
        // `json_patch::merge` removes members for which the patch has null.
        after["deployment"].as_object_mut().unwrap().remove("rollout");
        let live = live.map(|image| spec(image, json!({}), json!({})));
        assert_eq!(super::after(live, &written), after);
    }

    #[test]
    fn what_is_taken_out_at_once_is_gone() {
        let live = spec("a", json!({"replicas": 3}), json!({}));
        let written = spec("b", with(blue_green(), json!({"scaling": {"horizontal": {}}})), json!({}));
        let after = super::after(Some(live), &written);
        assert_eq!(after, spec("a", json!({"scaling": {"horizontal": {}}}), json!({})));
    }
}
