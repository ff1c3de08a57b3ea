//! OperatorVersions: design section 4.

use interlock_core::admission::WebhookEndpoint;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Said, World, idle, review, running};

fn ask(world: &World, operation: &str, object: Value, old: Value) -> Said {
    world.ask(WebhookEndpoint::Validate, &review(operation, "OperatorVersion", object, old))
}

/// Without the parameter that names a missing plan.
fn kafka(name: &str, version: &str) -> Value {
    let mut object = super::kafka(name, version);
    object["spec"]["parameters"].as_array_mut().unwrap().retain(|p| p["name"] != "GHOST");
    object
}

fn changed() -> Value {
    super::kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"backup": null}, "parameters": []}}))
}

#[test]
fn a_creation_is_validated_reference_by_reference() {
    ask(&World::strict(), "CREATE", kafka("kafka-3", "3.0.0"), Value::Null).assert_allowed();
    let mut object = kafka("kafka-3", "3.0.0");
    object["spec"]["tasks"][0]["spec"]["resources"] = json!(["lost.yaml"]);
    object["spec"]["plans"]["deploy"]["phases"][0]["steps"][0]["tasks"] = json!(["lost"]);
    let said = ask(&World::strict(), "CREATE", object, Value::Null);
    said.assert_refused("version-invalid", "OperatorVersion team/kafka-3 refers to what it does not hold");
    let causes = &said.response["status"]["details"]["causes"];
    assert_eq!(causes[0]["field"], "spec.tasks[0].spec.resources[0]");
    assert_eq!(causes[1]["field"], "spec.plans[deploy].phases[0].steps[0].tasks[0]");
}

/// Existing problems do not block an update, new ones do.
#[test]
fn an_update_is_refused_for_new_problems_only() {
    let world = World::strict();
    let mut old = kafka("kafka-1", "1.0.0");
    old["spec"]["plans"]["deploy"]["phases"][0]["steps"][0]["tasks"] = json!(["lost"]);
    let mut object = old.clone();
    let more = json!({"name": "before", "steps": [{"name": "x", "tasks": ["apply"]}]});
    object["spec"]["plans"]["deploy"]["phases"].as_array_mut().unwrap().insert(0, more);
    let said = ask(&world, "UPDATE", object.clone(), old.clone());
    said.assert_allowed();
    assert_eq!(said.warnings().len(), 1);
    object["spec"]["tasks"] = json!([]);
    ask(&world, "UPDATE", object, old).assert_refused("version-invalid", "");
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
    let said =
        ask(&world, "UPDATE", super::kafka_with("kafka-1", "1.0.0", patch), super::kafka("kafka-1", "1.0.0"));
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
    world.ask(WebhookEndpoint::Validate, &review).assert_refused("version-in-use", "");
}
