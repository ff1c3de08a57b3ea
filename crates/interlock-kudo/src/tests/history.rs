//! Interlock owns the history of runs, like the last-applied annotation: restored from the old object.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, ended, idle, manifest, review, running, scheduled};

const KEY: &str = meta::HISTORY;

/// Two failed cleanups, which only Interlock may report.
fn forged() -> String {
    let run = |uid: &str| json!({"plan": "cleanup", "uid": uid, "result": "FATAL_ERROR"});
    json!([run("a"), run("b")]).to_string()
}

fn with_history(mut object: Value) -> Value {
    let run = json!({"plan": "deploy", "uid": "d", "result": "COMPLETE"});
    object["metadata"]["annotations"][KEY] = json!(json!([run]).to_string());
    object
}

/// A user's change is reverted with a warning; a PUT without the history keeps it.
#[rstest]
#[case::changed(json!({"metadata": {"annotations": {KEY: forged()}}}), 1)]
#[case::emptied(json!({"metadata": {"annotations": {KEY: ""}}}), 1)]
#[case::removed(json!({"metadata": {"annotations": {KEY: null}}}), 0)]
#[case::all_removed(json!({"metadata": {"annotations": null}}), 0)]
#[case::beside_the_stamp(json!({"metadata": {"annotations": {KEY: forged(), meta::LAST_APPLIED_SPEC: "{}"}}}), 2)]
fn the_history_is_ours(#[case] patch: Value, #[case] warnings: usize) {
    for old in
        [idle(json!({"NODES": "3"})), running("deploy"), scheduled("deploy"), ended("deploy", "COMPLETE")]
    {
        let old = with_history(old);
        let said = World::strict().merge(&old, patch.clone());
        said.assert_allowed();
        assert_eq!(said.object["metadata"]["annotations"], old["metadata"]["annotations"]);
        assert_eq!(said.warnings().len(), warnings, "{:?}", said.warnings());
    }
}

/// The same beside an edit that is scheduled, and without an old history or any annotation.
#[rstest]
#[case::there(true, true)]
#[case::none_before(false, true)]
#[case::no_annotations(false, false)]
fn a_history_beside_an_edit(#[case] history: bool, #[case] annotations: bool) {
    let mut old = idle(json!({"NODES": "3"}));
    if history {
        old = with_history(old);
    }
    if !annotations {
        old["metadata"].as_object_mut().unwrap().remove("annotations");
        old["status"]["lastApplied"] = Value::Null;
    }
    let edit = json!({"metadata": {"annotations": {KEY: forged()}}, "spec": {"parameters": {"NODES": "5"}}});
    let said = World::strict().merge(&old, edit);
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "update");
    assert_eq!(said.object["metadata"]["annotations"][KEY], old["metadata"]["annotations"][KEY]);
    assert!(said.record.rules.contains(&"history-owner"), "{:?}", said.record.rules);
}

#[test]
fn a_creation_has_none() {
    let mut object = manifest(json!({}));
    object["metadata"]["annotations"] = json!({KEY: forged(), "a": "b"});
    let said = World::strict().create(object);
    said.assert_allowed();
    assert_eq!(said.object["metadata"]["annotations"][KEY], Value::Null);
    assert_eq!(said.object["metadata"]["annotations"]["a"], "b");
    assert_eq!(said.warnings().len(), 1);
}

/// If the mutating webhook was not called, validation denies another history.
#[rstest]
#[case::forged(json!(forged()))]
#[case::dropped(Value::Null)]
fn validation_refuses_another_history(#[case] text: Value) {
    let old = with_history(idle(json!({"NODES": "3"})));
    let mut object = old.clone();
    json_patch::merge(&mut object, &json!({"metadata": {"annotations": {KEY: text}}}));
    let said = World::strict().ask(WebhookEndpoint::Validate, &review("UPDATE", "Instance", object, old));
    said.assert_refused("history-owner", "is not as Interlock's mutating webhook makes it");
}

/// Annotations of others still take precedence over it.
#[test]
fn a_history_without_room_goes() {
    let old = with_history(idle(json!({"NODES": "3"})));
    let mut object = old.clone();
    let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
    let own: usize = annotations.iter().map(|(key, text)| key.len() + text.as_str().unwrap().len()).sum();
    let free = 256 * 1024 - own;
    annotations.insert("big".to_owned(), json!("x".repeat(free)));
    let said = World::strict().update(&old, object);
    said.assert_allowed();
    assert_eq!(said.object["metadata"]["annotations"][KEY], Value::Null);
    assert_ne!(said.object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC], Value::Null);
}
