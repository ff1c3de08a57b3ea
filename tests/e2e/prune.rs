//! Objects that a package no longer renders.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{await_event, await_run, run_of};
use crate::support::{Cluster, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(120);

/// `pruned-0.1.0`, which asks for it: plan deploy makes a ConfigMap, and with SECOND=true another one and a claim; with
/// GATE=true it waits at a gate afterwards.
const PACKAGE: &str = include_str!("prune/operatorversion.yaml");

fn config_map(ground: &Ground<'_>, name: &str) -> Option<Value> {
    let answer = ground.user.read(&ground.ns.path("v1", "configmaps", name));
    (answer.code != 404).then(|| answer.ok())
}

/// How many ControllerRevisions keep the inventory of an Instance.
fn inventories(ground: &Ground<'_>, name: &str) -> usize {
    let uid = ground.get(name)["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let path = ground.ns.path("apps/v1", "controllerrevisions", "");
    let list = ground.ns.admin().read(&format!("{path}?labelSelector={}%3D{uid}", meta::INVENTORY_OF)).ok();
    list["items"].as_array().map_or(0, Vec::len)
}

#[test]
fn what_a_package_no_longer_renders_goes_where_it_asks_for_it() {
    let ground = Ground::new(Interlock::shared().0, "prune", PACKAGE);
    let mine = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo-mine"}});
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &mine).ok();
    for (name, annotations) in [("demo", json!({})), ("keeps", json!({meta::PRUNE: "false"}))] {
        let mut instance = crate::support::ground::instance(name, "pruned-0.1.0", &json!({}));
        instance["metadata"]["annotations"] = annotations;
        ground.user.post(&ground.path(""), &instance).ok();
        let before = run_of(&ground.await_plan(name, "deploy", "COMPLETE"), "deploy");
        assert!(config_map(&ground, &format!("{name}-second")).is_some());
        ground.edit(name, &json!({"SECOND": "false"}));
        await_run(&ground.user, name, "deploy", &before);
    }
    assert_eq!(config_map(&ground, "demo-second"), None);
    for kept in ["demo-first", "demo-mine", "keeps-first", "keeps-second"] {
        assert!(config_map(&ground, kept).is_some(), "{kept}");
    }
    let event = await_event(&ground.ns, "ObjectKept");
    assert!(event.contains("PersistentVolumeClaim") && event.contains("demo-data"), "{event}");
    ground.user.read(&ground.ns.path("v1", "persistentvolumeclaims", "demo-data")).ok();
    assert_eq!((inventories(&ground, "demo"), inventories(&ground, "keeps")), (1, 0));
}

#[test]
fn a_process_that_is_killed_forgets_nothing_that_it_has_to_remove() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "prune", PACKAGE);
    ground.create("demo", "pruned-0.1.0", &json!({"GATE": "true"}));
    ground.await_step("demo", "deploy", 0, "COMPLETE");
    assert_eq!(inventories(&ground, "demo"), 1, "it lists what was made, before the plan has ended");
    process.kill();
    ground.open("demo");
    process.start();
    process.await_guarding(&cluster);
    let before = run_of(&ground.await_plan("demo", "deploy", "COMPLETE"), "deploy");

    // It is killed while the object is being deleted.
    let second = ground.ns.path("v1", "configmaps", "demo-second");
    ground.user.merge_patch(&second, &json!({"metadata": {"finalizers": ["example.com/held"]}})).ok();
    ground.edit("demo", &json!({"SECOND": "false"}));
    wait_until("the second ConfigMap is being deleted", CAP, || {
        let found = ground.user.read(&second).ok();
        let going = found["metadata"]["deletionTimestamp"].is_string();
        if going { Ok(()) } else { Err(format!("{found:#}")) }
    });
    process.kill();
    ground.user.merge_patch(&second, &json!({"metadata": {"finalizers": null}})).ok();
    process.start();
    process.await_guarding(&cluster);
    await_run(&ground.user, "demo", "deploy", &before);
    assert!(config_map(&ground, "demo-first").is_some());
    assert_eq!(config_map(&ground, "demo-second"), None);
    assert_eq!(inventories(&ground, "demo"), 1);
}
