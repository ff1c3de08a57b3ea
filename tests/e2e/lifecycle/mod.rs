//! Definitions that come and go under a running process.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::audit::await_rest;
use crate::support::instances::condition;
use crate::support::{Interlock, announce, wait_until};

mod answers;
mod changes;
mod chaos;
mod deletion;
mod idle;
mod missing;
mod off;
mod one_watch;
mod pitfalls;
mod world;

use world::{CAP, World};

/// Neither a KUDO kind nor a kind of a route is there when the process starts.
#[test]
fn a_process_with_nothing_to_guard_is_ready_and_starts_its_work_when_the_definitions_come() {
    let world = World::without_definitions();
    assert!(!world.cluster.has_workloads() || world.state("instances") == "Waiting");
    let (code, report) = world.interlock.ops("/readyz?verbose").expect("an answer");
    assert_eq!(code, 200, "{report}");
    assert_eq!(world.state("routes"), "Running", "it needs nothing");
    world.install("instances");
    world.await_state("instances", "Waiting");
    world.install("operatorversions");
    world.await_state("instances", "Running");
    world.await_event("CapabilityStarted", "instances.kudo.dev");
    let ns = world.cluster.namespace("late");
    let user = ns.user("alice");
    world.create_package(&ns);
    world.create_instance(&ns, "demo", "plain");
    crate::support::instances::await_run(&user, "demo", "deploy", "");
    world.remove("operatorversions");
    world.await_state("instances", "Waiting");
    world.await_event("CapabilityStopped", "operatorversions.kudo.dev");
    assert!(user.get("configmap", "demo-config").is_some(), "unavailable is not empty");
    // What a capability can do without comes and goes beside it.
    let routes = "httproutes.gateway.networking.k8s.io";
    world.install("httproutes");
    world.await_event("KindAvailable", routes);
    world.remove("httproutes");
    world.await_event("KindUnavailable", routes);
    assert_eq!(world.state("routes"), "Running");
    world.assert_same_process();
}

/// A step waits for a definition, says so, and goes on when it is there; asking nobody meanwhile.
#[test]
fn a_step_waits_for_the_definition_of_what_it_makes() {
    let world = World::new();
    let ns = world.cluster.namespace("waits");
    let user = ns.user("alice");
    world.create_package(&ns);
    world.create_instance(&ns, "demo", "filtered");
    let waiting = "EnvoyFilter";
    let found = wait_until("Stalled names the kind", CAP, || {
        let found = user.get("instances.kudo.dev", "demo").ok_or("no Instance")?;
        let stalled = condition(&found, "Stalled");
        let says =
            stalled["status"] == "True" && stalled["message"].as_str().is_some_and(|m| m.contains(waiting));
        if says { Ok(found) } else { Err(format!("{found:#}")) }
    });
    let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0];
    assert!(step["message"].as_str().is_some_and(|m| m.contains(waiting)), "{step:#}");
    world.settle_audit();
    let before = world.requests(ns.name()).len();
    // An Instance of the same package that needs no such kind goes all the way meanwhile.
    world.create_instance(&ns, "other", "plain");
    crate::support::instances::await_run(&user, "other", "deploy", "");
    world.settle_audit();
    let of_demo: Vec<_> =
        world.requests(ns.name()).split_off(before).into_iter().filter(|r| r.contains("/demo")).collect();
    assert!(of_demo.is_empty(), "it waits without asking: {of_demo:#?}");

    let began = Instant::now();
    world.install("envoyfilters");
    crate::support::instances::await_run(&user, "demo", "deploy", "");
    announce(&format!("the plan went on and ended {:?} after its definition came", began.elapsed()));
    assert!(user.get("envoyfilters.networking.istio.io", "demo-filter").is_some());

    // The kind goes: nothing else does, and the same plan waits again.
    world.remove("envoyfilters");
    let uid = user.get("configmap", "demo-config").expect("it stays")["metadata"]["uid"].clone();
    user.merge_patch(
        &ns.path("kudo.dev/v1beta1", "instances", "demo"),
        &json!({"spec": {"planExecution": {"planName": "deploy"}}}),
    )
    .ok();
    wait_until("the plan waits again", CAP, || {
        let found = user.get("instances.kudo.dev", "demo").ok_or("no Instance")?;
        let stalled = condition(&found, "Stalled")["status"] == "True";
        if stalled { Ok(()) } else { Err(format!("{found:#}")) }
    });
    // It is deleted: an output kind that is gone is cleaned up.
    user.kubectl(&["delete", "instance", "demo", "--timeout=60s"]).ok();
    assert_ne!(uid, Value::Null);
    world.assert_same_process();
    await_rest(&world.cluster, "a definition that came and went");
}

/// A kind that may not be watched is read when a plan needs it: neither a crash nor a stall.
#[test]
fn a_custom_kind_is_watched_where_that_is_granted_and_read_where_it_is_not() {
    let world = World::new();
    world.install("envoyfilters");
    let ns = world.cluster.namespace("granted");
    let user = ns.user("alice");
    world.create_package(&ns);
    for (name, granted) in [("read", false), ("watched", true)] {
        if granted {
            world.grant_filters();
        }
        world.create_instance(&ns, name, "filtered");
        crate::support::instances::await_run(&user, name, "deploy", "");
        assert!(user.get("envoyfilters.networking.istio.io", &format!("{name}-filter")).is_some());
        user.merge_patch(
            &ns.path("kudo.dev/v1beta1", "instances", name),
            &json!({"spec": {"parameters": {"VALUE": "other"}}}),
        )
        .ok();
        crate::support::instances::await_run(&user, name, "update", "");
        let filter =
            user.get("envoyfilters.networking.istio.io", &format!("{name}-filter")).expect("it is there");
        assert_eq!(filter["spec"]["workloadSelector"]["labels"]["value"], "other");
    }
    world.assert_same_process();
}

fn metric(process: &Interlock, name: &str, labels: &[&str]) -> Option<f64> {
    let (_, text) = process.ops("/metrics")?;
    let lines = text.lines().filter(|line| line.starts_with(name) && labels.iter().all(|l| line.contains(l)));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).next()
}
