//! What is asked of the API server while nothing happens.

use std::time::{Duration, Instant};

use super::world::{CAP, World};
use crate::support::audit::{Audit, Request, tally};
use crate::support::{announce, count, instances, wait_for, wait_until};

/// Pauses after refusals until they are the longest: 1, 2, 4, 8 and 16 s.
const GROWING: u64 = 5;
/// The longest pause.
const LONGEST: u64 = 30;

/// Waits until the last plan has left no request behind, as Events follow its end; the place in
/// the log from which on nothing happens.
fn come_to_rest(world: &World, audit: &Audit) -> u64 {
    // It is recorded once that requests count, some seconds after the policy came.
    world.interlock.await_requests_count(&world.cluster);
    let mut at = 0;
    wait_for("the last plan has left no request behind", CAP, || {
        audit.settle(&world.cluster);
        let (seen, end) = audit.since(at);
        at = end;
        seen.iter().all(Request::renews)
    });
    at
}

/// All but leases that is asked from a place on while the lease is renewed so often.
fn asked_while_idle(audit: &Audit, from: u64, renewals: usize) -> Vec<Request> {
    let (mut seen, _) = audit.while_renewed(from, renewals);
    seen.retain(|request| !request.is_about_leases());
    seen
}

/// Requests of a process with idle Instances, from the audit log: leases, and nothing else.
#[test]
fn idle_instances_cost_no_requests() {
    let world = World::new();
    let Some(audit) = Audit::of(&world.cluster) else { return };
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
    let rest = come_to_rest(&world, &audit);
    // Time is told by the lease, which is renewed twice a second at best: ten minutes are 1,200.
    let renewals = count(40, 1200);
    let asked = asked_while_idle(&audit, rest, renewals);
    announce(&format!(
        "{} idle Instances, {renewals} renewals of the lease: {} requests beside: {:?}",
        names.len(),
        asked.len(),
        tally(&asked)
    ));
    assert!(asked.is_empty(), "nothing is asked: {asked:#?}");
}

/// A custom kind that a package makes and nobody granted is listed again after pauses that grow to
/// 30 s, and never again once it is granted.
#[test]
fn a_kind_that_is_not_granted_costs_two_requests_a_minute() {
    let began = Instant::now();
    let world = World::new();
    let Some(audit) = Audit::of(&world.cluster) else { return };
    world.install("envoyfilters");
    let ns = world.cluster.namespace("idle");
    world.create_package(&ns);
    world.create_instance(&ns, "demo", "filtered");
    instances::await_run(&ns.user("alice"), "demo", "deploy", "");
    let rest = come_to_rest(&world, &audit);
    let asked = asked_while_idle(&audit, rest, count(40, 1200));
    let lists = |requests: &[Request]| -> usize {
        requests.iter().filter(|r| r.verb == "list" && r.resource == "envoyfilters").count()
    };
    let all = lists(&audit.requests());
    announce(&format!(
        "a kind that is not granted: {all} lists in {:?}, of which while idle: {:?}",
        began.elapsed(),
        tally(&asked)
    ));
    assert_eq!(asked.len(), lists(&asked), "nothing else is asked: {asked:#?}");
    // The first list is none again, and each pause may be cut short once: by the definition, which
    // changes while it is established, or by a plan.
    let most = 1 + 2 * GROWING + began.elapsed().as_secs() / LONGEST + 1;
    assert!((1..=most).contains(&(all as u64)), "{all} lists, {most} at most");

    world.grant_filters();
    wait_until("the kind is seen", CAP + Duration::from_secs(LONGEST), || {
        let found = world.sights("EnvoyFilter", 0).pop().unwrap_or_default();
        if found == "Synced" { Ok(()) } else { Err(found) }
    });
    let rest = come_to_rest(&world, &audit);
    let asked = asked_while_idle(&audit, rest, count(10, 120));
    assert!(asked.is_empty(), "nothing is asked any more: {asked:#?}");
}
