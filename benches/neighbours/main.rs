//! A neighbour of a hostile tenant: how long its reviews and plans take, beside how long they take when
//! nothing else happens; whether the process is alive to the kubelet and keeps its Lease; and how much
//! memory it takes. Under `memory.max` of 512 MiB, the rendered limit, where a cgroup can be made.
//!
//! The tenant is `tests/support/tenant.rs`. `INTERLOCK_BENCH_HOSTILE=regex,large-output` leaves only
//! these of what it does; `INTERLOCK_BENCH_TENANT=50` makes so many Instances, instead of 200.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bare;
mod busy;
mod limited;
#[path = "../results/mod.rs"]
mod results;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use bare::Bare;
use busy::Busy;
use interlock_core::api::meta;
use limited::Limited;
use results::{Goal, Row};
use serde_json::Value;
use support::neighbour::{Found, Neighbour, quantile};
use support::process::peak;
use support::tenant::{Ingredient, Measure, Tenant};
use support::{Client, Cluster, Interlock};

const PLANS: usize = 60;
const STRETCH: Duration = Duration::from_secs(30);
const FLAGS: [&str; 3] = ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s"];

fn main() {
    let instances = std::env::var("INTERLOCK_BENCH_TENANT").ok().and_then(|n| n.parse().ok());
    let measure = Measure { instances: instances.unwrap_or(200), connections: 2_000, reviews: 45 };
    let ingredients = ingredients();
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &FLAGS);
    let pid = interlock.pid().expect("it runs");
    let limited = Limited::of(pid);
    let mut neighbour = Neighbour::new(&cluster, &interlock);
    // What is compiled and opened on first use is not measured.
    drop(neighbour.measure(10, Duration::ZERO));
    let mut bare = Bare::new(&cluster);
    bare.plan();
    let idle = printed("idle", &mut neighbour, &mut bare);
    let before = lease(&cluster.admin());

    let space = cluster.namespace("hostile");
    let names: Vec<&str> = ingredients.iter().map(|ingredient| ingredient.name()).collect();
    println!("neighbours: {measure:?}: {}", names.join(", "));
    let tenant = Tenant::start(&cluster, &interlock, &space, &ingredients, measure);
    let beside = printed("beside a hostile tenant", &mut neighbour, &mut bare);
    let after = lease(&cluster.admin());
    let most = peak(pid);
    println!(
        "neighbours: the tenant was answered {} times; Lease {before:?}, then {after:?}; {most:.0} MiB at most, {}",
        tenant.tried(),
        limited.as_ref().map_or("without a limit: no cgroup can be made", |_| "512 MiB allowed"),
    );
    drop(tenant);
    results::report(&rows(&idle, &beside, after != before, most));
}

/// What is asked for; everything by default.
fn ingredients() -> Vec<Ingredient> {
    let Ok(names) = std::env::var("INTERLOCK_BENCH_HOSTILE") else { return Ingredient::ALL.to_vec() };
    let known = |name: &str| {
        Ingredient::of(name).unwrap_or_else(|| panic!("{name} is none of {:?}", Ingredient::ALL))
    };
    names.split(',').map(known).collect()
}

/// What the neighbour found, and how long the same writes took a bare client meanwhile.
struct Stretch {
    found: Found,
    bare: Vec<Duration>,
}

fn printed(when: &str, neighbour: &mut Neighbour<'_>, bare: &mut Bare<'_>) -> Stretch {
    let before = Busy::now();
    let mut alone = Vec::new();
    let found = neighbour.measure_beside(PLANS, STRETCH, || alone.push(bare.plan()));
    alone.sort_unstable();
    let busy = Busy::now().since(&before);
    let of = |times: &[Duration]| {
        format!(
            "p50 {:.1}, p99 {:.1}, most {:.1} ms of {}",
            quantile(times, 0.5),
            quantile(times, 0.99),
            quantile(times, 1.0),
            times.len()
        )
    };
    println!(
        "neighbours: {when}: reviews {}; plans {}; their writes alone {}; /livez {}; processors busy: {busy}",
        of(&found.reviews),
        of(&found.plans),
        of(&alone),
        of(&found.livez)
    );
    Stretch { found, bare: alone }
}

/// Who leads, and how often that has changed.
fn lease(admin: &Client) -> (Value, Value) {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", meta::NAMESPACE);
    let spec = &admin.read(&path).ok()["items"][0]["spec"];
    (spec["holderIdentity"].clone(), spec["leaseTransitions"].clone())
}

fn rows(idle: &Stretch, beside: &Stretch, lost: bool, most: f64) -> Vec<Row> {
    let pair = |name: &str, of: fn(&Stretch) -> f64, goal| {
        let (ours, other) = (of(beside), of(idle));
        Row::beside(name, ours, ("the same, idle", other), ours / other, goal)
    };
    let twice = Some(Goal::AtMost(2.0));
    let plan = |stretch: &Stretch| quantile(&stretch.found.plans, 0.5);
    let alone = |stretch: &Stretch| quantile(&stretch.bare, 0.5);
    let with = |what: &str| format!("beside a hostile tenant: {what}");
    vec![
        pair(&with("p99 of reviews, ms"), |stretch| quantile(&stretch.found.reviews, 0.99), twice),
        pair(&with("a plan, ms"), plan, twice),
        pair(&with("the writes of a plan by a bare client, ms"), alone, None),
        Row::alone(&with("p99 of /livez, ms"), quantile(&beside.found.livez, 0.99), Some(Goal::AtMost(50.0))),
        Row::alone(&with("Leases lost"), f64::from(u8::from(lost)), Some(Goal::AtMost(0.0))),
        Row::alone(&with("most resident memory, MiB"), most, Some(Goal::AtMost(256.0))),
    ]
}
