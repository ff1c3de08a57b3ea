//! What a hop writes into a DataPlane.

use json_patch::PatchOperation;
use rstest::rstest;
use serde_json::{Value, json};

use crate::data_plane::flavor::Flavor::{Expressions as EX, TraditionalCompatible as TC};
use crate::data_plane::flavor::sources::GivenSources;
use crate::data_plane::rollout::flavor_change::edit::{FlavorEditError, edit};

const FLAVOR: &str = "KONG_ROUTER_FLAVOR";

fn plane(containers: Value) -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "edge", "namespace": "kong", "resourceVersion": "7"},
        "spec": {"deployment": {"podTemplateSpec": {"spec": {"containers": containers}}}},
    })
}

fn proxy(env: Value) -> Value {
    let mut container = json!({"name": "proxy", "image": "kong:3.9"});
    if !env.is_null() {
        container["env"] = env;
    }
    container
}

fn sources() -> GivenSources {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "router", "namespace": "kong"},
        "data": {"flavor": "traditional_compatible", FLAVOR: "traditional_compatible"}});
    GivenSources::of([&map], "kong")
}

fn patched(object: &Value, operations: Vec<PatchOperation>) -> Value {
    let mut object = object.clone();
    json_patch::patch(&mut object, &operations).unwrap();
    object
}

fn flavor(value: &str) -> Value {
    json!({"name": FLAVOR, "value": value})
}

#[rstest]
#[case::none(json!([proxy(json!(null))]), json!([proxy(json!([flavor("expressions")]))]))]
#[case::empty(json!([proxy(json!([]))]), json!([proxy(json!([flavor("expressions")]))]))]
#[case::others_are_kept(
    json!([{"name": "sidecar", "env": [flavor("x")]}, proxy(json!([{"name": "A", "value": "b"}, flavor("traditional"), {"name": "C", "value": "d"}]))]),
    json!([{"name": "sidecar", "env": [flavor("x")]}, proxy(json!([{"name": "A", "value": "b"}, flavor("expressions"), {"name": "C", "value": "d"}]))])
)]
#[case::the_last_one_counts(
    json!([proxy(json!([flavor("x"), flavor("traditional")]))]),
    json!([proxy(json!([flavor("x"), flavor("expressions")]))])
)]
fn a_hop_writes_the_flavor_alone(#[case] before: Value, #[case] after: Value) {
    let object = plane(before);
    let operations = edit(&object, TC, EX, &sources()).unwrap();
    assert_eq!(patched(&object, operations.clone()), plane(after));
    let mut moved = object;
    moved["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"name": "new"}));
    assert!(json_patch::patch(&mut moved, &operations).is_err(), "a container is at another place");
}

#[rstest]
#[case::config_map(
    json!([{"name": FLAVOR, "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}]),
    json!(null),
    "ConfigMap kong/router key \"flavor\""
)]
#[case::absent_secret(
    json!([{"name": FLAVOR, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}]),
    json!(null),
    "Secret kong/s key \"k\""
)]
#[case::field(
    json!([{"name": FLAVOR, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    json!(null),
    "valueFrom.fieldRef"
)]
#[case::env_from(json!(null), json!([{"configMapRef": {"name": "router"}}]), "envFrom of ConfigMap kong/router key \"KONG_ROUTER_FLAVOR\"")]
#[case::by_reference(
    json!([{"name": "F", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}, {"name": FLAVOR, "value": "$(F)"}]),
    json!(null),
    "ConfigMap kong/router key \"flavor\""
)]
fn what_comes_from_elsewhere_is_not_written(#[case] env: Value, #[case] env_from: Value, #[case] from: &str) {
    let mut container = proxy(env);
    if !env_from.is_null() {
        container["envFrom"] = env_from;
    }
    let object = plane(json!([container]));
    let error = edit(&object, TC, EX, &sources()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("KONG_ROUTER_FLAVOR of container \"proxy\" comes from {from}, ")),
        "{text}"
    );
    // The remedy writes the value that is live: after it the same hop can be written.
    let FlavorEditError::Elsewhere { patch, .. } = &error else { panic!("{error}") };
    let remedied = patched(&object, patch.clone());
    assert!(edit(&remedied, TC, EX, &sources()).is_ok());
    let remedy = error.remedy("edge", "kong");
    assert!(remedy.contains("`kubectl patch dataplane edge -n kong --type=json -p '[{"), "{remedy}");
    assert!(remedy.contains(r#"{"name":"KONG_ROUTER_FLAVOR","value":"traditional_compatible"}"#), "{remedy}");
}

#[rstest]
#[case::none(json!([{"name": "kong"}]))]
#[case::two(json!([proxy(json!(null)), proxy(json!(null))]))]
#[case::nonsense(json!("x"))]
fn without_one_proxy_nothing_is_written(#[case] containers: Value) {
    assert_eq!(edit(&plane(containers), TC, EX, &sources()), Err(FlavorEditError::NoProxy));
}
