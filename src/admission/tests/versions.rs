//! OperatorVersions: design section 4.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Said, World, idle, kafka, review, running};
use crate::admission::Door;

fn ask(world: &World, operation: &str, object: Value, old: Value) -> Said {
    world.ask(Door::Validate, &review(operation, "OperatorVersion", object, old))
}

fn changed() -> Value {
    super::kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"backup": null}, "parameters": []}}))
}

#[test]
fn frozen_while_an_instance_is_locked() {
    let world = World::strict().with(running("deploy"));
    let said = ask(&world, "UPDATE", changed(), kafka("kafka-1", "1.0.0"));
    said.assert_refused(
        "version-frozen",
        "OperatorVersion team/kafka-1 is frozen while a plan of 1 Instance runs",
    );
    assert!(said.message().contains("prod (plan deploy)"));
    assert_eq!(said.code(), 403);
}

#[test]
fn instances_of_other_namespaces_are_counted_and_not_named() {
    let mut hidden = running("deploy");
    hidden["metadata"]["namespace"] = json!("hidden");
    hidden["metadata"]["name"] = json!("topsecret");
    hidden["spec"]["operatorVersion"]["namespace"] = json!("team");
    let said = ask(&World::strict().with(hidden), "UPDATE", changed(), kafka("kafka-1", "1.0.0"));
    said.assert_refused("version-frozen", "1 more");
    assert!(!said.message().contains("topsecret") && !said.message().contains("hidden"));
}

#[test]
fn a_warning_with_same_plan() {
    let world = World::same_plan().with(running("deploy"));
    let said = ask(&world, "UPDATE", changed(), kafka("kafka-1", "1.0.0"));
    said.assert_allowed();
    assert_eq!(said.warnings(), ["1 Instances of this OperatorVersion run a plan now"]);
}

#[test]
fn a_warning_with_the_number_of_instances_when_nothing_runs() {
    let world = World::strict().with(idle(json!({})));
    let said = ask(&world, "UPDATE", changed(), kafka("kafka-1", "1.0.0"));
    said.assert_allowed();
    assert_eq!(said.warnings(), ["1 Instances refer to this OperatorVersion; the change runs no plan"]);
}

#[rstest]
#[case::labels(json!({"metadata": {"labels": {"a": "b"}}}))]
#[case::nothing(json!({}))]
fn metadata_is_free(#[case] patch: Value) {
    let world = World::strict().with(running("deploy"));
    let said = ask(&world, "UPDATE", super::kafka_with("kafka-1", "1.0.0", patch), kafka("kafka-1", "1.0.0"));
    said.assert_allowed();
    assert!(said.warnings().is_empty());
}

#[rstest]
#[case::in_use(true, false, true)]
#[case::in_use_and_the_namespace_goes(true, true, false)]
#[case::not_in_use(false, false, false)]
fn deletion(#[case] used: bool, #[case] terminating: bool, #[case] refused: bool) {
    let mut world = World::strict();
    if used {
        world = world.with(idle(json!({})));
    }
    if terminating {
        world = world.with(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "team", "deletionTimestamp": "2026-01-02T03:04:05Z"}
        }));
    }
    let said = ask(&world, "DELETE", Value::Null, kafka("kafka-1", "1.0.0"));
    if refused {
        said.assert_refused("version-in-use", "OperatorVersion team/kafka-1 is used by 1 Instance");
        assert_eq!(said.code(), 403);
    } else {
        said.assert_allowed();
    }
}

/// deletecollection: the request has no name, oldObject has.
#[test]
fn deletecollection_goes_by_the_old_object() {
    let world = World::strict().with(idle(json!({})));
    let mut review = review("DELETE", "OperatorVersion", Value::Null, kafka("kafka-1", "1.0.0"));
    review["request"].as_object_mut().unwrap().remove("name");
    world.ask(Door::Validate, &review).assert_refused("version-in-use", "");
}
