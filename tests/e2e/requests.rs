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
/// status that observes it, and one Event. KUDO makes 9, without the last status.
const MOST: usize = 8;

/// A plan that makes a child Instance, whose plan makes a ConfigMap, and then a ConfigMap.
const FAMILY: &str = include_str!("../../benches/plans/family.yaml");
/// What KUDO makes for such a parent and its child together.
const MOST_OF_FAMILY: usize = 19;

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

/// The requests of each Instance, and of what is named after it, are at most so many, and at most so many of them
/// look something up.
#[track_caller]
fn assert_cheap(plan: &str, names: &[String], requests: &[Request], most: usize, looks: usize) {
    announce(&format!("{} Instances, {plan}: {:?}", names.len(), tally(requests)));
    let of = |name: &String| -> Vec<String> {
        let own = requests.iter().filter(|request| request.name.contains(name.as_str()));
        own.map(|request| format!("{} {}/{}", request.verb, request.resource, request.name)).collect()
    };
    // A request that fails on a busy machine is repeated, so this need not hold for every one.
    let costs: Vec<Vec<String>> = names.iter().map(of).collect();
    announce(&format!("{}: {}", names[0], costs[0].join(", ")));
    let looked =
        |cost: &[String]| cost.iter().filter(|r| r.starts_with("get ") || r.starts_with("list ")).count();
    let cheap = costs.iter().filter(|cost| cost.len() <= most && looked(cost) <= looks).count();
    assert!(cheap * 2 > names.len(), "more than {most} requests, or {looks} look-ups, for most: {costs:#?}");
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
    let run_all = |base: &str, version: &str| -> Vec<String> {
        let names: Vec<String> = (0..INSTANCES).map(|i| format!("{base}-{i}")).collect();
        for name in &names {
            let object = json!({
                "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": {"name": name},
                "spec": {"operatorVersion": {"name": version}},
            });
            user.post(&path(""), &object).ok();
            instances::await_run(&user, name, "deploy", "");
        }
        names
    };
    let names = run_all("demo", "three-0.1.0");
    // The last status and the Event of a run come after its end.
    let settled = || -> Vec<Request> {
        await_rest(&cluster, "what was done so far");
        audit.requests().into_iter().filter(|request| request.namespace == ns.name()).collect()
    };
    let requests = settled();
    assert_cheap("three phases of one ConfigMap each", &names, &requests, MOST, 0);

    user.create_package(ns.name(), FAMILY);
    let before = requests.len();
    let parents = run_all("parent", "parent-0.1.0");
    let family = settled().split_off(before);
    assert_cheap("a child Instance", &parents, &family, MOST_OF_FAMILY, MOST_OF_FAMILY);
    let before = before + family.len();

    // A label concerns nobody, and a finished Instance is not looked at after a restart; what is
    // said in an annotation of ours is looked at.
    let touch = |times: &str| {
        for name in &names {
            let metadata = json!({"labels": {"touched": times}, "annotations": {"kudo.dev/touched": times}});
            user.merge_patch(&path(name), &json!({"metadata": metadata})).ok();
        }
    };
    let counted = reconciles(&process);
    touch("once");
    await_reconciles(&process, counted + INSTANCES);
    process.terminate();
    process.start();
    process.await_ready();
    touch("twice");
    await_reconciles(&process, INSTANCES);
    let later = settled().split_off(before);
    announce(&format!("after a touch of each, a restart and a touch: {:?}", tally(&later)));
    assert!(later.is_empty(), "a finished Instance costs nothing: {later:#?}");
}
