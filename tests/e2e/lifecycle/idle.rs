//! What is asked of the API server while nothing happens.

use std::time::Duration;

use super::world::World;
use crate::support::{announce, count, instances, wait_until};

/// Requests of a process with idle Instances, from the audit log: leases, and nothing else.
#[test]
fn idle_instances_cost_no_requests() {
    let world = World::new();
    world.install("envoyfilters");
    world.grant_filters();
    let ns = world.cluster.namespace("idle");
    let user = ns.user("alice");
    world.create_package(&ns);
    let names: Vec<String> = (0..count(20, 200)).map(|i| format!("demo-{i}")).collect();
    for (i, name) in names.iter().enumerate() {
        world.create_instance(&ns, name, if i % 2 == 0 { "filtered" } else { "plain" });
    }
    for name in &names {
        instances::await_run(&user, name, "deploy", "");
    }
    // Events follow the end of a plan.
    let mut seen = 0;
    crate::support::wait_for("the last plan has left no request behind", super::CAP, || {
        world.settle_audit();
        let before = std::mem::replace(&mut seen, world.requests("").len());
        before == seen
    });
    // Time is told by the lease, which is renewed twice a second at best: ten minutes are 1,200.
    let renewals = count(40, 1200);
    let cap = Duration::from_secs(240) + Duration::from_secs(2 * u64::try_from(renewals).unwrap());
    wait_until("the lease was renewed often enough", cap, || {
        let leases = world.requests("").split_off(seen).iter().filter(|r| r.contains("/leases")).count();
        if leases >= renewals { Ok(()) } else { Err(format!("{leases} requests")) }
    });
    world.settle_audit();
    let mut after = world.requests("").split_off(seen);
    let all = after.len();
    after.retain(|request| !request.contains("/leases"));
    announce(&format!(
        "{} idle Instances, {renewals} renewals of the lease: {all} requests, {} without leases: {after:#?}",
        names.len(),
        after.len()
    ));
    let writes = after.iter().filter(|r| !r.starts_with("get ") && !r.starts_with("list "));
    assert_eq!(writes.count(), 0, "nothing is written");
    assert!(after.is_empty(), "nothing is asked: {after:#?}");
}
