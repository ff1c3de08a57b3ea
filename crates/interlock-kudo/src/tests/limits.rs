//! Annotations that set time limits.

use interlock_core::admission::WebhookEndpoint;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, idle, kafka, kafka_with, manifest, review};

fn with(mut object: Value, text: &str) -> Value {
    object["metadata"]["annotations"]["interlock.dev/step-deadline"] = json!(text);
    object["metadata"]["annotations"]["interlock.dev/cleanup-patience"] = json!("5m");
    object
}

#[rstest]
#[case::readable("deploy.main.app=10m,1h", None)]
#[case::unreadable("soon", Some("\"soon\" is no time; write one such as 90s, 10m or 1h30m"))]
fn what_cannot_be_read_is_refused(#[case] text: &str, #[case] why: Option<&str>) {
    let world = World::strict();
    let old = kafka("kafka-1", "1.0.0");
    let asked = [
        world.merge(&idle(json!({})), json!({"metadata": with(json!({"metadata": {}}), text)["metadata"]})),
        world.ask(
            WebhookEndpoint::Validate,
            &review("UPDATE", "OperatorVersion", with(old.clone(), text), old),
        ),
    ];
    for said in asked {
        match why {
            None => said.assert_allowed(),
            Some(why) => said.assert_refused("request-unknown", why),
        }
    }
}

#[test]
fn what_was_there_before_may_stay() {
    let old = with(idle(json!({})), "soon");
    World::strict().merge(&old, json!({"metadata": {"annotations": {"other": "1"}}})).assert_allowed();
}

/// The record of its plans has to fit beside it; what is too large already may become smaller.
#[test]
fn an_instance_leaves_room_for_its_record() {
    let large = |size: usize| json!({"MEMORY": "x".repeat(size)});
    let steps: Vec<Value> =
        (0..5_000).map(|n| json!({"name": format!("s{n}"), "tasks": ["apply"]})).collect();
    let plans = json!({"spec": {"plans": {"deploy": {"phases": [{"name": "p", "steps": steps}]}}}});
    let small = World::strict();
    let many = World::strict().with(kafka_with("kafka-1", "1.0.0", plans));
    small.create(manifest(large(1_490_000))).assert_allowed();
    let said = small.create(manifest(large(1_550_000)));
    said.assert_refused("instance-size", "Instance team/prod leaves no room for the record of its plans");
    many.create(manifest(large(1_200_000))).assert_allowed();
    many.create(manifest(large(1_400_000))).assert_refused("instance-size", "");
    let edit = |size: usize| json!({"spec": {"parameters": large(size)}});
    small.merge(&idle(large(1_560_000)), edit(1_550_000)).assert_allowed();
    small.merge(&idle(large(1_540_000)), edit(1_550_000)).assert_refused("instance-size", "");
    small.merge(&idle(large(1_560_000)), json!({"metadata": {"labels": {"a": "b"}}})).assert_allowed();
}

#[test]
fn a_package_of_too_many_steps_is_refused() {
    let steps = |count: usize| -> Vec<Value> {
        (0..count).map(|n| json!({"name": format!("s{n}"), "tasks": ["apply"]})).collect()
    };
    let with = |count: usize| {
        let plans = json!({"backup": {"phases": [{"name": "p", "steps": steps(count)}]}});
        let object = kafka_with("kafka-9", "1.0.0", json!({"spec": {"plans": plans}}));
        World::strict()
            .ask(WebhookEndpoint::Validate, &review("CREATE", "OperatorVersion", object, Value::Null))
    };
    with(4_900).assert_allowed();
    with(5_001).assert_refused("version-invalid", "the plans have 5006 steps, of at most 5000");
}
