//! Deletion in all its forms, also of what stands around an Instance.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{CAP, Ground, Layers, essence, instance, rule};
use crate::support::{announce, count, wait_until};

/// DELETE is not guarded: the run ends, cleanup runs, and the new Instance is one of its own.
#[test]
fn replace_by_force_during_a_run_ends_it_and_deploys_anew() {
    // The garbage collector removes the children of the former.
    if !Layers::Both.cluster().has_workloads() {
        return;
    }
    let ground = Layers::Both.ground("force");
    let before = ground.running("demo");
    ground.open("demo");
    let text = instance("demo", &json!({"SIZE": "large"})).to_string();
    ground.user.kubectl_in(&["replace", "--force", "--timeout=60s", "-f", "-"], &text).ok();
    let after = ground.await_plan("demo", "deploy", "COMPLETE");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_ne!(
        after["status"]["planStatus"]["deploy"]["uid"],
        before["status"]["planStatus"]["deploy"]["uid"]
    );
    let children = ["demo-before", "demo-after"];
    wait_until("every child is the new Instance's", CAP, || {
        for name in children {
            let child = ground.user.read(&ground.ns.path("v1", "configmaps", name));
            let owner = &child.body["metadata"]["ownerReferences"][0]["uid"];
            if *owner != after["metadata"]["uid"] {
                return Err(child.to_string());
            }
        }
        Ok(())
    });
    assert_eq!(
        ground.data("demo-before"),
        ground.data("demo-after").map(|mut d| {
            d["plan"] = json!("deploy");
            d
        })
    );
}

/// A POST of a name that is taken, also by what is going away, is the API server's to refuse.
#[test]
fn creation_over_a_locked_instance_is_a_conflict_and_changes_nothing() {
    let (ground, before) = Layers::Both.frozen();
    let answer = ground.user.post(&ground.path(""), &instance("demo", &json!({"SIZE": "large"})));
    assert_eq!(answer.body["reason"], "AlreadyExists", "{answer}");
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// Each item is admitted with its own oldObject, and without a name in the request.
#[test]
fn deletecollection_of_locked_instances_is_admitted_and_ends_their_runs() {
    let ground = Layers::Both.ground("collection");
    for name in ["one", "two"] {
        ground.running(name);
    }
    ground.deployed("three");
    let before: Vec<_> = ["one", "two", "three"].map(|name| ground.get(name)).to_vec();
    ground.user.delete(&format!("{}?dryRun=All", ground.path(""))).ok();
    let after: Vec<_> = ["one", "two", "three"].map(|name| ground.get(name)).to_vec();
    assert_eq!(before, after, "a dry run");
    ground.user.delete(&ground.path("")).ok();
    wait_until("all are gone", CAP, || {
        let list = ground.user.read(&ground.path("")).ok();
        if list["items"].as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(list.to_string()) }
    });
    for name in ["one", "two", "three"] {
        let events = ground.user.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"]).ok();
        assert!(
            events.contains("Execution of plan cleanup finished with status COMPLETE"),
            "{name}: {events}"
        );
    }
}

/// No exemption for what is being deleted (CVE-2023-34091): the spec stays, labels do not matter,
/// and our finalizer comes off when cleanup has run.
#[test]
fn an_edit_of_an_instance_that_is_being_deleted_is_refused_and_labels_are_not() {
    for layers in [Layers::Both, Layers::Policies] {
        let ground = layers.ground("deleting");
        let mut held = instance("demo", &json!({}));
        held["metadata"]["finalizers"] = json!(["example.com/held"]);
        ground.user.post(&ground.path(""), &held).ok();
        ground.await_plan("demo", "deploy", "COMPLETE");
        let path = ground.path("demo");
        ground.user.delete(&path).ok();
        ground.await_that("demo", "cleanup has run", |found| {
            found["metadata"]["finalizers"] == json!(["example.com/held"])
        });
        let uid = "11111111-1111-4111-8111-111111111111";
        for patch in [
            json!({"spec": {"parameters": {"SIZE": "large"}}}),
            json!({"spec": {"operatorVersion": {"name": "meddling-0.1.0"}}}),
        ] {
            assert_eq!(rule(&ground.user.merge_patch(&path, &patch)), "instance-deleting", "{layers:?}");
        }
        let cleanup =
            json!({"spec": {"planExecution": {"planName": "cleanup", "uid": uid, "status": "NEVER_RUN"}}});
        assert_eq!(rule(&ground.user.merge_patch(&path, &cleanup)), "plan-cleanup", "{layers:?}");
        ground.user.merge_patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).ok();
        ground.user.merge_patch(&path, &json!({"metadata": {"finalizers": null}})).ok();
        wait_until("it is gone", CAP, || match ground.user.read(&path) {
            answer if answer.code == 404 => Ok(()),
            answer => Err(answer.to_string()),
        });
    }
}

/// Nothing of ours holds a namespace up: 10 of them, 100 in `make soak`, each with a running plan.
#[test]
fn namespaces_with_running_plans_go() {
    // The namespace controller empties them.
    if !Layers::Both.cluster().has_workloads() {
        return;
    }
    let many = count(10, 100);
    let grounds: Vec<Ground<'_>> = (0..many).map(|_| Layers::Both.ground("going")).collect();
    for ground in &grounds {
        ground.user.post(&ground.path(""), &instance("demo", &json!({"GATED": "true"}))).ok();
    }
    for ground in &grounds {
        ground.await_running("demo");
    }
    let began = Instant::now();
    let admin = grounds[0].ns.admin();
    for ground in &grounds {
        admin.delete(&format!("/api/v1/namespaces/{}", ground.ns.name())).ok();
    }
    for ground in &grounds {
        // The namespace controller empties ten at a time, which is all that a hundred wait for.
        let left = Duration::from_secs(60.max(2 * many as u64)).saturating_sub(began.elapsed());
        let path = format!("/api/v1/namespaces/{}", ground.ns.name());
        wait_until("the namespace is gone", left, || match admin.read(&path) {
            answer if answer.code == 404 => Ok(()),
            answer => Err(format!("{answer}; {}", admin.read(&ground.path("")))),
        });
    }
    announce(&format!("{many} namespaces with running plans were gone after {:?}", began.elapsed()));
}
