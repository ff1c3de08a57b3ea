//! A leader that was suspended in the middle of a run finds out that another has gone on with it.

use std::time::Duration;

use serde_json::json;

use crate::support::audit::await_rest;
use crate::support::gate::Gate;
use crate::support::ground::Ground;
use crate::support::{Cluster, Interlock, wait_for, wait_until};

/// Makes a ConfigMap, deletes it, and waits at a Service that has no address.
const PACKAGE: &str = include_str!("takeover.yaml");
const CAP: Duration = Duration::from_secs(90);

/// Its first write of the run is on its way when it is suspended. When it wakes the run is two steps
/// further: it writes nothing over that, and makes nothing again that was deleted since.
#[test]
fn a_leader_that_wakes_in_a_run_leaves_what_its_successor_did() {
    let cluster = Cluster::own(&["--audit"]);
    let gate = Gate::start(&cluster, &cluster.user("interlock", &[]));
    let first = Interlock::install(&cluster, &[&gate.flag()]);
    wait_for("the first leads", CAP, || first.leads());
    let second = Interlock::prepare(&cluster, &[]);
    second.start();
    second.await_ready();

    let ground = Ground::new(&cluster, "handed", PACKAGE);
    gate.close("/instances/demo/status");
    ground.create("demo", "handed-0.1.0", &json!({}));
    wait_for("the first records the start of the run", CAP, || gate.waiting() > 0);
    first.freeze(true);
    wait_for("the second leads", CAP, || second.leads());
    ground.await_step("demo", "deploy", 1, "COMPLETE");
    await_rest(&cluster, "the second waits at the last step");
    let before = ground.get("demo");
    let once = ground.ns.path("v1", "configmaps", "demo-once");
    assert_eq!(ground.user.read(&once).code, 404);

    gate.open();
    first.freeze(false);
    wait_until("the first has stood down and was refused", CAP, || {
        let refused = first.log().lines().any(|line| line.contains("leads=false"));
        if refused && !first.leads() { Ok(()) } else { Err(first.log()) }
    });
    await_rest(&cluster, "the first was woken");
    let after = ground.get("demo");
    let version = |object: &serde_json::Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&after), version(&before), "{:#}", after["status"]);
    assert_eq!(ground.user.read(&once).code, 404, "it was made again");
    assert!(second.leads());

    ground.open("demo");
    ground.await_plan("demo", "deploy", "COMPLETE");
}
