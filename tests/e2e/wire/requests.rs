//! What webhooks are shown, by verb and phase.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Call, Wire};
use crate::support::Cluster;

/// The two calls of one write: mutating, validating. The last two: a write soon after another
/// one may first be tried, and judged, on an object that the API server's cache still has.
fn both(wire: &Wire) -> (Call, Call) {
    let mut calls = wire.calls();
    assert!(!calls.is_empty() && calls.len().is_multiple_of(2), "{calls:#?}");
    let validating = calls.pop().unwrap();
    let mutating = calls.pop().unwrap();
    assert!(mutating.path.starts_with("/mutating"), "{}", mutating.path);
    (mutating, validating)
}

fn absent(call: &Call, pointers: &[&str]) {
    for pointer in pointers {
        assert_eq!(call.at(pointer), &Value::Null, "{pointer} of {}", call.review);
    }
}

/// The identity of a new object is not known to a mutating webhook.
#[test]
fn create() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    let mut sent = wire.widget("w", 1);
    sent["metadata"]["uid"] = json!("0e1f7cf8-5b0e-4fd5-a2f6-5b7a2f6d0d5c");
    sent["status"] = json!({"forged": true});
    wire.admin.post(&wire.path(""), &sent).ok();
    let (mutating, validating) = both(&wire);
    absent(&mutating, &["/object/metadata/uid", "/object/metadata/creationTimestamp", "/oldObject"]);
    assert_eq!(mutating.at("/object/status"), &json!({"forged": true}), "the client's status is still there");
    absent(&validating, &["/object/status", "/object/metadata/resourceVersion", "/oldObject"]);
    assert!(validating.at("/object/metadata/uid").is_string());
    assert_ne!(validating.at("/object/metadata/uid"), &sent["metadata"]["uid"]);
    assert_eq!(validating.at("/object/metadata/generation"), 1);
    assert_eq!(mutating.at("/operation"), "CREATE");
    assert_eq!(mutating.at("/options/kind"), "CreateOptions");
}

/// Under generateName a mutating webhook knows no name.
#[test]
fn create_by_generate_name() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    let mut sent = wire.widget("", 1);
    sent["metadata"] = json!({"generateName": "gen-"});
    let made = wire.admin.post(&wire.path(""), &sent).ok();
    let (mutating, validating) = both(&wire);
    absent(&mutating, &["/name", "/object/metadata/name", "/object/metadata/uid"]);
    assert_eq!(mutating.at("/object/metadata/generateName"), "gen-");
    assert_eq!(validating.at("/name"), &made["metadata"]["name"]);
    assert_eq!(validating.at("/object/metadata/name"), &made["metadata"]["name"]);
}

/// A create by server-side apply is a CREATE.
#[test]
fn create_by_server_side_apply() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    let path = format!("{}?fieldManager=test", wire.path("w"));
    wire.admin.server_side_apply(&path, &wire.widget("w", 1)).ok();
    let (mutating, _) = both(&wire);
    assert_eq!(mutating.at("/operation"), "CREATE");
    absent(&mutating, &["/oldObject", "/object/metadata/uid"]);
}

/// A create of a name that is there is shown to webhooks before it fails.
#[test]
fn create_of_an_existing_name_is_shown() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    wire.existing("w");
    wire.admin.post(&wire.path(""), &wire.widget("w", 1)).refused(409);
    let (mutating, _) = both(&wire);
    absent(&mutating, &["/oldObject"]);
}

/// A PUT shows a mutating webhook only what the client sent: identity is in oldObject.
#[test]
fn put() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    let old = wire.existing("w");
    let mut sent = wire.widget("w", 2);
    sent["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    wire.admin.put(&wire.path("w"), &sent).ok();
    let (mutating, validating) = both(&wire);
    absent(
        &mutating,
        &["/object/metadata/uid", "/object/metadata/generation", "/object/metadata/creationTimestamp"],
    );
    assert_eq!(mutating.at("/oldObject/metadata/uid"), &old["metadata"]["uid"]);
    assert_eq!(validating.at("/object/metadata/uid"), &old["metadata"]["uid"]);
    assert_eq!(validating.at("/object/metadata/generation"), 2);

    // Without a resourceVersion: shown to mutation, then refused by the server itself.
    let mutating_only = |calls: Vec<Call>| {
        assert!(calls.last().is_some_and(|call| call.path.starts_with("/mutating")), "{calls:#?}");
    };
    wire.admin.put(&wire.path("w"), &wire.widget("w", 3)).refused(422);
    mutating_only(wire.calls());
    // With an old one: the same, 409.
    wire.admin.put(&wire.path("w"), &sent).refused(409);
    mutating_only(wire.calls());
}

/// Patches show the whole object; generation counts up before validation, for spec changes only.
#[rstest]
#[case::merge_patch("merge")]
#[case::json_patch("json")]
#[case::server_side_apply("apply")]
fn patch(#[case] how: &str) {
    let wire = Wire::new(&["Mutating", "Validating"]);
    let old = wire.existing("w");
    match how {
        "merge" => wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}})),
        "json" => {
            let patch = json!([{"op": "replace", "path": "/spec/number", "value": 2}]);
            wire.admin.json_patch(&wire.path("w"), &patch)
        }
        _ => {
            let path = format!("{}?fieldManager=test&force=true", wire.path("w"));
            wire.admin.server_side_apply(&path, &wire.widget("w", 2))
        }
    }
    .ok();
    let (mutating, validating) = both(&wire);
    assert_eq!(mutating.at("/operation"), "UPDATE");
    for call in [&mutating, &validating] {
        assert_eq!(call.at("/object/metadata/uid"), &old["metadata"]["uid"]);
        assert_eq!(call.at("/oldObject/metadata/generation"), 1);
        assert_eq!(call.at("/name"), "w");
    }
    assert_eq!(mutating.at("/object/metadata/generation"), 1);
    assert_eq!(validating.at("/object/metadata/generation"), 2);

    wire.admin.merge_patch(&wire.path("w"), &json!({"metadata": {"labels": {"a": "b"}}})).ok();
    let (_, validating) = both(&wire);
    assert_eq!(validating.at("/object/metadata/generation"), 2, "a label does not count");

    wire.admin.merge_patch(&wire.path("w"), &json!({})).ok();
    let (mutating, _) = both(&wire);
    assert_eq!(mutating.at("/object"), mutating.at("/oldObject"), "a patch of nothing is shown too");
}

/// DELETE has no object; of a collection it has no name either.
#[test]
fn delete_and_delete_collection() {
    // The garbage collector ends a deletion in the foreground.
    if !Cluster::shared().has_workloads() {
        return;
    }
    let wire = Wire::new(&["Mutating", "Validating"]);
    wire.existing("w");
    wire.admin.delete(&format!("{}?propagationPolicy=Foreground", wire.path("w"))).ok();
    let (mutating, validating) = both(&wire);
    for call in [&mutating, &validating] {
        absent(call, &["/object"]);
        assert_eq!(call.at("/oldObject/metadata/name"), "w");
        assert_eq!(call.at("/options/propagationPolicy"), "Foreground");
    }
    // The garbage collector looks for new kinds twice a minute.
    wire.admin.kubectl(&["wait", "--for=delete", "widget/w", "--timeout=120s"]).ok();

    wire.existing("one");
    wire.existing("two");
    wire.admin.delete(&wire.path("")).ok();
    let mut names: Vec<String> = Vec::new();
    for call in wire.calls() {
        absent(&call, &["/name", "/object"]);
        names.extend(call.at("/oldObject/metadata/name").as_str().map(str::to_owned));
    }
    names.sort();
    names.dedup();
    assert_eq!(names, ["one", "two"]);
}

/// The removal of a finalizer while the object is being deleted is an UPDATE.
#[test]
fn finalizer_removal_while_deleting() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    wire.existing("w");
    wire.admin
        .merge_patch(&wire.path("w"), &json!({"metadata": {"finalizers": ["testbed.interlock.dev/x"]}}))
        .ok();
    wire.admin.delete(&wire.path("w")).ok();
    wire.calls();
    wire.admin.merge_patch(&wire.path("w"), &json!({"metadata": {"finalizers": null}})).ok();
    let (mutating, _) = both(&wire);
    assert_eq!(mutating.at("/operation"), "UPDATE");
    assert!(mutating.at("/object/metadata/deletionTimestamp").is_string());
    absent(&mutating, &["/object/metadata/finalizers"]);
    assert_eq!(mutating.at("/oldObject/metadata/finalizers/0"), "testbed.interlock.dev/x");
}

/// A dry run is said to be one; a write of the status is not ours unless its subresource is named.
#[test]
fn dry_run_and_status() {
    let wire = Wire::new(&["Mutating", "Validating"]);
    wire.existing("w");
    let path = format!("{}?dryRun=All", wire.path("w"));
    wire.admin.merge_patch(&path, &json!({"spec": {"number": 2}})).ok();
    let (mutating, validating) = both(&wire);
    for call in [&mutating, &validating] {
        assert_eq!(call.at("/dryRun"), true);
        assert_eq!(call.at("/options/dryRun"), &json!(["All"]));
    }
    wire.admin.merge_patch(&format!("{}/status", wire.path("w")), &json!({"status": {"a": 1}})).ok();
    assert_eq!(wire.calls().len(), 0);
}

/// What a request looks like as HTTP.
#[test]
fn headers() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": 2}})).ok();
    let call = wire.calls().pop().unwrap();
    assert_eq!(call.path, "/validating?timeout=2s");
    let header = |name: &str| call.headers.get(name).map(|v| v.to_str().unwrap()).unwrap_or_default();
    assert_eq!(header("user-agent"), "kube-apiserver-admission");
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("accept"), "application/json, */*");
    assert!(header("content-length").parse::<u64>().is_ok_and(|length| length > 0));
    assert!(call.headers.get("authorization").is_none());
    assert_eq!(call.review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(call.at("/userInfo/username"), "admin");
}

/// A rapid writer is judged at least as often as it writes: stale first tries are judged too,
/// so that nothing may count calls; each has a uid of its own.
#[test]
fn rapid_writes_are_judged_at_least_once_each() {
    let wire = Wire::new(&["Validating"]);
    wire.existing("w");
    for number in 2..42 {
        wire.admin.merge_patch(&wire.path("w"), &json!({"spec": {"number": number}})).ok();
    }
    let calls = wire.calls();
    assert!(calls.len() >= 40, "{} calls", calls.len());
    let uids: std::collections::BTreeSet<&str> = calls.iter().filter_map(|c| c.at("/uid").as_str()).collect();
    assert_eq!(uids.len(), calls.len());
}
