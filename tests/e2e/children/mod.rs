//! KudoOperator tasks: child Instances, from their creation to their removal.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{await_event, await_names, condition, run_of};
use crate::support::interlock::interlock;
use crate::support::{Interlock, wait_until};

mod crashes;
mod dropped;
mod packages;

const CAP: Duration = Duration::from_secs(60);

fn ground(base: &str) -> Ground<'static> {
    Ground::new(Interlock::shared().0, base, &packages::all())
}

/// The data of a ConfigMap.
#[track_caller]
fn data(ground: &Ground<'_>, name: &str) -> Value {
    ground.ns.admin().read(&ground.ns.path("v1", "configmaps", name)).ok()["data"].clone()
}

#[test]
fn a_child_is_made_changed_upgraded_and_goes_with_its_parent() {
    if !Interlock::shared().0.has_workloads() {
        return;
    }
    let ground = ground("children");
    ground.create("web", "web-0.1.0", &json!({"SIZE": "3"}));
    let web = ground.await_plan("web", "deploy", "COMPLETE");
    let child = ground.get("web-db");
    assert_eq!(child["metadata"]["labels"]["kudo.dev/operator"], "db");
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], web["metadata"]["uid"]);
    assert_eq!(child["spec"]["parameters"], json!({"SIZE": "3", "FAIL": "false"}));
    assert_eq!(child["status"]["planStatus"]["deploy"]["status"], "COMPLETE", "{child:#}");
    assert_eq!(data(&ground, "web-db-config"), json!({"size": "3", "version": "0.1.0"}));
    assert_eq!(data(&ground, "web-after"), json!({"size": "3"}));

    let listed = ground.user.kubectl(&["get", "instances", "-l", "kudo.dev/instance=web", "-o", "name"]).ok();
    assert_eq!(listed, "instance.kudo.dev/web-db\n");

    ground.edit("web", &json!({"SIZE": "5"}));
    ground.await_plan("web", "update", "COMPLETE");
    let changed = ground.get("web-db");
    assert_eq!(changed["status"]["planStatus"]["update"]["status"], "COMPLETE", "{changed:#}");
    assert_eq!(run_of(&changed, "deploy"), run_of(&child, "deploy"), "it is not deployed again");
    assert_eq!(data(&ground, "web-db-config"), json!({"size": "5", "version": "0.1.0"}));

    let before = run_of(&ground.get("web"), "update");
    let upgrade = json!({"spec": {"operatorVersion": {"name": "web-0.2.0"}}});
    ground.user.merge_patch(&ground.path("web"), &upgrade).ok();
    ground.await_that("web", "the upgrade is done", |found| {
        let plan = &found["status"]["planStatus"]["update"];
        plan["status"] == "COMPLETE" && run_of(found, "update") != before
    });
    assert_eq!(ground.get("web-db")["spec"]["operatorVersion"]["name"], "db-9.0-0.2.0");
    assert_eq!(data(&ground, "web-db-config"), json!({"size": "5", "version": "0.2.0"}));

    ground.user.delete(&ground.path("web")).ok();
    await_names(&ground.user, "instances.kudo.dev", &[]);
}

#[test]
fn a_child_that_fails_fails_its_parent_until_it_is_corrected() {
    let ground = ground("failing-child");
    ground.create("web", "web-0.1.0", &json!({"FAIL": "true"}));
    let failed = ground.await_plan("web", "deploy", "FATAL_ERROR");
    let told = failed["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0]["message"].as_str();
    let told = told.expect("why the step failed");
    let named = format!("instance {}/web-db plan deploy ended with FATAL_ERROR", ground.ns.name());
    assert!(told.contains(&named) && told.contains("there is no disk"), "{told}");
    assert!(await_event(&ground.ns, "FailedTerminalStateError").contains(&named));
    let after = ground.ns.path("v1", "configmaps", "web-after");
    ground.ns.admin().read(&after).refused(404);

    ground.edit("web", &json!({"FAIL": "false"}));
    ground.await_plan("web", "deploy", "COMPLETE");
    let child = ground.await_plan("web-db", "deploy", "COMPLETE");
    assert_eq!(child["spec"]["parameters"]["FAIL"], "false");
    assert_eq!(condition(&child, "Ready")["status"], "True", "{child:#}");
}

/// What failed is mended outside of both: each goes on where it was.
#[test]
fn a_child_that_failed_is_retried_and_then_its_parent() {
    let ground = ground("retried-child");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-db-config"}});
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &config).ok();
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_plan("web", "deploy", "FATAL_ERROR");
    ground.await_plan("web-db", "deploy", "FATAL_ERROR");
    ground.user.delete(&ground.ns.path("v1", "configmaps", "web-db-config")).ok();
    for name in ["web-db", "web"] {
        let reason = "--reason=the cause is corrected";
        let retry = ["plan", "retry", name, "-n", ground.ns.name(), reason];
        interlock(&ground.user, &retry, "").ok();
        ground.await_plan(name, "deploy", "COMPLETE");
    }
    assert_eq!(data(&ground, "web-after"), json!({"size": "1"}));
}

/// Packages are users: what is frozen is frozen for them, and the step waits until it is not.
#[test]
fn a_child_that_runs_a_plan_of_its_own_is_waited_for() {
    let ground = ground("frozen-child");
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_plan("web", "deploy", "COMPLETE");
    ground.edit("web-db", &json!({"GATED": "true"}));
    ground.await_step("web-db", "update", 1, "IN_PROGRESS");

    ground.edit("web", &json!({"SIZE": "7"}));
    let waits = ground.await_that("web", "the step is tried again", |found| {
        let told = condition(found, "Reconciling");
        told["reason"] == "Retrying" && told["message"].as_str().is_some_and(|m| m.contains("[plan-running]"))
    });
    assert_eq!(waits["status"]["planStatus"]["update"]["phases"][0]["steps"][0]["status"], "ERROR");
    ground.open("web-db");
    ground.await_plan("web", "update", "COMPLETE");
    assert_eq!(data(&ground, "web-db-config")["size"], "7");
    let child = ground.get("web-db");
    assert_eq!(child["spec"]["parameters"]["GATED"], "true", "what a user has set stays");
}

#[test]
fn a_parent_that_is_deleted_while_its_child_runs_goes_with_it() {
    if !Interlock::shared().0.has_workloads() {
        return;
    }
    let ground = ground("deleted-parent");
    ground.create("web", "web-0.1.0", &json!({"GATED": "true"}));
    ground.await_step("web-db", "deploy", 1, "IN_PROGRESS");
    let waits = ground.await_that("web", "it waits for the child", |found| {
        condition(found, "Reconciling")["message"].as_str().is_some_and(|told| told.contains("web-db"))
    });
    let told = condition(&waits, "Reconciling");
    assert_eq!(told["reason"], "Waiting", "{told:#}");
    ground.user.delete(&ground.path("web")).ok();
    await_names(&ground.user, "instances.kudo.dev", &[]);
    let left = ground.ns.admin().read(&ground.ns.path("events.k8s.io/v1", "events", "")).ok().to_string();
    assert!(left.contains("Execution of plan cleanup finished with status COMPLETE"), "{left}");
}

#[test]
fn an_operator_version_that_comes_later_is_waited_for() {
    let ground = ground("late-version");
    let versions = |name: &str| ground.ns.path("kudo.dev/v1beta1", "operatorversions", name);
    let version = ground.user.read(&versions("db-9.0-0.1.0")).ok();
    ground.user.delete(&versions("db-9.0-0.1.0")).ok();
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_that("web", "the version is missing", |found| {
        let told = condition(found, "Reconciling")["message"].as_str().unwrap_or_default();
        told.contains("web-db has not run a plan yet: OperatorVersion")
            && told.contains("db-9.0-0.1.0 is not there")
    });
    let mut again =
        json!({"apiVersion": version["apiVersion"], "kind": version["kind"], "spec": version["spec"]});
    again["metadata"] = json!({"name": "db-9.0-0.1.0"});
    ground.user.post(&versions(""), &again).ok();
    wait_until("the parent is deployed", 2 * CAP, || {
        let found = ground.get("web");
        let plan = &found["status"]["planStatus"]["deploy"];
        if plan["status"] == "COMPLETE" { Ok(()) } else { Err(plan.to_string()) }
    });
}

#[test]
fn packages_that_install_each_other_are_refused() {
    let ground = ground("circle");
    let path = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "");
    let create = |operator: &str, packages: &[&str]| {
        ground.user.post(&path, &packages::installing(operator, packages))
    };
    let refused = create("ring", &["ring"]).refused(422);
    let said = refused["message"].as_str().unwrap_or_default();
    assert!(said.contains("it installs packages in a circle: ring-1 -> ring-1"), "{said}");
    assert!(said.contains("[version-dependencies]"), "{said}");
    create("first", &["second"]).ok();
    wait_until("the first is known", CAP, || {
        // A dry run, so that one that came too early leaves nothing.
        let dry = format!("{path}?dryRun=All");
        let answer = ground.user.post(&dry, &packages::installing("second", &["first"]));
        let known = answer.code == 422 && answer.message().contains("second-1 -> first-1 -> second-1");
        if known { Ok(()) } else { Err(answer.to_string()) }
    });
}
