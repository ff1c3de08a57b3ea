//! The process dies between what it writes of a parent and of its child; and what was written past admission.

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::dropped::upgrade;
use super::{CAP, Ground, packages};
use crate::support::audit::await_rest;
use crate::support::cut_off::{CutOff, before_each_write};
use crate::support::instances::{await_names, idle};
use crate::support::{Cluster, Interlock, announce, wait_until};

fn runs(found: &Value) -> Vec<Value> {
    let history = found["metadata"]["annotations"][meta::HISTORY].as_str();
    history.map(|text| serde_json::from_str(text).expect("the history")).unwrap_or_default()
}

#[test]
fn parent_and_child_are_deployed_once_whenever_the_process_dies() {
    let cluster = Cluster::own(&["--audit"]);
    let way = CutOff::start(&cluster, &cluster.user("interlock", &[]));
    let process = Interlock::install(&cluster, &[&way.flag()]);
    let writes = before_each_write(|writes| dies(writes, &cluster, &way, &process));
    announce(&format!("parent and child were deployed once by {writes} writes"));
    assert!(writes >= 4, "{writes}");
    let writes = before_each_write(|writes| dies_dropping(writes, &cluster, &way, &process));
    announce(&format!("a child was dropped by {writes} writes"));
    assert!(writes >= 3, "{writes}");
    await_rest(&cluster, "parents and children");
    a_circle_past_admission_ends_the_run(&cluster);
}

/// One parent, with a process that gets through this many writes; whether it died.
fn dies(writes: usize, cluster: &Cluster, way: &CutOff, process: &Interlock) -> bool {
    let ground = Ground::new(cluster, "crash", &packages::all());
    way.after(writes);
    ground.create("web", "web-0.1.0", &json!({}));
    let over = |found: &Value| {
        let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        observed && idle(found) && found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE"
    };
    let died = wait_until("the plan is carried out, or the process is cut off", CAP, || {
        let found = ground.get("web");
        match (way.is_cut(), over(&found)) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            _ => Err(format!("{found:#}")),
        }
    });
    if died {
        way.restart(process);
    }
    way.mend();
    let parent = ground.await_that("web", "it is deployed", over);
    let child = ground.await_that("web-db", "it is deployed", over);
    for found in [&parent, &child] {
        let runs = runs(found);
        assert_eq!(runs.len(), 1, "after {writes} writes: {runs:#?}");
    }
    died
}

/// A parent is upgraded to a version without its child, by a process that gets through this many writes; whether it died.
fn dies_dropping(writes: usize, cluster: &Cluster, way: &CutOff, process: &Interlock) -> bool {
    let ground = Ground::new(cluster, "drop", &packages::all());
    ground.create("web", "web-0.1.0", &json!({}));
    ground.await_plan("web", "deploy", "COMPLETE");
    ground.await_plan("web-db", "deploy", "COMPLETE");
    way.after(writes);
    upgrade(&ground);
    let upgraded = |found: &Value| {
        let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        observed && idle(found) && found["status"]["planStatus"]["update"]["status"] == "COMPLETE"
    };
    let died = wait_until("the child is gone, or the process is cut off", CAP, || {
        let (web, child) = (ground.get("web"), ground.user.read(&ground.path("web-db")));
        match (way.is_cut(), upgraded(&web) && child.code == 404) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            _ => Err(format!("{web:#} {child}")),
        }
    });
    if died {
        way.restart(process);
    }
    way.mend();
    let web = ground.await_that("web", "it is upgraded", upgraded);
    assert_eq!(runs(&web).len(), 2, "after {writes} writes: {:#?}", runs(&web));
    await_names(&ground.user, "instances.kudo.dev", &["instance.kudo.dev/web"]);
    died
}

/// Written while the rules about OperatorVersions were off.
fn a_circle_past_admission_ends_the_run(cluster: &Cluster) {
    let settings = "/apis/interlock.dev/v1alpha1/interlocks/default";
    let rules = |action: &str| json!({"spec": {"rules": [{"group": "versions", "action": action}]}});
    let ground = Ground::new(cluster, "circle", &packages::all());
    cluster.admin().merge_patch(settings, &rules("Off")).ok();
    let path = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "");
    ground.user.post(&path, &packages::installing("first", &["second"])).ok();
    wait_until("the rules are off", CAP, || {
        let answer = ground.user.post(&path, &packages::installing("second", &["first"]));
        if answer.code == 201 { Ok(()) } else { Err(answer.to_string()) }
    });
    ground.create("ring", "first-1", &json!({}));
    let ended = ground.await_plan("ring", "deploy", "FATAL_ERROR");
    let told = ended["status"]["planStatus"]["deploy"]["message"].as_str().unwrap_or_default();
    assert!(told.contains("it installs packages in a circle: first-1 -> second-1 -> first-1"), "{told}");
    ground.user.read(&ground.path("ring-second")).refused(404);
}
