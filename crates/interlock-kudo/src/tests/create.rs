//! CREATE: kudo.md section 5, "CREATE", with hole 17 and 18 closed.

use interlock_core::admission::{AdmissionAnswer, CacheWait, WebhookEndpoint, answer};
use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, hash_of, kafka_with, manifest, review};
use crate::instance::change::uid::{ScheduledOn, plan_uid};

fn created_uid(name: &str, spec: &Value) -> String {
    let subject = ScheduledOn { namespace: super::NAMESPACE, name, version: "create" };
    plan_uid(subject, "deploy", &hash_of(spec)).to_string()
}

#[test]
fn row_3_5_6_finalizer_deploy_and_immutable_defaults() {
    let said = World::strict().create(manifest(json!({"NODES": "5"})));
    said.assert_allowed();
    assert_eq!(said.object["metadata"]["finalizers"], json!([meta::FINALIZER]));
    assert_eq!(said.object["spec"]["parameters"], json!({"NODES": "5", "ID": "7"}));
    let spec = &said.object["spec"];
    let uid = created_uid("prod", spec);
    assert_eq!(spec["planExecution"], json!({"planName": "deploy", "uid": uid, "status": "NEVER_RUN"}));
    assert_eq!(said.stamp()["hash"], json!(hash_of(spec)));
    assert_eq!(said.stamp()["spec"]["parameters"], spec["parameters"]);
    assert_eq!(said.stamp().get("uid"), None);
    assert_eq!(said.record.plan.as_deref(), Some("deploy"));
}

#[test]
fn row_3_other_finalizers_stay_and_ours_is_not_doubled() {
    let mut object = manifest(json!({}));
    object["metadata"]["finalizers"] = json!(["a", meta::FINALIZER]);
    assert_eq!(
        World::strict().create(object.clone()).object["metadata"]["finalizers"],
        json!(["a", meta::FINALIZER])
    );
    object["metadata"]["finalizers"] = json!(["a"]);
    assert_eq!(
        World::strict().create(object).object["metadata"]["finalizers"],
        json!(["a", meta::FINALIZER])
    );
}

#[test]
fn row_3_no_finalizer_without_a_cleanup_plan() {
    let plain = kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"cleanup": null}}}));
    let said = World::strict().with(plain).create(manifest(json!({})));
    said.assert_allowed();
    assert_eq!(said.object["metadata"].get("finalizers"), None);
}

/// The name is in a label of everything that the package makes.
#[rstest]
#[case::fits(63, true)]
#[case::too_long(64, false)]
fn a_name_that_is_no_label_value_is_refused_at_creation(#[case] length: usize, #[case] fits: bool) {
    let name = "n".repeat(length);
    let mut object = manifest(json!({}));
    object["metadata"]["name"] = json!(name);
    let said = World::strict().create(object.clone());
    if fits {
        return said.assert_allowed();
    }
    said.assert_refused(
        "instance-name",
        "its name has 64 characters, and the label kudo.dev/instance of its objects takes",
    );
    // One that was stored before stays editable.
    let mut stored = super::idle(json!({"NODES": "3", "ID": "7"}));
    stored["metadata"]["name"] = json!(name);
    World::strict().merge(&stored, json!({"spec": {"parameters": {"NODES": "5"}}})).assert_allowed();
}

#[test]
fn row_4_no_deploy_plan() {
    let plain = kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"deploy": null}}}));
    World::strict().with(plain).create(manifest(json!({}))).assert_refused(
        "plan-unknown",
        "failed to create an Instance team/prod: couldn't find 'deploy' plan in the operatorVersion",
    );
}

/// Row 5 and hole 18: mutation overwrites any planExecution that the user sends, with its status.
#[rstest]
#[case::of_another_plan(json!({"planName": "backup", "uid": "x", "status": "IN_PROGRESS"}))]
#[case::complete(json!({"planName": "deploy", "uid": "x", "status": "COMPLETE"}))]
#[case::empty(json!({}))]
#[case::emptied(json!({"planName": ""}))]
fn row_5_hole_18_plan_execution_is_overwritten(#[case] execution: Value) {
    let mut object = manifest(json!({"ID": "1"}));
    object["spec"]["planExecution"] = execution;
    let said = World::strict().create(object);
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "deploy");
    assert_eq!(said.execution()["status"], "NEVER_RUN");
    assert_eq!(said.execution()["uid"], json!(created_uid("prod", &said.object["spec"])));
}

#[test]
fn a_forged_stamp_is_replaced_with_a_warning() {
    let mut object = manifest(json!({}));
    object["metadata"]["annotations"] = json!({ meta::LAST_APPLIED_SPEC: "{\"v\":1,\"hash\":\"sha256:0\"}" });
    let said = World::strict().create(object);
    assert_eq!(said.stamp()["hash"], json!(hash_of(&said.object["spec"])));
    assert_eq!(said.warnings().len(), 1);
}

#[rstest]
#[case::wrong_type(
    json!({"NODES": "many"}),
    "failed to create an Instance team/prod: parameters are not valid: parameter \"NODES\" has an invalid value \"many\": \
     type is \"integer\" but format of \"many\" is invalid [",
    "spec.parameters.NODES"
)]
#[case::not_in_the_enumeration(
    json!({"SIZE": "huge"}),
    "parameter \"SIZE\" has an invalid value \"huge\": value is \"huge\", but only allowed values are [small large]",
    "spec.parameters.SIZE"
)]
fn row_7_values_are_checked(#[case] parameters: Value, #[case] sentence: &str, #[case] field: &str) {
    let said = World::strict().create(manifest(parameters));
    said.assert_refused("parameter-invalid", sentence);
    assert_eq!(said.response["status"]["details"]["causes"][0]["field"], field);
}

#[test]
fn row_7_required_without_a_default() {
    let required =
        kafka_with("kafka-1", "1.0.0", json!({"spec": {"parameters": [{"name": "A", "required": true}]}}));
    World::strict().with(required).create(manifest(json!({}))).assert_refused(
        "parameter-invalid",
        "failed to create an Instance team/prod: parameters are not valid: parameter \"A\" is required but has no value set",
    );
}

#[test]
fn hole_17_unknown_parameters_are_refused() {
    let said = World::strict().create(manifest(json!({"NODS": "3", "HIDDEN": "s3cret"})));
    said.assert_refused("parameter-unknown", "failed to find parameter \"HIDDEN\" in the OperatorVersion");
    assert_eq!(said.response["status"]["details"]["causes"][1]["field"], "spec.parameters.NODS");
    assert!(!said.response.to_string().contains("s3cret"));
}

#[rstest]
#[case::no_spec(Value::Null)]
#[case::no_reference(json!({"parameters": {}}))]
#[case::empty_reference(json!({"operatorVersion": {}}))]
fn row_2_the_operator_version(#[case] spec: Value) {
    let mut object = manifest(json!({}));
    object["spec"] = spec;
    World::strict().create(object).assert_refused("version-required", "names no OperatorVersion");
}

#[test]
fn its_own_namespace_written_out_is_no_other_namespace() {
    let mut object = manifest(json!({}));
    object["spec"]["operatorVersion"]["namespace"] = json!("team");
    World::strict().create(object).assert_allowed();
}

#[test]
fn a_version_that_the_cache_does_not_show_is_waited_for() {
    let world = World::strict();
    let mut object = manifest(json!({}));
    object["spec"]["operatorVersion"]["name"] = json!("kafka-2");
    let body = serde_json::to_vec(&review("CREATE", "Instance", object, Value::Null)).unwrap();
    for door in WebhookEndpoint::ALL {
        let answer = answer(
            &interlock_core::kinds::guarded(crate::all()),
            door,
            &body,
            &world.view,
            &world.config,
            CacheWait::Wait,
            None,
        )
        .unwrap();
        assert!(
            matches!(answer, AdmissionAnswer::Wait(awaited) if awaited.operator_version == super::key("kafka-2"))
        );
    }
}

/// The mutating call of a CREATE with generateName has no name, the validating call has one.
#[test]
fn generate_name_is_the_name_in_both_phases() {
    let world = World::strict();
    let mut object = manifest(json!({"ID": "1"}));
    object["metadata"] = json!({"generateName": "prod-", "namespace": "team"});
    let mutated = world.ask(WebhookEndpoint::Mutate, &review("CREATE", "Instance", object, Value::Null));
    mutated.assert_allowed();
    assert_eq!(mutated.execution()["uid"], json!(created_uid("prod-", &mutated.object["spec"])));
    let mut object = mutated.object;
    object["metadata"]["name"] = json!("prod-x7f2k");
    object["metadata"]["uid"] = json!("c0ffee");
    world.ask(WebhookEndpoint::Validate, &review("CREATE", "Instance", object, Value::Null)).assert_allowed();
}

/// Differences that mutation should have patched, found by validation.
#[rstest]
#[case::plan_execution("/spec/planExecution", "plan-uid")]
#[case::finalizer("/metadata/finalizers", "finalizer-kept")]
#[case::stamp("/metadata/annotations", "stamp-mismatch")]
#[case::default("/spec/parameters", "mutation-missing")]
fn validation_refuses_what_was_undone(#[case] pointer: &str, #[case] rule: &str) {
    let world = World::strict();
    let mut object = world.create(manifest(json!({"NODES": "5"}))).object;
    *object.pointer_mut(pointer).unwrap() =
        json!(if pointer.ends_with("finalizers") { json!([]) } else { json!({}) });
    let said = world.ask(WebhookEndpoint::Validate, &review("CREATE", "Instance", object, Value::Null));
    said.assert_refused(rule, "is not as Interlock's mutating webhook makes it");
}

#[test]
fn bookkeeping_is_skipped() {
    let world = World::strict();
    let mut review = review("CREATE", "Instance", manifest(json!({"UNKNOWN": "1"})), Value::Null);
    review["request"]["userInfo"]["username"] = json!(meta::CONTROLLER_USER);
    let said = world.ask(WebhookEndpoint::Mutate, &review);
    said.assert_allowed();
    assert_eq!(said.record.verdict.as_str(), "skipped");
}
