//! Tasks of kinds that the engine does not carry out yet: a warning on the package, and a refusal of what would run
//! into one.

use rstest::rstest;
use serde_json::{Value, json};

use super::{World, idle, kafka, manifest, review};
use crate::admission::WebhookEndpoint;

/// The package with a KudoOperator task in one plan.
pub(super) fn nesting(plan: &str) -> Value {
    let mut object = kafka("kafka-1", "1.0.0");
    object["spec"]["parameters"].as_array_mut().unwrap().retain(|p| p["name"] != "GHOST");
    let child = json!({"name": "certs", "kind": "KudoOperator", "spec": {"package": "zookeeper", "operatorVersion": "1"}});
    object["spec"]["tasks"].as_array_mut().unwrap().push(child);
    let steps = &mut object["spec"]["plans"][plan]["phases"][0]["steps"];
    steps.as_array_mut().unwrap().push(json!({"name": "certs", "tasks": ["certs"]}));
    object
}

const SENTENCE: &str =
    "plan deploy reaches task certs of kind KudoOperator, which this Interlock does not carry out";

#[test]
fn a_creation_that_would_run_into_one_is_refused() {
    let refused = World::strict().with(nesting("deploy")).create(manifest(json!({})));
    refused
        .assert_refused("task-unsupported", &format!("failed to create an Instance team/prod: {SENTENCE}"));
    World::strict().with(nesting("backup")).create(manifest(json!({}))).assert_allowed();
}

/// A change is refused by the plan that it triggers.
#[rstest]
#[case::triggered(json!({"parameters": {"PASSWORD": "new"}}), "deploy", false)]
#[case::named(json!({"planExecution": {"planName": "deploy"}}), "deploy", false)]
#[case::of_another_plan(json!({"parameters": {"PASSWORD": "new"}}), "backup", true)]
#[case::another_is_named(json!({"planExecution": {"planName": "update"}}), "deploy", true)]
fn an_update_is_refused_by_what_it_runs(
    #[case] spec: Value,
    #[case] nesting_plan: &str,
    #[case] allowed: bool,
) {
    let world = World::strict().with(nesting(nesting_plan));
    let said = world.merge(&idle(json!({"NODES": "3"})), json!({"spec": spec}));
    match allowed {
        true => said.assert_allowed(),
        false => said.assert_refused("task-unsupported", SENTENCE),
    }
}

/// What is being deleted always goes: a cleanup that meets one ends by its own limit.
#[test]
fn a_deletion_is_not_held_up() {
    let world = World::strict().with(nesting("cleanup"));
    let old = super::deleted(idle(json!({})));
    let cleanup = json!({"spec": {"planExecution": {"planName": "cleanup"}}});
    assert_ne!(world.merge(&old, cleanup).rule(), "task-unsupported");
}

#[rstest]
#[case::with_one(nesting("backup"), true)]
#[case::with_none(kafka("kafka-1", "1.0.0"), false)]
fn the_package_is_written_with_a_warning(#[case] object: Value, #[case] warned: bool) {
    let said = World::strict()
        .ask(WebhookEndpoint::Validate, &review("CREATE", "OperatorVersion", object, Value::Null));
    let warnings = said.warnings();
    let found =
        warnings.iter().any(|text| text.contains("does not carry out these tasks: certs (KudoOperator)"));
    assert_eq!(found, warned, "{warnings:?}");
}
