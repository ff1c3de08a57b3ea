//! How many requests a plan costs, as the API server's audit log tells.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::json;

use crate::support::audit::{Audit, Request, await_rest, tally};
use crate::support::{Cluster, Interlock, announce, instances, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// A plan of three phases with one ConfigMap each.
const PACKAGE: &str = include_str!("requests/operatorversion.yaml");
const INSTANCES: usize = 10;
/// For one Instance whose plan ends in one pass: its start, three objects, its end, the clear of planExecution, the
/// status that observes it, and two Events. KUDO makes 9, without the last status.
const MOST: usize = 9;

/// Reconciles that this process has counted.
fn reconciles(process: &Interlock) -> usize {
    let Some((200, metrics)) = process.ops("/metrics") else { return 0 };
    let lines = metrics.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

#[track_caller]
fn await_reconciles(process: &Interlock, count: usize) {
    wait_until(&format!("{count} reconciles are counted"), CAP, || {
        let found = reconciles(process);
        if found >= count { Ok(()) } else { Err(format!("{found} are")) }
    });
}

/// Instances go through the plan, one after another; then each is touched, and then the process
/// starts anew.
#[test]
fn a_plan_costs_few_requests_and_a_finished_instance_none() {
    let cluster = Cluster::own(&["--audit"]);
    let Some(audit) = Audit::of(&cluster) else { return };
    let process = Interlock::install(&cluster, &[]);
    let ns = cluster.namespace("requests");
    let user = ns.user("alice");
    user.create_package(ns.name(), PACKAGE);
    let path = |name: &str| ns.path(meta::KUDO_API_VERSION, "instances", name);
    let names: Vec<String> = (0..INSTANCES).map(|i| format!("demo-{i}")).collect();
    for name in &names {
        let object = json!({
            "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": {"name": name},
            "spec": {"operatorVersion": {"name": "three-0.1.0"}},
        });
        user.post(&path(""), &object).ok();
        instances::await_run(&user, name, "deploy", "");
    }
    let settled = || -> Vec<Request> {
        audit.settle(&cluster);
        audit.requests().into_iter().filter(|request| request.namespace == ns.name()).collect()
    };
    let requests = settled();
    announce(&format!("{INSTANCES} Instances, three phases of one ConfigMap each: {:?}", tally(&requests)));
    let of = |name: &str| -> Vec<String> {
        let own = requests.iter().filter(|request| request.name.contains(name));
        own.map(|request| format!("{} {}/{}", request.verb, request.resource, request.name)).collect()
    };
    announce(&format!("{}: {}", names[0], of(&names[0]).join(", ")));
    // A request that fails on a busy machine is repeated, so this need not hold for every one.
    let costs: Vec<Vec<String>> = names.iter().map(|name| of(name)).collect();
    let looks = |cost: &[String]| cost.iter().any(|r| r.starts_with("get ") || r.starts_with("list "));
    let cheap = costs.iter().filter(|cost| cost.len() <= MOST && !looks(cost)).count();
    assert!(cheap * 2 > INSTANCES, "more than {MOST} requests, or a look-up, for most: {costs:#?}");

    // A label concerns nobody, and a finished Instance is not looked at after a restart; what is
    // said in an annotation of ours is looked at.
    let touch = |times: &str| {
        for name in &names {
            let metadata = json!({"labels": {"touched": times}, "annotations": {"kudo.dev/touched": times}});
            user.merge_patch(&path(name), &json!({"metadata": metadata})).ok();
        }
    };
    let before = reconciles(&process);
    touch("once");
    await_reconciles(&process, before + INSTANCES);
    process.terminate();
    process.start();
    process.await_ready();
    touch("twice");
    await_reconciles(&process, INSTANCES);
    let later = settled().split_off(requests.len());
    announce(&format!("after a touch of each, a restart and a touch: {:?}", tally(&later)));
    assert!(later.is_empty(), "a finished Instance costs nothing: {later:#?}");
    await_rest(&cluster, "plans, touches and a restart");
}
