//! The lock itself: planExecution, the status, what Interlock keeps in metadata.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Layers, essence, rule};

const STAMP: &str = "interlock.dev/last-applied-spec";
const HISTORY: &str = "plan.interlock.dev/history";
const FINALIZER: &str = "kudo.dev.instance.cleanup";

/// A history of runs that nobody but Interlock may write: of two cleanups that failed.
fn forged_history() -> Value {
    let run = |uid: &str| json!({"plan": "cleanup", "uid": uid, "result": "FATAL_ERROR"});
    json!({"metadata": {"annotations": {HISTORY: json!([run("a"), run("b")]).to_string()}}})
}

/// The edits of planExecution of a locked Instance that each layer refuses, and by which rule.
#[rstest]
#[case::status_is_refused(json!({"status": "FATAL_ERROR"}), "plan-status", "plan-override")]
#[case::status_complete_is_refused(json!({"status": "COMPLETE"}), "plan-status", "plan-override")]
#[case::a_new_uid_is_refused(json!({"uid": "11111111-1111-4111-8111-111111111111"}), "plan-override", "plan-override")]
#[case::an_emptied_uid_is_refused(json!({"uid": ""}), "plan-override", "plan-override")]
#[case::another_plan_is_refused(json!({"planName": "backup"}), "plan-override", "plan-override")]
#[case::cleanup_is_refused(json!({"planName": "cleanup"}), "plan-override", "plan-override")]
#[case::an_empty_plan_name_is_a_cancellation_and_refused(json!({"planName": ""}), "plan-cancel", "plan-override")]
#[case::a_removed_plan_name_is_a_cancellation_and_refused(json!({"planName": null}), "plan-cancel", "plan-override")]
fn of_a_running_plan(#[case] execution: Value, #[case] webhook: &str, #[case] policy: &str) {
    for (layers, expected) in [(Layers::Both, webhook), (Layers::Policies, policy)] {
        let (ground, before) = layers.frozen();
        let patch = json!({"spec": {"planExecution": execution}});
        let answer = ground.user.merge_patch(&ground.path("demo"), &patch);
        assert_eq!(rule(&answer), expected, "{layers:?}: {answer}");
        assert_eq!(essence(&ground.get("demo")), essence(&before), "{layers:?}");
    }
}

#[test]
fn plan_execution_set_to_null_or_nothing_is_put_back() {
    let ground = Layers::Both.ground("null");
    let before = ground.running("demo");
    let path = ground.path("demo");
    ground.user.merge_patch(&path, &json!({"spec": {"planExecution": null}})).ok();
    ground.user.json_patch(&path, &json!([{"op": "remove", "path": "/spec/planExecution"}])).ok();
    ground
        .user
        .json_patch(&path, &json!([{"op": "replace", "path": "/spec/planExecution", "value": {}}]))
        .ok();
    assert_eq!(essence(&ground.get("demo")), essence(&before));
    ground.open("demo");
    ground.await_plan("demo", "deploy", "COMPLETE");
}

#[test]
fn plan_execution_set_to_null_is_refused_by_the_policies_alone() {
    let (ground, before) = Layers::Policies.frozen();
    let answer = ground.user.merge_patch(&ground.path("demo"), &json!({"spec": {"planExecution": null}}));
    assert_eq!(rule(&answer), "plan-override");
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// On an idle Instance a plan may be named, and nothing else be pretended.
#[rstest]
fn a_forged_execution_of_an_idle_instance_is_refused(
    #[values(Layers::Both, Layers::Policies, Layers::SamePlan)] layers: Layers,
) {
    let ground = layers.ground("forged");
    let before = ground.deployed("demo");
    let path = ground.path("demo");
    let run = &before["status"]["planStatus"]["deploy"]["uid"];
    let uid = "11111111-1111-4111-8111-111111111111";
    for (execution, rules) in [
        (json!({"planName": "backup", "uid": uid, "status": "COMPLETE"}), &["plan-status"][..]),
        (json!({"planName": "backup", "uid": uid, "status": "IN_PROGRESS"}), &["plan-status"]),
        (json!({"planName": "cleanup", "uid": uid, "status": "NEVER_RUN"}), &["plan-cleanup"]),
        (json!({"uid": uid}), &["plan-override", "plan-status"]),
    ] {
        let answer = ground.user.merge_patch(&path, &json!({"spec": {"planExecution": execution}}));
        assert!(rules.contains(&rule(&answer).as_str()), "{execution}: {answer}");
    }
    let used = json!({"spec": {"planExecution": {"planName": "deploy", "uid": run, "status": "NEVER_RUN"}}});
    let answer = ground.user.merge_patch(&path, &used);
    match layers {
        // The uid is ours to give: the trigger holds, under a new one.
        Layers::Both | Layers::SamePlan => {
            let made = answer.ok();
            assert_ne!(made["spec"]["planExecution"]["uid"], *run, "{made:#}");
        }
        Layers::Policies => assert_eq!(rule(&answer), "plan-uid", "{answer}"),
    }
}

/// RBAC lets this user write the status, and nothing but ours stops a forged COMPLETE.
#[rstest]
fn a_forged_status_is_refused(#[values(Layers::Both, Layers::Policies, Layers::SamePlan)] layers: Layers) {
    let (ground, before) = layers.frozen();
    let rules = json!([{"apiGroups": ["kudo.dev"], "resources": ["instances", "instances/status"],
        "verbs": ["get", "patch", "update"]}]);
    let forger = ground.ns.user_with("forger", &rules);
    let path = format!("{}/status", ground.path("demo"));
    let complete_deploy =
        |object: &mut Value| object["status"]["planStatus"]["deploy"]["status"] = json!("COMPLETE");
    let condition = |type_: &str| {
        let mut conditions = before["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|c| c["type"] != type_);
        conditions.push(json!({"type": type_, "status": "False", "reason": "Forged", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}));
        json!({"status": {"conditions": conditions}})
    };
    let complete = json!({"status": {"planStatus": {"deploy": {"status": "COMPLETE"}}}});
    let apply = json!({"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "demo"},
        "status": complete["status"]});
    let forged = [
        forger.merge_patch(&path, &complete),
        forger.merge_patch(&path, &json!({"status": null})),
        forger.merge_patch(&path, &json!({"status": {"conditions": null}})),
        forger.json_patch(&path, &json!([{"op": "remove", "path": "/status/planStatus/deploy"}])),
        forger.put_edited(&path, complete_deploy),
        forger.server_side_apply(&format!("{path}?fieldManager=x&force=true"), &apply),
        forger.merge_patch(&path, &json!({"status": {"lastApplied": {"hash": "sha256:0"}}})),
        forger.merge_patch(&path, &json!({"status": {"lastApplied": null}})),
        forger.merge_patch(&path, &json!({"status": {"progress": {"plan": "other"}}})),
        forger.merge_patch(&path, &json!({"status": {"requests": {"run": "other"}}})),
        forger.merge_patch(&path, &condition("SpecDrift")),
        forger.merge_patch(&path, &condition("Reconciling")),
        forger.merge_patch(&path, &condition("Ready")),
    ];
    for answer in forged {
        assert_eq!(rule(&answer), "status-owner", "{answer}");
    }
    forger.merge_patch(&path, &condition("Theirs")).ok();
    // Written through the main resource the status is dropped by the API server itself.
    forger.put_edited(&ground.path("demo"), complete_deploy).ok();
    let now = ground.get("demo");
    assert_eq!(essence(&now), essence(&before));
    assert_eq!(now["status"]["planStatus"]["deploy"]["status"], "IN_PROGRESS");
}

/// Only the finalizer is touched: the webhook is not even asked, the policy says no.
#[rstest]
fn our_finalizer_stripped_from_a_locked_instance_is_refused(
    #[values(Layers::Both, Layers::Policies, Layers::SamePlan)] layers: Layers,
) {
    let ground = layers.ground("finalizer");
    let before = ground.running("demo");
    let path = ground.path("demo");
    for patch in
        [json!({"metadata": {"finalizers": null}}), json!({"metadata": {"finalizers": ["example.com/x"]}})]
    {
        assert_eq!(rule(&ground.user.merge_patch(&path, &patch)), "finalizer-kept");
    }
    let remove = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    assert_eq!(rule(&ground.user.json_patch(&path, &remove)), "finalizer-kept");
    ground.user.merge_patch(&path, &json!({"metadata": {"finalizers": [FINALIZER, "example.com/x"]}})).ok();
    ground
        .user
        .merge_patch(&path, &json!({"metadata": {"finalizers": [FINALIZER], "labels": {"a": "b"}}}))
        .ok();
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// Together with what the webhook is asked about, it is put back.
#[test]
fn our_finalizer_stripped_beside_another_change_is_put_back_with_a_warning() {
    let ground = Layers::Both.ground("finalizer");
    let before = ground.running("demo");
    let mut bare = super::manifest(&before);
    bare["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    bare["metadata"]["annotations"] = json!({"example.com/a": "b"});
    let out = ground.user.kubectl_in(&["replace", "-f", "-"], &bare.to_string());
    assert!(out.stderr.contains("Warning: finalizer kudo.dev.instance.cleanup is kept"), "{out}");
    let now = ground.get("demo");
    assert_eq!(essence(&now), essence(&before));
    assert_eq!(now["metadata"]["annotations"]["example.com/a"], "b");
    assert_eq!(now["metadata"]["annotations"][STAMP], before["metadata"]["annotations"][STAMP]);
}

/// The lock is never in an annotation: the stamp stripped or forged frees nothing.
#[test]
fn the_stamp_stripped_or_forged_is_put_back() {
    let ground = Layers::Both.ground("stamp");
    let before = ground.running("demo");
    let path = ground.path("demo");
    let stamp = |found: &Value| found["metadata"]["annotations"][STAMP].clone();
    let forged = json!({"v": 1, "hash": "sha256:0", "spec": {}}).to_string();
    for patch in [
        json!({"metadata": {"annotations": null}}),
        json!({"metadata": {"annotations": {STAMP: null}}}),
        json!({"metadata": {"annotations": {STAMP: forged}}}),
    ] {
        let answer = ground.user.merge_patch(&path, &patch);
        assert_eq!(answer.code, 200, "{answer}");
        assert_eq!(stamp(&answer.body), stamp(&before), "{patch}");
    }
    ground.open("demo");
    let done = ground.await_plan("demo", "deploy", "COMPLETE");
    assert!(stamp(&done).is_string());

    // So is the history of runs, which is there once the run is over.
    let history = |found: &Value| found["metadata"]["annotations"][HISTORY].clone();
    ground.await_that("demo", "the run is in the history", |found| history(found).is_string());
    let before = ground.get("demo");
    let out = ground.user.kubectl(&["annotate", "instance", "demo", "--overwrite", &format!("{HISTORY}=[]")]);
    assert!(out.stderr.contains(&format!("Warning: annotation {HISTORY} is Interlock's own")), "{out}");
    ground.user.merge_patch(&path, &forged_history()).ok();
    ground.user.merge_patch(&path, &json!({"metadata": {"annotations": {HISTORY: null}}})).ok();
    assert_eq!(history(&ground.get("demo")), history(&before));
}

/// Without the webhook nobody puts the stamp back but the reconciler, and the freeze holds.
#[test]
fn the_stamp_stripped_past_the_webhook_unlocks_nothing_and_comes_back() {
    let ground = Layers::Policies.ground("stamp");
    ground.running("demo");
    let path = ground.path("demo");
    ground.user.merge_patch(&path, &json!({"metadata": {"annotations": {STAMP: null}}})).ok();
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    assert_eq!(rule(&ground.user.merge_patch(&path, &edit)), "plan-running");
    let forged = json!({"metadata": {"annotations": {STAMP: "not a stamp"}}});
    assert_eq!(rule(&ground.user.merge_patch(&path, &forged)), "stamp-mismatch");
    assert_eq!(rule(&ground.user.merge_patch(&path, &forged_history())), "history-owner");
    ground.open("demo");
    ground.await_plan("demo", "deploy", "COMPLETE");
    ground
        .await_that("demo", "the stamp is back", |found| found["metadata"]["annotations"][STAMP].is_string());
}
