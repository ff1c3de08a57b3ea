//! What Interlock writes for itself and the API server refuses is seen on the object that it is about.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::flavor::{data_plane, define_data_planes, env, with_env};
use crate::support::denying_policy::DenyingPolicy;
use crate::support::ground::{Ground, instance};
use crate::support::instances::{await_event, condition};
use crate::support::{Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);
const PACKAGE: &str = include_str!("rejections/operatorversion.yaml");
const FROZEN: &str = "frozen for the audit";

/// A policy that denies updates of a resource. `probe` is a path to which a dry-run patch is denied once it is in force.
fn freeze(ns: &Namespace<'_>, (group, version, resource): (&str, &str, &str), probe: &str) -> DenyingPolicy {
    let rule = json!({
        "apiGroups": [group], "apiVersions": [version], "operations": ["UPDATE"], "resources": [resource],
    });
    let policy = DenyingPolicy::apply(ns, &rule, FROZEN, None);
    wait_until("updates are denied", CAP, || {
        let tried = json!({"metadata": {"annotations": {"tried": "1"}}, "status": {"tried": "1"}});
        let answer = ns.admin().merge_patch(&format!("{probe}?dryRun=All"), &tried);
        if answer.to_string().contains(FROZEN) { Ok(()) } else { Err(answer.to_string()) }
    });
    policy
}

#[test]
fn a_status_of_an_instance_that_is_denied_is_told_of_and_written_later() {
    let ground = Ground::new(Interlock::shared().0, "frozen", PACKAGE);
    ground.create("demo", "refused-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let probe = format!("{}/status", ground.path("demo"));
    let frozen = freeze(&ground.ns, ("kudo.dev", "v1beta1", "instances/status"), &probe);
    ground.create("late", "refused-0.1.0", &json!({}));
    let note = await_event(&ground.ns, "DeniedByAdmission");
    assert!(note.contains("not written") && note.contains(FROZEN), "{note}");
    drop(frozen);
    ground.await_plan("late", "deploy", "COMPLETE");
}

/// An Instance that is pruned has its inventory in a ControllerRevision, which is written before anything else.
#[test]
fn a_plan_whose_inventory_is_refused_is_stalled_and_goes_on_later() {
    let ground = Ground::new(Interlock::shared().0, "no-inventory", PACKAGE);
    ground.ns.forbid("controllerrevisions.apps");
    let mut instance = instance("demo", "refused-0.1.0", &json!({}));
    instance["metadata"]["annotations"] = json!({"interlock.dev/prune": "true"});
    ground.user.apply(&instance.to_string());
    let found = ground.await_that("demo", "it is stalled", |found| {
        let stalled = condition(found, "Stalled");
        stalled["status"] == "True" && stalled["reason"] == "QuotaExceeded"
    });
    let said = condition(&found, "Stalled")["message"].to_string();
    assert!(said.contains("not written") && said.contains("no-controllerrevisions.apps"), "{said}");
    ground.ns.admin().kubectl(&["delete", "resourcequota", "-n", ground.ns.name(), "--all"]).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
    ground.await_that("demo", "nothing stalls it", |found| condition(found, "Stalled").is_null());
}

#[test]
fn a_live_spec_that_a_quota_keeps_from_its_revision_is_told_of_and_kept_later() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("unkept");
    let user = ns.user("alice");
    ns.forbid("controllerrevisions.apps");
    let mut plane = data_plane("large", &env("kong:3.9", "traditional"), true);
    plane["spec"]["deployment"]["podTemplateSpec"]["metadata"] =
        json!({"annotations": {"filler": "x".repeat(40 * 1024)}});
    user.apply(&plane.to_string());
    let note = await_event(&ns, "QuotaExceeded");
    assert!(note.contains("ControllerRevision") && note.contains("no-controllerrevisions.apps"), "{note}");
    ns.admin().kubectl(&["delete", "resourcequota", "-n", ns.name(), "--all"]).ok();
    wait_until("its live spec is kept", CAP, || {
        let found = user.read(&ns.path("apps/v1", "controllerrevisions", "")).ok();
        let is_empty = found["items"].as_array().is_none_or(Vec::is_empty);
        if is_empty { Err("no ControllerRevision".to_owned()) } else { Ok(()) }
    });
}

#[test]
fn a_source_of_a_flavor_that_cannot_be_labelled_is_told_of_on_the_gateway() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("unlabelled");
    let user = ns.user("alice");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "router"}, "data": {"flavor": "traditional"},
    });
    user.apply(&map.to_string());
    let path = ns.path("v1", "configmaps", "router");
    let frozen = freeze(&ns, ("", "v1", "configmaps"), &path);
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let sourced = with_env("kong:3.9", json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]));
    user.apply(&data_plane("edge", &sourced, true).to_string());
    let note = await_event(&ns, "DeniedByAdmission");
    assert!(note.contains("not guarded") && note.contains(FROZEN), "{note}");
    drop(frozen);
    wait_until("it is labelled", CAP, || {
        let found: Value = user.read(&path).ok();
        let label = &found["metadata"]["labels"][meta::FLAVOR_SOURCE];
        if label.is_null() { Err(found.to_string()) } else { Ok(()) }
    });
}
