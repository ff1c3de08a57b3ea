//! UPDATE of an unlocked Instance: kudo.md section 5, "UPDATE", rows 0, 2, 4 and 5, with the
//! holes closed.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::meta;
use interlock_core::kinds::static_lister::StaticLister;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, ended, hash_of, idle, kafka_with, manifest, ours, review};

fn base() -> Value {
    idle(json!({"NODES": "3", "PASSWORD": "s3cret", "ID": "7"}))
}

/// Row 0: neither spec nor annotation of ours changes.
#[rstest]
#[case::label(json!({"metadata": {"labels": {"a": "b"}}}))]
#[case::annotation(json!({"metadata": {"annotations": {"a": "b"}}}))]
#[case::other_finalizer(json!({"metadata": {"finalizers": [meta::FINALIZER, "other"]}}))]
#[case::our_finalizer_on_an_idle_instance(json!({"metadata": {"finalizers": null}}))]
#[case::owner(json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}]}}))]
fn row_0_metadata_passes_without_looking_anything_up(#[case] patch: Value) {
    // This world has no OperatorVersion.
    let mut world = World::strict();
    world.view = StaticLister::of(crate::all());
    let said = world.merge(&base(), patch);
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

/// Row 0: a spec that is never parsed may have any contents.
#[test]
fn metadata_only_updates_never_parse_a_spec() {
    let mut old = base();
    old["spec"]["parameters"] = json!(17);
    World::strict().merge(&old, json!({"metadata": {"labels": {"a": "b"}}})).assert_allowed();
}

/// Rows 2e and 5.2: the plan that parameters trigger.
#[rstest]
#[case::no_trigger_runs_update(json!({"NODES": "5"}), "update")]
#[case::own_trigger(json!({"PASSWORD": "n3w"}), "deploy")]
#[case::added(json!({"BACKUP_FILE": "f"}), "backup")]
#[case::removed(json!({"PASSWORD": null}), "deploy")]
#[case::removed_without_trigger(json!({"NODES": null}), "update")]
#[case::a_trigger_outweighs_none(json!({"NODES": "5", "BACKUP_FILE": "f"}), "backup")]
#[case::several_of_one_plan(json!({"NODES": "5", "MEMORY": "2Gi"}), "update")]
fn row_5_2_the_triggered_plan_is_scheduled_and_stamped(#[case] parameters: Value, #[case] plan: &str) {
    let old = base();
    let said = World::strict().merge(&old, json!({"spec": {"parameters": parameters}}));
    said.assert_allowed();
    let uid = ours(plan, &said.object["spec"]);
    assert_eq!(said.execution(), &json!({"planName": plan, "uid": uid, "status": "NEVER_RUN"}));
    assert_eq!(said.stamp()["hash"], json!(hash_of(&said.object["spec"])));
    assert_eq!(said.stamp()["previous"]["hash"], json!(hash_of(&old["spec"])));
    assert_eq!(said.stamp()["uid"], "c0ffee");
    assert_eq!(said.record.plan.as_deref(), Some(plan));
}

#[rstest]
#[case::both(json!({"NODES": "5", "BACKUP_FILE": "f"}), Some("NODES: plan 'update' carries them out after plan 'backup'"))]
#[case::triggers_alone(json!({"BACKUP_FILE": "f"}), None)]
#[case::none_has_a_trigger(json!({"NODES": "5", "MEMORY": "2Gi"}), None)]
fn what_no_trigger_names_is_owed(#[case] parameters: Value, #[case] warned: Option<&str>) {
    let said = World::strict().merge(&base(), json!({"spec": {"parameters": parameters}}));
    said.assert_allowed();
    let warnings = said.warnings();
    assert_eq!(warnings.len(), usize::from(warned.is_some()), "{warnings:?}");
    assert!(warned.is_none_or(|text| warnings[0].contains(text)), "{warnings:?}");
}

#[test]
fn row_2e_the_fallback_of_update_is_deploy() {
    let plain = kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"update": null}}}));
    let said = World::strict().with(plain).merge(&base(), json!({"spec": {"parameters": {"NODES": "5"}}}));
    assert_eq!(said.execution()["planName"], "deploy");
}

#[test]
fn row_2e_no_plan_at_all() {
    let plain = kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"update": null, "deploy": null}}}));
    let said = World::strict().with(plain).merge(&base(), json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_refused(
        "plan-unknown",
        "failed to update Instance team/prod: couldn't find any plans that would be triggered by the update",
    );
}

#[rstest]
#[case::row_2b_unknown(
    json!({"NODS": "5"}),
    "parameter-unknown",
    "failed to update Instance team/prod: failed to find parameter \"NODS\" in the OperatorVersion"
)]
#[case::row_2c_changed(
    json!({"ID": "8"}),
    "parameter-immutable",
    "failed to check immutable parameters for Instance team/prod: parameter 'ID' is immutable but was changed from '7' to '8'"
)]
#[case::row_2c_set_for_the_first_time(
    json!({"ZONE": "a"}),
    "parameter-immutable",
    "parameter 'ZONE' is immutable but was changed [parameter-immutable]"
)]
#[case::hole_15_removed(
    json!({"ID": null}),
    "parameter-immutable",
    "parameter 'ID' is immutable but its value '7' was removed"
)]
#[case::row_2d_invalid(
    json!({"NODES": "many"}),
    "parameter-invalid",
    "failed to validate parameters for Instance team/prod: parameter \"NODES\" has an invalid value \"many\""
)]
#[case::row_2e_missing_plan(
    json!({"GHOST": "1"}),
    "plan-unknown",
    "failed to update Instance team/prod: param GHOST defined trigger plan ghost, but plan not defined in operatorversion"
)]
#[case::row_2e_several(
    json!({"RESTORE_FILE": "a", "BACKUP_FILE": "b"}),
    "plan-multiple",
    "failed to update Instance team/prod: triggering multiple plans: [[backup restore]] at once is not allowed"
)]
#[case::hole_19_cleanup_by_a_parameter(
    json!({"CLEAN": "1"}),
    "plan-cleanup",
    "failed to update Instance team/prod: only the controller schedules the 'cleanup' plan when the instance is deleted"
)]
fn row_2_refused_parameters(#[case] parameters: Value, #[case] rule: &str, #[case] sentence: &str) {
    let said = World::strict().merge(&base(), json!({"spec": {"parameters": parameters}}));
    said.assert_refused(rule, sentence);
    assert_eq!(said.code(), 422);
}

#[test]
fn hole_16_a_known_parameter_that_is_removed_with_an_unknown_one_counts() {
    let old = idle(json!({"PASSWORD": "s3cret", "GONE": "1"}));
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"PASSWORD": null, "GONE": null}}}));
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "deploy");
}

#[test]
fn removing_only_unknown_parameters_runs_no_plan_and_is_stamped() {
    let old = idle(json!({"PASSWORD": "s3cret", "GONE": "1"}));
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"GONE": null}}}));
    said.assert_allowed();
    assert_eq!(said.execution(), &Value::Null);
    assert_eq!(said.stamp()["hash"], json!(hash_of(&said.object["spec"])));
}

/// Hole 21: fields of the reference that do not identify an OperatorVersion.
#[rstest]
#[case::kind(json!({"kind": "OperatorVersion"}))]
#[case::own_namespace(json!({"namespace": "team"}))]
#[case::uid(json!({"uid": "u", "apiVersion": "kudo.dev/v1beta1"}))]
fn hole_21_a_cosmetic_change_of_the_reference_is_nothing(#[case] reference: Value) {
    let old = base();
    let said = World::strict().merge(&old, json!({"spec": {"operatorVersion": reference}}));
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

/// Trap 3: empty objects in the merge patches of KUDO's client.
#[test]
fn empty_objects_of_the_client_change_nothing() {
    let patch = json!({"spec": {"operatorVersion": {}, "parameters": {}, "planExecution": {}}});
    let said = World::strict().merge(&base(), patch);
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

/// Row 5.3: a plan that is triggered directly.
#[rstest]
#[case::as_kudo_does(json!({"planName": "backup", "uid": "5c8bb3fd-6d5b-4c3c-9a5e-1f8a2bbd7f10"}))]
#[case::without_uid(json!({"planName": "backup"}))]
#[case::as_scheduled(json!({"planName": "backup", "uid": "5c8bb3fd-6d5b-4c3c-9a5e-1f8a2bbd7f10", "status": "NEVER_RUN"}))]
fn row_5_3_a_plan_is_triggered_directly(#[case] execution: Value) {
    let old = base();
    let said = World::strict().merge(&old, json!({"spec": {"planExecution": execution}}));
    said.assert_allowed();
    let uid = ours("backup", &old["spec"]);
    assert_eq!(said.execution(), &json!({"planName": "backup", "uid": uid, "status": "NEVER_RUN"}));
    // The annotation stays the same, as the spec does.
    assert_eq!(said.object["metadata"]["annotations"], old["metadata"]["annotations"]);
}

#[rstest]
#[case::row_2a(json!({"planName": "ghost", "uid": "u"}), "plan-unknown", "plan ghost does not exist")]
#[case::row_4_8(
    json!({"planName": "cleanup", "uid": "u"}),
    "plan-cleanup",
    "only the controller schedules the 'cleanup' plan when the instance is deleted"
)]
#[case::hole_18_status(
    json!({"planName": "backup", "uid": "u", "status": "COMPLETE"}),
    "plan-status",
    "planExecution.status is written by Interlock only"
)]
#[case::uid_alone(json!({"uid": "u"}), "plan-override", "planExecution.planName is missing")]
fn refused_triggers(#[case] execution: Value, #[case] rule: &str, #[case] sentence: &str) {
    let said = World::strict().merge(&base(), json!({"spec": {"planExecution": execution}}));
    said.assert_refused(rule, &format!("failed to update Instance team/prod: {sentence}"));
}

#[test]
fn row_4_7_a_trigger_together_with_a_parameter() {
    let patch =
        json!({"spec": {"parameters": {"NODES": "5"}, "planExecution": {"planName": "backup", "uid": "u"}}});
    World::strict().merge(&base(), patch).assert_refused(
        "plan-and-edit",
        "failed to update Instance team/prod: triggering one plan '' directly and through parameter update 'backup' is not allowed",
    );
}

/// Design 4: our own pass over a direct trigger still counts as the user's.
#[test]
fn our_pass_over_a_trigger_and_an_edit_by_another_webhook_is_refused() {
    let world = World::strict();
    let old = base();
    let mut object =
        world.merge(&old, json!({"spec": {"planExecution": {"planName": "backup", "uid": "u"}}})).object;
    object["spec"]["parameters"]["NODES"] = json!("5");
    world.update(&old, object).assert_refused("plan-and-edit", "triggering one plan");
}

/// Design 4: our pass over an edit that another webhook has changed since is overwritten.
#[test]
fn our_pass_over_an_edit_that_another_webhook_changes_is_overwritten() {
    let world = World::strict();
    let old = base();
    let mut object = world.merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}})).object;
    assert_eq!(object["spec"]["planExecution"]["planName"], "update");
    object["spec"]["parameters"]["PASSWORD"] = json!("n3w");
    // Validation detects that mutation was not repeated.
    let stale =
        world.ask(WebhookEndpoint::Validate, &review("UPDATE", "Instance", object.clone(), old.clone()));
    stale.assert_refused("plan-uid", "is not as Interlock's mutating webhook makes it");
    let said = world.update(&old, object.clone());
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "deploy");
    assert_eq!(said.execution()["uid"], json!(ours("deploy", &said.object["spec"])));
    assert_eq!(
        said.warnings(),
        ["no trigger names a plan for NODES: plan 'update' carries them out after plan 'deploy'"]
    );
    // And when the other webhook takes the edit back, nothing is scheduled at all.
    object["spec"]["parameters"] = old["spec"]["parameters"].clone();
    let said = world.update(&old, object);
    said.assert_allowed();
    assert_eq!(said.execution(), &json!({}));
    assert_eq!(said.stamp()["hash"], json!(hash_of(&old["spec"])));
}

/// Design 4: an edit that comes between the end of a run and the clear is accepted.
#[rstest]
#[case::complete("COMPLETE")]
#[case::failed("FATAL_ERROR")]
fn between_the_end_and_the_clear(#[case] status: &str) {
    let world = World::strict();
    let old = ended("deploy", status);
    let said = world.merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "update");
    // By a manifest without planExecution too.
    let mut object = old.clone();
    object["spec"] = manifest(json!({"NODES": "5", "PASSWORD": "s3cret"}))["spec"].clone();
    assert_eq!(world.update(&old, object).execution()["planName"], "update");
    // Without an edit the old value is restored, for the controller to clear.
    let mut object = old.clone();
    object["spec"].as_object_mut().unwrap().remove("planExecution");
    assert_eq!(world.update(&old, object).execution(), &old["spec"]["planExecution"]);
    // Row 5.4: clearing it is no cancellation.
    let said =
        world.merge(&old, json!({"spec": {"planExecution": {"planName": "", "uid": "", "status": ""}}}));
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
    // A trigger that copies the old uid is a trigger.
    let said = world.merge(&old, json!({"spec": {"planExecution": {"planName": "backup"}}}));
    assert_eq!(said.execution()["planName"], "backup");
    assert_eq!(said.execution()["uid"], json!(ours("backup", &old["spec"])));
}

#[test]
fn a_manifest_that_carries_an_old_execution_along_schedules_nothing() {
    let old = base();
    let mut object = old.clone();
    let earlier = ours("deploy", &manifest(json!({"NODES": "1"}))["spec"]);
    object["spec"]["planExecution"] = json!({"planName": "deploy", "uid": earlier, "status": "NEVER_RUN"});
    let said = World::strict().update(&old, object);
    said.assert_allowed();
    assert_eq!(said.execution(), &json!({}));
}

#[test]
fn a_version_that_is_gone_is_named() {
    let mut world = World::strict();
    world.view = StaticLister::of(crate::all());
    let said = world.merge(&base(), json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    assert_eq!(
        said.warnings(),
        ["OperatorVersion team/kafka-1 is not there: nothing is carried out until it is"]
    );
}

#[test]
fn bookkeeping_is_skipped() {
    let world = World::strict();
    let mut object = base();
    object["spec"]["planExecution"] = json!({"planName": "cleanup", "uid": "u", "status": "COMPLETE"});
    let mut review = review("UPDATE", "Instance", object, base());
    review["request"]["userInfo"]["username"] = json!(meta::CONTROLLER_USER);
    assert_eq!(world.ask(WebhookEndpoint::Mutate, &review).record.verdict.as_str(), "skipped");
    // A name that is empty or only starts like the bookkeeping user's is not skipped.
    for name in
        ["", "system:serviceaccount:interlock-system:interlock-x", "system:serviceaccount:interlock-system"]
    {
        review["request"]["userInfo"]["username"] = json!(name);
        assert!(!world.ask(WebhookEndpoint::Mutate, &review).allowed());
    }
}
