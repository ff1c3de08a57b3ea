//! A later version of the package does not install a child any more.

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::ground;
use crate::support::Interlock;
use crate::support::ground::{Ground, instance};
use crate::support::instances::{await_event, await_names};
use crate::support::interlock::interlock;

/// Moves `web` to the version that installs nothing.
#[track_caller]
pub fn upgrade(ground: &Ground<'_>) {
    let patch = json!({"spec": {"operatorVersion": {"name": "web-0.3.0"}}});
    ground.user.merge_patch(&ground.path("web"), &patch).ok();
}

/// The notes of all Events of the namespace.
fn told(ground: &Ground<'_>) -> String {
    let list = ground.ns.admin().read(&ground.ns.path("events.k8s.io/v1", "events", "")).ok();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|event| event["note"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_child_that_is_not_installed_any_more_goes_with_its_objects() {
    if !Interlock::shared().0.has_workloads() {
        return;
    }
    let ground = ground("dropped-child");
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_plan("web", "deploy", "COMPLETE");
    ground.create("other", "db-9.0-0.1.0", &json!({}));
    ground.await_plan("other", "deploy", "COMPLETE");
    let config = ground.ns.path("v1", "configmaps", "web-db-config");
    ground.user.read(&config).ok();

    upgrade(&ground);
    ground.await_plan("web", "update", "COMPLETE");
    await_names(&ground.user, "instances.kudo.dev", &["instance.kudo.dev/other", "instance.kudo.dev/web"]);
    let event = await_event(&ground.ns, "ChildRemoved");
    let ns = ground.ns.name();
    assert_eq!(
        event,
        format!("Instance {ns}/web-db is deleted: OperatorVersion {ns}/web-0.3.0 no longer installs it")
    );
    assert!(
        told(&ground).contains("Execution of plan cleanup finished with status COMPLETE"),
        "{}",
        told(&ground)
    );
    crate::support::wait_until("its objects are gone", super::CAP, || {
        let answer = ground.user.read(&config);
        if answer.code == 404 { Ok(()) } else { Err(answer.to_string()) }
    });
}

#[test]
fn a_child_outlives_an_upgrade_that_fails() {
    let ground = ground("failed-upgrade");
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_plan("web", "deploy", "COMPLETE");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-alone"}});
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &config).ok();
    upgrade(&ground);
    ground.await_plan("web", "update", "FATAL_ERROR");
    let child = ground.get("web-db");
    assert!(child["metadata"]["deletionTimestamp"].is_null(), "{child:#}");

    ground.user.delete(&ground.ns.path("v1", "configmaps", "web-alone")).ok();
    let reason = "--reason=the cause is corrected";
    interlock(&ground.user, &["plan", "retry", "web", "-n", ground.ns.name(), reason], "").ok();
    ground.await_plan("web", "update", "COMPLETE");
    await_names(&ground.user, "instances.kudo.dev", &["instance.kudo.dev/web"]);
}

/// The owner reference is gone, or there is another one, or it is annotated: it is not ours to delete.
#[test]
fn a_child_that_somebody_has_taken_over_stays() {
    let ground = ground("kept-child");
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_plan("web", "deploy", "COMPLETE");
    let mine = instance("mine", "db-9.0-0.1.0", &json!({}));
    let web = ground.get("web")["metadata"]["uid"].clone();
    let mut owned: Value = mine;
    owned["metadata"]["ownerReferences"] = json!([
        {"apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "name": "web", "uid": web}
    ]);
    ground.user.post(&ground.path(""), &owned).ok();
    ground.await_plan("mine", "deploy", "COMPLETE");
    let keep = json!({"metadata": {"annotations": {meta::KEEP: "the data"}}});
    ground.user.merge_patch(&ground.path("web-db"), &keep).ok();

    upgrade(&ground);
    ground.await_plan("web", "update", "COMPLETE");
    let event = await_event(&ground.ns, "ObjectKept");
    assert!(
        event.contains("Instance") && event.contains("web-db is kept") && event.contains(meta::KEEP),
        "{event}"
    );
    for name in ["web-db", "mine"] {
        let found = ground.get(name);
        assert!(found["metadata"]["deletionTimestamp"].is_null(), "{found:#}");
    }
}
