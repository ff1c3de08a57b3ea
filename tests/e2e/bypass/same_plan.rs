//! `--freeze=same-plan`: KUDO's freeze to the letter on a locked Instance. What triggers the running
//! plan restarts it, and nothing else is different.

use rstest::rstest;
use serde_json::{Value, json};

use super::writes::WRITES;
use super::{Layers, essence, manifest, rule};

fn run(found: &Value) -> &Value {
    &found["spec"]["planExecution"]["uid"]
}

/// GATED has the trigger `deploy`, which runs: each verb starts it anew, on the new value.
#[test]
fn a_change_that_triggers_the_running_plan_restarts_it_by_every_verb() {
    let ground = Layers::SamePlan.ground("restart");
    let path = ground.path("demo");
    let mut before = ground.running("demo");
    for (i, write) in WRITES.into_iter().enumerate() {
        // Another word for true each time: the gate stays closed.
        let gated = ["1", "t", "T", "TRUE", "True"][i];
        let found = ground.get("demo");
        let answer = write(&ground.user, &path, &found, &json!({"GATED": gated}));
        assert_eq!(answer.code, 200, "{answer}");
        assert_eq!(answer.body["spec"]["planExecution"]["planName"], "deploy", "{answer}");
        assert_ne!(run(&answer.body), run(&before), "{answer}");
        before = ground.await_that("demo", "the new run waits at its gate", |found| {
            let entry = &found["status"]["planStatus"]["deploy"];
            entry["uid"] == *run(&answer.body) && entry["phases"][0]["steps"][1]["status"] == "IN_PROGRESS"
        });
    }
    let answer = ground.user.merge_patch(&path, &json!({"spec": {"parameters": {"GATED": "false"}}})).ok();
    let done = ground.await_plan("demo", "deploy", "COMPLETE");
    assert_eq!(done["status"]["planStatus"]["deploy"]["uid"], *run(&answer));
    assert_eq!(done["spec"]["parameters"], json!({"GATED": "false"}));
}

/// SIZE and OTHER trigger `update`.
#[test]
fn a_change_that_triggers_another_plan_or_package_is_refused_by_every_verb() {
    let (ground, before) = Layers::SamePlan.frozen();
    let path = ground.path("demo");
    for write in WRITES {
        for (parameters, expected) in [
            (json!({"GATED": "true", "SIZE": "large"}), "plan-running"),
            (json!({"GATED": "true", "OTHER": "some"}), "plan-running"),
            (json!({"GATED": "1", "OTHER": "some"}), "plan-multiple"),
        ] {
            let answer = write(&ground.user, &path, &ground.get("demo"), &parameters);
            assert_eq!(rule(&answer), expected, "{answer}");
        }
    }
    let upgrade = json!({"spec": {"operatorVersion": {"name": "meddling-0.1.0"}}});
    assert_eq!(rule(&ground.user.merge_patch(&path, &upgrade)), "plan-running");
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

#[rstest]
#[case::an_emptied_uid(json!({"uid": ""}))]
#[case::no_uid(json!({"uid": null}))]
#[case::another_uid(json!({"uid": "11111111-1111-4111-8111-111111111111"}))]
fn another_uid_restarts_the_running_plan(#[case] execution: Value) {
    let ground = Layers::SamePlan.ground("uid");
    let before = ground.running("demo");
    let patch = json!({"spec": {"planExecution": execution}});
    let made = ground.user.merge_patch(&ground.path("demo"), &patch).ok();
    let given = run(&made).as_str().unwrap_or_default();
    assert!(!given.is_empty() && run(&made) != run(&before) && *run(&made) != execution["uid"], "{made:#}");
    ground.await_that("demo", "the new run is recorded", |found| {
        found["status"]["planStatus"]["deploy"]["uid"] == *run(&made)
    });
    ground.open("demo");
    ground.await_plan("demo", "deploy", "COMPLETE");
}

/// What strict refuses of planExecution and same-plan does not name.
#[rstest]
#[case::status(json!({"status": "FATAL_ERROR"}), "plan-status")]
#[case::another_plan(json!({"planName": "backup"}), "plan-override")]
#[case::cleanup(json!({"planName": "cleanup"}), "plan-override")]
#[case::an_empty_plan_name(json!({"planName": ""}), "plan-cancel")]
#[case::a_removed_plan_name(json!({"planName": null}), "plan-cancel")]
fn the_rest_of_plan_execution_is_refused_as_ever(#[case] execution: Value, #[case] expected: &str) {
    let (ground, before) = Layers::SamePlan.frozen();
    let answer =
        ground.user.merge_patch(&ground.path("demo"), &json!({"spec": {"planExecution": execution}}));
    assert_eq!(rule(&answer), expected, "{answer}");
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

#[test]
fn a_resync_of_an_unchanged_manifest_cancels_nothing() {
    let ground = Layers::SamePlan.ground("resync");
    let before = ground.running("demo");
    let values = before["spec"]["parameters"].clone();
    for write in WRITES {
        let answer = write(&ground.user, &ground.path("demo"), &ground.get("demo"), &values);
        assert_eq!(answer.code, 200, "{answer}");
        assert_eq!(essence(&answer.body), essence(&before), "{answer}");
    }
    ground.user.kubectl_in(&["apply", "-f", "-"], &manifest(&before).to_string()).ok();
    ground.user.merge_patch(&ground.path("demo"), &json!({"spec": {"planExecution": null}})).ok();
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// Anyone may name `cleanup` while the Instance is being deleted.
#[test]
fn cleanup_of_what_is_being_deleted_may_be_set_by_anyone() {
    let ground = Layers::SamePlan.ground("cleanup");
    ground.deployed("demo");
    let path = ground.path("demo");
    let finalizers = ground.get("demo")["metadata"]["finalizers"].clone();
    let mut held = finalizers.as_array().cloned().unwrap_or_default();
    held.push(json!("example.com/held"));
    ground.user.merge_patch(&path, &json!({"metadata": {"finalizers": held}})).ok();
    let cleanup = json!({"spec": {"planExecution": {"planName": "cleanup"}}});
    assert_eq!(rule(&ground.user.merge_patch(&path, &cleanup)), "plan-cleanup");
    ground.user.delete(&path).ok();
    ground.await_that("demo", "cleanup has run, and only the other finalizer is left", |found| {
        found["metadata"]["finalizers"] == json!(["example.com/held"])
    });
    ground.user.merge_patch(&format!("{path}?dryRun=All"), &cleanup).ok();
    let backup = json!({"spec": {"planExecution": {"planName": "backup"}}});
    assert_eq!(rule(&ground.user.merge_patch(&path, &backup)), "instance-deleting");
    ground.user.merge_patch(&path, &json!({"metadata": {"finalizers": null}})).ok();
}

/// A version in use changes with a warning, and the run ends: none mixes two packages.
#[test]
fn a_change_of_a_version_in_use_is_a_warning() {
    let ground = Layers::SamePlan.ground("version");
    ground.running("demo");
    let patch = json!({"spec": {"version": "0.1.1"}}).to_string();
    let out = ground.user.kubectl(&["patch", "operatorversion", "gated-0.1.0", "--type=merge", "-p", &patch]);
    assert_eq!(out.code, 0, "{out}");
    assert!(out.stderr.contains("Warning: "), "{out}");
    ground.await_plan("demo", "deploy", "FATAL_ERROR");
}
