//! UPDATE of a locked Instance: design section 4, and kudo.md section 5 rows 4.1 to 4.7 and 5.5.

use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{RUN, World, kafka, manifest, ours, running, scheduled};

fn world() -> World {
    World::strict().with(kafka("kafka-2", "2.0.0"))
}

fn same_plan() -> World {
    World::same_plan().with(kafka("kafka-2", "2.0.0"))
}

/// Frozen: no change of operatorVersion or parameters, in any state of the run.
#[rstest]
#[case::row_4_1_other_plan(
    json!({"parameters": {"NODES": "5"}}),
    "plan 'deploy' is scheduled (or running) and an update would trigger a different plan 'update'"
)]
#[case::same_plan(
    json!({"parameters": {"PASSWORD": "n3w"}}),
    "the spec is frozen while plan 'deploy' is scheduled (or running)"
)]
#[case::removed(
    json!({"parameters": {"PASSWORD": null}}),
    "the spec is frozen while plan 'deploy' is scheduled (or running)"
)]
#[case::unknown(
    json!({"parameters": {"NODS": "1"}}),
    "the spec is frozen while plan 'deploy' is scheduled (or running)"
)]
#[case::row_4_2_upgrade(
    json!({"operatorVersion": {"name": "kafka-2"}}),
    "upgrade to new OperatorVersion {  kafka-2    } while a plan 'deploy' is scheduled (or running) is not allowed"
)]
#[case::upgrade_to_what_is_not_there(
    json!({"operatorVersion": {"name": "kafka-9"}}),
    "upgrade to new OperatorVersion {  kafka-9    } while a plan 'deploy' is scheduled (or running) is not allowed"
)]
#[case::whole_spec_gone(json!(null), "while a plan 'deploy' is scheduled (or running)")]
fn strict_freeze(#[case] spec: Value, #[case] sentence: &str) {
    for old in [running("deploy"), scheduled("deploy")] {
        let said = world().merge(&old, json!({"spec": spec}));
        said.assert_refused("plan-running", sentence);
        assert!(said.message().starts_with("failed to update Instance team/prod: "));
        assert_eq!(said.record.plan.as_deref(), Some("deploy"));
    }
}

/// The lock: every state of the two fields that hold it.
#[rstest]
#[case::scheduled_without_a_record("deploy", RUN, &[], true)]
#[case::record_of_another_run("deploy", RUN, &[("deploy", "other", "COMPLETE")], true)]
#[case::pending("deploy", RUN, &[("deploy", RUN, "PENDING")], true)]
#[case::in_progress("deploy", RUN, &[("deploy", RUN, "IN_PROGRESS")], true)]
#[case::error("deploy", RUN, &[("deploy", RUN, "ERROR")], true)]
#[case::never_run("deploy", RUN, &[("deploy", RUN, "NEVER_RUN")], true)]
#[case::unknown_word("deploy", RUN, &[("deploy", RUN, "WHATEVER")], true)]
#[case::complete("deploy", RUN, &[("deploy", RUN, "COMPLETE")], false)]
#[case::fatal("deploy", RUN, &[("deploy", RUN, "FATAL_ERROR")], false)]
#[case::complete_of_another_plan("deploy", RUN, &[("backup", RUN, "COMPLETE")], true)]
#[case::no_uid("deploy", "", &[("deploy", "", "COMPLETE")], true)]
#[case::idle("", "", &[("deploy", RUN, "COMPLETE")], false)]
#[case::running_and_not_named("", "", &[("deploy", RUN, "IN_PROGRESS")], true)]
#[case::complete_and_another_running(
    "deploy", RUN, &[("deploy", RUN, "COMPLETE"), ("backup", "b", "ERROR")], true
)]
fn the_lock(
    #[case] plan: &str,
    #[case] uid: &str,
    #[case] entries: &[(&str, &str, &str)],
    #[case] locked: bool,
) {
    let mut old = super::idle(json!({"NODES": "3"}));
    old["spec"]["planExecution"] = match plan {
        "" => json!({}),
        plan => json!({"planName": plan, "uid": uid, "status": "IN_PROGRESS"}),
    };
    old["status"]["planStatus"] = entries
        .iter()
        .map(|(plan, uid, status)| ((*plan).to_owned(), json!({"name": plan, "uid": uid, "status": status})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let said = world().merge(&old, json!({"spec": {"parameters": {"NODES": "4"}}}));
    assert_eq!(said.allowed(), !locked, "{}", said.message());
}

/// Absent, null and `{}` are unset: a re-sync of an unchanged manifest cancels nothing.
#[rstest]
fn a_resync_of_the_manifest_succeeds_and_cancels_nothing(
    #[values(json!(null), json!({}), json!("absent"))] execution: Value,
    #[values(true, false)] strict: bool,
) {
    let world = if strict { world() } else { same_plan() };
    let old = running("deploy");
    let mut object = manifest(json!({"NODES": "3", "PASSWORD": "s3cret"}));
    if execution != json!("absent") {
        object["spec"]["planExecution"] = execution;
    }
    // A PUT: no annotation, no finalizer, no planExecution.
    object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    let said = world.update(&old, object);
    said.assert_allowed();
    assert_eq!(said.execution(), &old["spec"]["planExecution"]);
    assert_eq!(said.object["metadata"]["finalizers"], json!([meta::FINALIZER]));
    assert_eq!(said.object["metadata"]["annotations"], old["metadata"]["annotations"]);
    assert_eq!(said.record.plan.as_deref(), Some("deploy"));
}

#[rstest]
#[case::row_4_6_cancel(
    json!({"planName": ""}),
    "plan-cancel",
    "cancelling currently scheduled (or running) plan 'deploy' is not supported"
)]
#[case::row_4_6_cancel_whole(
    json!({"planName": "", "uid": "", "status": ""}),
    "plan-cancel",
    "cancelling currently scheduled (or running) plan 'deploy' is not supported"
)]
#[case::row_4_6_cancel_by_removal(
    json!({"planName": null}),
    "plan-cancel",
    "cancelling currently scheduled (or running) plan 'deploy' is not supported"
)]
#[case::row_4_5_override(
    json!({"planName": "backup", "uid": "u"}),
    "plan-override",
    "overriding currently scheduled (or running) plan 'deploy' with 'backup' is not supported"
)]
#[case::abandon_complete(
    json!({"status": "COMPLETE"}),
    "plan-status",
    "planExecution.status is written by Interlock only"
)]
#[case::abandon_fatal(
    json!({"status": "FATAL_ERROR"}),
    "plan-status",
    "planExecution.status is written by Interlock only"
)]
#[case::status_removed(
    json!({"status": null}),
    "plan-status",
    "planExecution.status is written by Interlock only"
)]
fn in_both_modes(#[case] execution: Value, #[case] rule: &str, #[case] sentence: &str) {
    for world in [world(), same_plan()] {
        let said = world.merge(&running("deploy"), json!({"spec": {"planExecution": execution}}));
        said.assert_refused(rule, &format!("failed to update Instance team/prod: {sentence}"));
    }
}

#[rstest]
#[case::changed(json!({"uid": "5c8bb3fd-6d5b-4c3c-9a5e-1f8a2bbd7f10"}))]
#[case::emptied(json!({"uid": ""}))]
#[case::removed(json!({"uid": null}))]
fn row_5_5_another_uid_restarts_with_same_plan_only(#[case] execution: Value) {
    let patch = json!({"spec": {"planExecution": execution}});
    world().merge(&running("deploy"), patch.clone()).assert_refused(
        "plan-override",
        "restarting currently scheduled (or running) plan 'deploy' is not supported",
    );
    let old = running("deploy");
    let said = same_plan().merge(&old, patch);
    said.assert_allowed();
    let uid = ours("deploy", &old["spec"]);
    assert_eq!(said.execution(), &json!({"planName": "deploy", "uid": uid, "status": "NEVER_RUN"}));
}

#[test]
fn row_5_2_same_plan_restarts_what_a_parameter_triggers_again() {
    let old = running("deploy");
    let said = same_plan().merge(&old, json!({"spec": {"parameters": {"PASSWORD": "n3w"}}}));
    said.assert_allowed();
    let uid = ours("deploy", &said.object["spec"]);
    assert_eq!(said.execution(), &json!({"planName": "deploy", "uid": uid, "status": "NEVER_RUN"}));
    assert_eq!(said.stamp()["hash"], json!(super::hash_of(&said.object["spec"])));
}

#[rstest]
#[case::row_4_1(
    json!({"parameters": {"NODES": "5"}}),
    "plan-running",
    "plan 'deploy' is scheduled (or running) and an update would trigger a different plan 'update'"
)]
#[case::row_4_2(
    json!({"operatorVersion": {"name": "kafka-2"}}),
    "plan-running",
    "upgrade to new OperatorVersion {  kafka-2    } while a plan 'deploy' is scheduled (or running) is not allowed"
)]
#[case::values_are_checked(
    json!({"parameters": {"PASSWORD": "n3w", "NODES": "many"}}),
    "parameter-invalid",
    "parameter \"NODES\" has an invalid value \"many\""
)]
#[case::unknown(json!({"parameters": {"NODS": "1"}}), "parameter-unknown", "failed to find parameter \"NODS\"")]
fn same_plan_refuses_everything_else(#[case] spec: Value, #[case] rule: &str, #[case] sentence: &str) {
    same_plan().merge(&running("deploy"), json!({"spec": spec})).assert_refused(rule, sentence);
}

#[test]
fn labels_and_annotations_change_during_a_run() {
    let patch = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
    let said = world().merge(&running("deploy"), patch);
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

#[test]
fn our_finalizer_is_put_back_during_a_run_with_a_warning() {
    let world = world();
    let mut object = running("deploy");
    object["metadata"]["finalizers"] = json!(["other"]);
    let said = world.update(&running("deploy"), object);
    assert_eq!(said.object["metadata"]["finalizers"], json!(["other", meta::FINALIZER]));
    assert_eq!(said.warnings().len(), 1);
}

/// Removing an undefined parameter triggers nothing; the policies see a change all the same.
#[test]
fn same_plan_refuses_the_removal_of_what_nobody_defines() {
    let mut old = running("deploy");
    old["spec"]["parameters"]["STRAY"] = json!("x");
    same_plan()
        .merge(&old, json!({"spec": {"parameters": {"STRAY": null}}}))
        .assert_refused("plan-running", "the spec is frozen while plan 'deploy' is scheduled (or running)");
}
