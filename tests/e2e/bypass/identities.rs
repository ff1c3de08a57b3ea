//! Who may do what: nobody but the bookkeeping user is let past, and by its whole name.

use rstest::rstest;
use serde_json::json;

use super::{Layers, condition, essence, rule};

/// Names and groups that look like somebody's who may.
#[rstest]
fn an_edit_by_any_other_identity_is_refused(#[values(Layers::Both, Layers::Policies)] layers: Layers) {
    let (ground, before) = layers.frozen();
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    let path = ground.path("demo");
    let cluster = layers.cluster();
    let own = "system:serviceaccount:interlock-system:interlock";
    assert_eq!(rule(&ground.ns.admin().merge_patch(&path, &edit)), "plan-running", "cluster-admin");
    let controllers = [
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
    ];
    let lookalikes =
        [format!("{own}-packages"), format!("{own}x"), own[..own.len() - 1].to_owned(), own.to_uppercase()];
    for name in lookalikes.iter().map(String::as_str).chain(controllers) {
        let text = edit.to_string();
        let patch = [
            "patch",
            "instance",
            "demo",
            "--type=merge",
            "-p",
            &text,
            "--as",
            name,
            "--as-group",
            "system:masters",
        ];
        let said = ground.ns.admin().kubectl(&patch).refused();
        assert!(said.contains("[plan-running]"), "{name}: {said}");
    }
    // In the groups of the bookkeeping user, under another name.
    let neighbour = cluster.user(
        "system:serviceaccount:interlock-system:default",
        &["system:serviceaccounts", "system:serviceaccounts:interlock-system", "system:masters"],
    );
    assert_eq!(rule(&neighbour.merge_patch(&path, &edit)), "plan-running");
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// A package is nobody special: its template touches an Instance that is locked, is refused
/// like everybody, and its step waits until the lock is gone.
#[test]
fn a_template_that_touches_a_locked_instance_is_refused_and_its_step_waits() {
    let ground = Layers::Both.ground("template");
    let parent = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "parent"},
        "spec": {"operatorVersion": {"name": "meddling-0.1.0"}},
    });
    ground.user.post(&ground.path(""), &parent).ok();
    ground.await_plan("parent", "deploy", "COMPLETE");
    let child = ground.path("parent-child");
    ground.user.merge_patch(&child, &json!({"spec": {"parameters": {"GATED": "true"}}})).ok();
    let before = ground.await_running("parent-child");

    let edit = json!({"spec": {"parameters": {"VALUE": "second"}}});
    ground.user.merge_patch(&ground.path("parent"), &edit).ok();
    let stalled = ground.await_that("parent", "its step waits", |found| {
        condition(found, "Reconciling")["reason"] == "Retrying"
            || found["status"]["planStatus"]["deploy"]["status"] == "FATAL_ERROR"
    });
    let said = condition(&stalled, "Reconciling")["message"].as_str().unwrap_or_default();
    assert!(said.contains("[plan-running]"), "{stalled:#}");
    assert_eq!(essence(&ground.get("parent-child")), essence(&before));

    ground.open("parent-child");
    ground.await_plan("parent-child", "update", "COMPLETE");
    let done = ground.await_plan("parent", "deploy", "COMPLETE");
    assert_eq!(condition(&done, "Stalled"), &serde_json::Value::Null, "{done:#}");
    assert_eq!(ground.get("parent-child")["spec"]["parameters"]["OTHER"], "second");
}
