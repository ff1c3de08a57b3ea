//! The spec of a DataPlane's live pods, after a write is accepted.
//!
//! Without a strategy a write takes effect at once. With `blueGreen` changes of the pods wait for a
//! promotion, and other changes take effect at once.

use interlock_core::api::meta::condition::LIVE_SPEC_RECORDED;
use interlock_core::api::stamp::SpecHash;
use serde_json::{Map, Value};

use crate::api::condition;
use crate::api::stamp::LiveStamp;

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
    without_rollout(match live {
        Some(live) if is_staged(written) => merged(live, written),
        _ => written.clone(),
    })
}

/// Whether a written spec changes a live one in more than the fields that take effect at once.
pub fn is_changed(live: &Value, written: &Value) -> bool {
    without_rollout(merged(live.clone(), written)) != after(None, written)
}

/// The hash that the stamp has once a written spec is live.
pub fn hash(written: &Value) -> SpecHash {
    SpecHash::of(&after(None, written).to_string())
}

/// The fields of a spec that only a promotion makes live, where changes are staged.
pub fn staged_part(spec: &Value) -> Value {
    merged(after(None, spec), &Value::Object(Map::new()))
}

/// Whether the status of a DataPlane vouches for a live spec: Interlock has carried it out, or is about to. `flavor` is
/// that of the stamp.
pub fn is_recorded(status: &Value, spec: &Value, flavor: Option<&str>) -> bool {
    let recorded = condition(status, LIVE_SPEC_RECORDED);
    let Some(message) = recorded.and_then(|found| found["message"].as_str()) else { return false };
    let part = staged_part(spec).to_string();
    let with_flavor = |flavor: &str| message == SpecHash::of(&format!("{part}\n{flavor}")).as_str();
    message == SpecHash::of(&part).as_str() || flavor.is_some_and(with_flavor)
}

/// Drops the previous spec of a stamp that the status does not vouch for: another operator may have carried out the
/// present one.
pub fn without_unrecorded<'a>(mut stamp: LiveStamp<'a>, status: &Value) -> LiveStamp<'a> {
    let flavor = stamp.flavor.as_deref();
    let of = stamp.previous.as_ref().and_then(|previous| previous.spec());
    let spec = of.and_then(|text| serde_json::from_str::<Value>(text).ok());
    if !spec.is_some_and(|spec| is_recorded(status, &spec, flavor)) {
        stamp.previous = None;
    }
    stamp
}

/// The written spec with everything but its rollout and its immediate fields as it is live.
pub fn restored(live: &Value, written: &Value) -> Value {
    let mut spec = without_rollout(merged(live.clone(), written));
    put(&mut spec, &["deployment", "rollout"], written.pointer("/deployment/rollout"));
    spec
}

/// A spec with as many replicas as another.
pub fn scaled_as(spec: &Value, other: &Value) -> Value {
    let mut spec = spec.clone();
    put(&mut spec, &["deployment", "replicas"], other.pointer("/deployment/replicas"));
    spec
}

/// Whether two live specs differ in the number of pods at most.
pub fn is_scaled(before: &Value, after: &Value) -> bool {
    scaled_as(before, after) == *after
}

fn without_rollout(mut spec: Value) -> Value {
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
    // The innermost first: one that is empty then may leave the next one empty.
    for depth in (1..4).rev() {
        for path in IMMEDIATE.iter().filter(|path| path.len() > depth) {
            align_empty(&mut live, written, &path[..depth]);
        }
    }
    live
}

/// An object that has nothing else than immediate fields is there where it is written.
fn align_empty(live: &mut Value, written: &Value, path: &[&str]) {
    let at = |value: &Value| path.iter().try_fold(value, |value, member| value.get(member)).cloned();
    let is_empty =
        |value: &Option<Value>| value.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty);
    match (at(live), at(written)) {
        (found, None) if is_empty(&found) => put(live, path, None),
        (None, wanted) if is_empty(&wanted) => put(live, path, wanted.as_ref()),
        _ => {}
    }
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

    fn with_budget(image: &str, resources: Value) -> Value {
        spec(image, json!({}), json!({ "resources": resources }))
    }

    #[rstest]
    #[case::same(spec("a", json!({}), json!({})), spec("a", blue_green(), json!({})), false)]
    #[case::another_image(spec("a", json!({}), json!({})), spec("b", blue_green(), json!({})), true)]
    #[case::scaled(spec("a", json!({"replicas": 3}), json!({})), spec("a", with(blue_green(), json!({"replicas": 5})), json!({})), false)]
    #[case::budget_added(spec("a", json!({}), json!({})), with_budget("a", json!({"podDisruptionBudget": {"spec": {}}})), false)]
    #[case::budget_removed(with_budget("a", json!({"podDisruptionBudget": {"spec": {}}})), spec("a", json!({}), json!({})), false)]
    #[case::an_empty_parent(spec("a", json!({}), json!({})), json!({"deployment": {"podTemplateSpec": {"image": "a"}}, "network": {"services": {}}}), false)]
    #[case::without_blue_green(spec("a", json!({}), json!({})), spec("b", json!({}), json!({})), true)]
    fn what_is_staged(#[case] live: Value, #[case] written: Value, #[case] changed: bool) {
        assert_eq!(is_changed(&live, &written), changed);
        let restored = restored(&live, &written);
        assert!(!is_changed(&live, &restored), "{restored}");
        assert_eq!(restored.pointer("/deployment/rollout"), written.pointer("/deployment/rollout"));
        assert_eq!(restored.pointer("/deployment/replicas"), written.pointer("/deployment/replicas"));
    }
}
