//! The cases of one list each; `tests/packages/merges.rs` compares thousands with apimachinery.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::object::Gvk;

fn merged(kind: (&str, &str), original: &Value, modified: &Value, current: &Value) -> Value {
    let of = ObjectType::of_kind(&Gvk::new(kind.0, kind.1)).unwrap();
    let object = |value: &Value| value.as_object().unwrap().clone();
    Value::Object(merge(original.as_object(), &object(modified), object(current), of))
}

fn of_spec(kind: (&str, &str), [original, modified, current]: [Value; 3]) -> Value {
    let spec = |value: Value| json!({"spec": value});
    merged(kind, &spec(original), &spec(modified), &spec(current))["spec"].take()
}

#[rstest]
#[case::of_others_stays(json!([{"name": "a"}]), json!([{"name": "a"}]), json!([{"name": "a"}, {"name": "x"}]), json!([{"name": "a"}, {"name": "x"}]))]
#[case::dropped_goes(json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "a"}]), json!([{"name": "b"}, {"name": "a"}]), json!([{"name": "a"}]))]
#[case::added_comes(json!([{"name": "a"}]), json!([{"name": "b"}, {"name": "a"}]), json!([{"name": "a"}, {"name": "x"}]), json!([{"name": "b"}, {"name": "a"}, {"name": "x"}]))]
#[case::of_others_before_ours_stays_there(json!([]), json!([{"name": "a"}]), json!([{"name": "x"}, {"name": "a"}]), json!([{"name": "x"}, {"name": "a"}]))]
#[case::members_are_merged(
    json!([{"name": "a", "tty": true}]), json!([{"name": "a", "image": "2"}]),
    json!([{"name": "a", "image": "1", "tty": true, "stdin": true}]), json!([{"name": "a", "image": "2", "stdin": true}])
)]
#[case::an_atomic_list_inside(
    json!([{"name": "a", "args": ["1"]}]), json!([{"name": "a", "args": ["2"]}]),
    json!([{"name": "a", "args": ["1", "x"]}]), json!([{"name": "a", "args": ["2"]}])
)]
#[case::null_is_absent(json!([]), json!([{"name": "a", "tty": null}]), json!([{"name": "a", "tty": true}]), json!([{"name": "a", "tty": true}]))]
#[case::null_removes_what_was_applied(
    json!([{"name": "a", "tty": true}]), json!([{"name": "a", "tty": null}]), json!([{"name": "a", "tty": true}]), json!([{"name": "a"}])
)]
#[case::an_element_that_is_to_be_removed(
    json!([]), json!([{"name": "a"}, {"name": "x", "$patch": "delete"}]),
    json!([{"name": "x"}, {"name": "a"}, {"name": "y"}]), json!([{"name": "a"}, {"name": "y"}])
)]
#[case::an_element_that_was_to_be_removed(
    json!([{"name": "x", "$patch": "delete"}]), json!([{"name": "a"}]), json!([{"name": "x"}]), json!([{"name": "a"}, {"name": "x"}])
)]
#[case::a_list_that_is_to_be_replaced(
    json!([]), json!([{"$patch": "replace"}, {"name": "a"}]), json!([{"name": "x"}, {"name": "a", "tty": true}]), json!([{"name": "a"}])
)]
#[case::an_object_that_is_to_be_replaced(
    json!([]), json!([{"name": "a", "resources": {"$patch": "replace", "limits": {"cpu": "1"}}}]),
    json!([{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]),
    json!([{"name": "a", "resources": {"limits": {"cpu": "1"}}}])
)]
#[case::an_object_that_is_to_be_removed(
    json!([]), json!([{"name": "a", "resources": {"$patch": "delete"}}]), json!([{"name": "a", "resources": {"limits": {}}}]), json!([{"name": "a"}])
)]
#[case::twice_the_same_key(
    json!([]), json!([{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]), json!([{"name": "x"}]),
    json!([{"name": "a", "image": "1"}, {"name": "a", "image": "2"}])
)]
#[case::no_key(json!([]), json!([{"image": "1"}]), json!([{"name": "x"}]), json!([{"image": "1"}]))]
#[case::no_object(json!([]), json!(["a"]), json!([{"name": "x"}]), json!(["a"]))]
fn containers(
    #[case] original: Value,
    #[case] modified: Value,
    #[case] current: Value,
    #[case] expected: Value,
) {
    let lists = [original, modified, current].map(|list| json!({"containers": list}));
    assert_eq!(of_spec(("v1", "Pod"), lists), json!({"containers": expected}));
}

#[rstest]
#[case::one_of_two_protocols_comes(
    json!([{"port": 53}]), json!([{"port": 53}, {"port": 53, "protocol": "UDP"}]),
    json!([{"port": 53, "protocol": "TCP", "nodePort": 1}]),
    json!([{"port": 53, "protocol": "TCP", "nodePort": 1}, {"port": 53, "protocol": "UDP"}])
)]
#[case::one_of_two_protocols_goes(
    json!([{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]), json!([{"port": 53, "protocol": "UDP"}]),
    json!([{"port": 53, "protocol": "TCP", "nodePort": 1}, {"port": 53, "protocol": "UDP", "nodePort": 2}]),
    json!([{"port": 53, "protocol": "UDP", "nodePort": 2}])
)]
#[case::another_protocol(
    json!([{"port": 53}]), json!([{"port": 53, "protocol": "UDP"}]), json!([{"port": 53, "protocol": "TCP", "nodePort": 1}]),
    json!([{"port": 53, "protocol": "UDP", "nodePort": 1}])
)]
#[case::another_number(
    json!([{"port": 80}]), json!([{"port": 81}]), json!([{"port": 80, "nodePort": 1}, {"port": 443}]),
    json!([{"port": 443}, {"port": 81}])
)]
fn ports_of_a_service(
    #[case] original: Value,
    #[case] modified: Value,
    #[case] current: Value,
    #[case] expected: Value,
) {
    let lists = [original, modified, current].map(|list| json!({"ports": list}));
    assert_eq!(of_spec(("v1", "Service"), lists), json!({"ports": expected}));
}

#[rstest]
#[case::of_others_stay(json!(["a"]), json!(["a"]), json!(["x", "a"]), json!(["x", "a"]))]
#[case::dropped_goes(json!(["a", "b"]), json!(["b"]), json!(["a", "x", "b"]), json!(["x", "b"]))]
#[case::twice(json!([]), json!(["a", "a"]), json!(["x"]), json!(["a", "x"]))]
#[case::no_text(json!([]), json!([{"a": 1}]), json!(["x"]), json!([{"a": 1}]))]
fn finalizers(
    #[case] original: Value,
    #[case] modified: Value,
    #[case] current: Value,
    #[case] expected: Value,
) {
    let [original, modified, current] =
        [original, modified, current].map(|list| json!({"metadata": {"finalizers": list}}));
    let merged = merged(("v1", "ConfigMap"), &original, &modified, &current);
    assert_eq!(merged["metadata"]["finalizers"], expected);
}

#[rstest]
#[case::other_members_go(json!({"type": "Recreate"}), json!({"type": "Recreate"}))]
#[case::unless_none_is_named(json!({}), json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}))]
fn the_strategy_of_a_deployment(#[case] modified: Value, #[case] expected: Value) {
    let current = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
    let specs = [json!({}), json!({"strategy": modified}), json!({"strategy": current})];
    assert_eq!(of_spec(("apps/v1", "Deployment"), specs), json!({"strategy": expected}));
}

#[test]
fn a_first_write_has_no_directives() {
    let wanted = json!({"spec": {"containers": [{"name": "a", "tty": null}, {"name": "b", "$patch": "delete"}, {"$patch": "replace"}],
        "securityContext": {"$patch": "replace", "runAsUser": 1}, "affinity": {"$patch": "delete"}}});
    let expected = json!({"spec": {"containers": [{"name": "a"}], "securityContext": {"runAsUser": 1}}});
    assert_eq!(without_directives(&wanted), expected);
}

/// A quadratic merge would take minutes.
#[test]
fn lists_of_a_hundred_thousand_elements() {
    let list =
        |from: usize| (from..from + 100_000).map(|i| json!({"name": i.to_string()})).collect::<Value>();
    let of_volumes = |list: Value| json!({"volumes": list});
    let merged = of_spec(("v1", "Pod"), [list(0), list(50_000), list(25_000)].map(of_volumes));
    assert_eq!(merged["volumes"].as_array().map(Vec::len), Some(125_000 - 25_000));
    let texts = |from: usize| (from..from + 100_000).map(|i| json!(i.to_string())).collect::<Vec<_>>();
    assert_eq!(
        scalar_list::merge(&texts(0), &texts(50_000), &texts(25_000)).map(|list| list.len()),
        Some(100_000)
    );
}
