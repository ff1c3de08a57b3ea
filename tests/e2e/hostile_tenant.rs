//! A hostile tenant beside a neighbour, in short; `benches/neighbours` has the long form and the numbers.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::Value;

use crate::support::neighbour::Neighbour;
use crate::support::process::peak;
use crate::support::tenant::{Ingredient, Measure, Tenant};
use crate::support::{Client, Cluster, Interlock};

/// Of production: a machine that stalls for a second takes no Lease away.
const FLAGS: [&str; 3] = ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s"];
const PLANS: usize = 4;
const STRETCH: Duration = Duration::from_secs(10);
/// Bounds for a machine that is busy with other tests; where the guard is held up, it is for minutes.
const ANSWERED: Duration = Duration::from_secs(10);
const DEPLOYED: Duration = Duration::from_secs(45);
/// The rendered limit.
const MEMORY_MIB: f64 = 512.0;

fn lease(admin: &Client) -> (Value, Value) {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", meta::NAMESPACE);
    let spec = &admin.read(&path).ok()["items"][0]["spec"];
    (spec["holderIdentity"].clone(), spec["leaseTransitions"].clone())
}

/// Health, reviews, plans, Lease and memory are bounded whatever a tenant's packages, reviews and
/// connections are, and SIGTERM ends the process in the middle of it.
#[test]
fn a_hostile_tenant_harms_neither_the_guard_nor_a_neighbour() {
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &FLAGS);
    let pid = interlock.pid().expect("it runs");
    let mut neighbour = Neighbour::new(&cluster, &interlock);
    let before = lease(&cluster.admin());
    let space = cluster.namespace("hostile");
    let measure = Measure { instances: 12, connections: 200, reviews: 8 };
    let tenant = Tenant::start(&cluster, &interlock, &space, &Ingredient::ALL, measure);
    let found = neighbour.measure(PLANS, STRETCH);
    let most = |times: &[Duration]| times.iter().max().copied().unwrap_or(Duration::MAX);
    assert!(most(&found.livez) < ANSWERED, "/livez: {:?}", found.livez);
    assert!(most(&found.reviews) < ANSWERED, "reviews: {:?}", found.reviews);
    assert!(most(&found.plans) < DEPLOYED, "plans: {:?}", found.plans);
    assert!(tenant.tried() > 0, "the tenant was at work");
    assert_eq!(lease(&cluster.admin()), before, "it leads as before");
    assert!(peak(pid) < MEMORY_MIB, "{} MiB resident at most", peak(pid));
    assert_eq!(interlock.terminate(), Some(0));
    drop(tenant);
}
