//! Plans by Interlock, beside KUDO's own manager and beside a bare client that sends the same writes, which is what the
//! API server can do.
//!
//! How many Instances a second go through a plan of three phases with one ConfigMap each. Twice: made meanwhile, admission
//! included; and there before, which is what the plans alone take, from the first that is complete to the last. Each
//! contestant has a new control plane in each round, that nothing else was done on, and no other runs meanwhile: what went
//! before (garbage collection, namespaces that are emptied) is not measured with it. A quarter of the API server's time is
//! its own garbage collection, which is not what is measured: for all of them it is made to collect less often. There are
//! 1,000 Instances for each, and 100 for KUDO; `INTERLOCK_BENCH_PLANS=100` asks for another number.
//!
//! How long the plan of one Instance takes, and what it asks of the API server (`beside.rs`): that one, one with a child
//! Instance, one with files of a Pod.
//!
//! KUDO's manager listens on fixed ports, so all of it runs in a network namespace where one can be made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bare;
mod beside;
mod kudo;
#[allow(dead_code, reason = "a benchmark needs KUDO's manager alone")]
#[path = "../../tests/e2e/kudo_manager/manager.rs"]
mod manager;
#[path = "../requests/mod.rs"]
mod requests;
#[path = "../results/mod.rs"]
mod results;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::HashSet;
use std::os::unix::process::CommandExt as _;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, stream};
use http::Method;
use interlock::install::{self, Part};
use interlock_core::api::meta;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use requests::{lead, send};
use results::{Goal, Row, median};
use serde_json::{Value, json};
use support::interlock::{apply, await_definitions};
use support::testbed::Testbed;
use support::{Client, Cluster, Interlock, announce, block_on, service_path, wait_until};

const PACKAGE: &str = include_str!("../../tests/e2e/requests/operatorversion.yaml");
const ROUNDS: usize = 3;
/// Requests of the client that makes Instances, and of the bare one.
const AT_ONCE: usize = 8;
const FLAGS: [&str; 3] = ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s"];

/// Instances a second.
struct Rates {
    /// Made and carried through their plan.
    made: f64,
    /// Carried through their plan, being there before.
    there: f64,
}

fn main() {
    enter();
    let mut rows = beside::rows();
    rows.extend(rates());
    results::report(&rows);
}

/// Goes on inside a network namespace.
fn enter() {
    if service_path::is_inside() {
        return;
    }
    match service_path::command() {
        Ok(mut command) => {
            let error = command.args(std::env::args_os().skip(1)).exec();
            panic!("unshare does not start: {error}");
        }
        Err(why) => announce(&format!("plans: outside, where ports 443 and 8080 have to be free: {why}")),
    }
}

fn rates() -> Vec<Row> {
    let instances = std::env::var("INTERLOCK_BENCH_PLANS").ok().and_then(|n| n.parse().ok());
    let instances: usize = instances.unwrap_or(1000);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(told("Interlock", interlock(&defined(), instances)));
        bare.push(told("a bare client", bare::rates(&defined(), instances)));
    }
    // One round: it leaves the machine idle most of the time, so that its rate does not vary.
    let kudo = told("KUDO's manager", kudo::rates(defined, instances));
    let made = |rates: &Rates| rates.made;
    let there = |rates: &Rates| rates.there;
    let beside = Beside { bare: &bare, kudo: &kudo };
    let mut rows = compare("Instances/s made and through a plan of three phases", made, &ours, &beside);
    rows.extend(compare("Instances/s through a plan of three phases", there, &ours, &beside));
    rows
}

/// What Interlock is measured beside.
struct Beside<'a> {
    bare: &'a [Rates],
    kudo: &'a Rates,
}

/// Beside the bare client round by round, beside KUDO's manager by the median.
fn compare(name: &str, of: fn(&Rates) -> f64, ours: &[Rates], beside: &Beside<'_>) -> Vec<Row> {
    let Beside { bare, kudo } = beside;
    let ratio = median(ours.iter().zip(*bare).map(|(our, floor)| of(our) / of(floor)));
    let (our, floor) = (median(ours.iter().map(of)), median(bare.iter().map(of)));
    let kudo = of(kudo);
    vec![
        Row::beside(name, our, ("a bare client", floor), ratio, Some(Goal::AtLeast(0.75))),
        Row::beside(name, our, ("KUDO's manager", kudo), our / kudo, None),
    ]
}

fn told(who: &str, rates: Rates) -> Rates {
    println!("plans: {who}: {:.1} made and through, {:.1} through", rates.made, rates.there);
    rates
}

/// By Interlock. Namespaces stay, as to empty them takes the API server longer than the plans.
fn interlock(guarded: &Cluster, count: usize) -> Rates {
    let _process = Interlock::install(guarded, &FLAGS);
    let admin = guarded.admin();
    let spaces = ["made", "there"].map(|name| guarded.namespace(name));
    let [made, there] = spaces.each_ref().map(|space| space.name());
    admin.create_package(made, PACKAGE);
    admin.create_package(there, PACKAGE);
    let rate = block_on(through(&admin, made, count, instance));
    // While another process leads, the process answers admission reviews and carries nothing out.
    lead(&admin, "somebody", 3600);
    block_on(make(&admin.kube(), there, count, instance));
    lead(&admin, "", 1);
    Rates { made: rate, there: block_on(completed(&admin.kube(), there, count)) }
}

/// How much the heap of the API server and etcd may grow before they collect, in percent.
const COLLECTION: (&str, &str) = ("GOGC", "400");

/// A control plane with the definitions and without Interlock, whose controllers have found them.
fn defined() -> Cluster {
    defined_on(Cluster::of(Testbed::up_with(&[], &[COLLECTION])))
}

/// The same of one that is up.
fn defined_on(cluster: Cluster) -> Cluster {
    let admin = cluster.admin();
    apply(&admin, install::objects(Part::Crds, &install::InstallOptions::default()).unwrap());
    await_definitions(&admin);
    // The garbage collector looks for new kinds each 30 s, and as it begins.
    let testbed = cluster.testbed().expect("it is ours");
    testbed.command("kill kube-controller-manager");
    testbed.command("start kube-controller-manager");
    await_watched(&admin);
    cluster
}

/// Waits until the garbage collector watches Instances: until it has found this kind each child costs it GETs of its
/// owner.
fn await_watched(admin: &Client) {
    wait_until("the garbage collector watches Instances", Duration::from_secs(120), || {
        let metrics = admin.kubectl(&["get", "--raw", "/metrics"]).ok();
        let labels = ["apiserver_longrunning_requests{", r#"resource="instances""#, r#"verb="WATCH""#];
        let watches = metrics.lines().filter(|line| labels.iter().all(|label| line.contains(label)));
        let count: f64 = watches.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        if count >= 1.0 { Ok(()) } else { Err(format!("{count} watches")) }
    });
}

/// How many Instances a second are made and have completed their plan.
async fn through(admin: &Client, namespace: &str, count: usize, object: fn(usize) -> Value) -> f64 {
    let client = admin.kube();
    let begun = Instant::now();
    futures::join!(make(&client, namespace, count, object), completed(&client, namespace, count));
    count as f64 / begun.elapsed().as_secs_f64()
}

/// Makes Instances.
async fn make(client: &kube::Client, namespace: &str, count: usize, object: fn(usize) -> Value) {
    let path = &path(namespace);
    let made = (0..count).map(|number| async move {
        drop(send(client, Method::POST, path, &object(number)).await);
    });
    stream::iter(made).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// Waits until that many Instances have completed their plan; how many did so in a second, from the
/// first to the last.
async fn completed(client: &kube::Client, namespace: &str, count: usize) -> f64 {
    let api = api(client, namespace);
    let mut seen = std::pin::pin!(watcher(api, watcher::Config::default()).touched_objects());
    let (mut done, mut first) = (HashSet::new(), None);
    while done.len() < count {
        let Some(Ok(object)) = seen.next().await else { continue };
        if is_complete(&object) {
            done.extend(object.metadata.name);
            first.get_or_insert_with(|| (Instant::now(), done.len()));
        }
    }
    let (first, before) = first.expect("one at least");
    (count - before) as f64 / first.elapsed().as_secs_f64()
}

/// Waits until this Instance has completed its plan.
async fn complete(client: &kube::Client, namespace: &str, name: &str) {
    let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut seen = std::pin::pin!(watcher(api(client, namespace), one).touched_objects());
    while !matches!(seen.next().await, Some(Ok(object)) if is_complete(&object)) {}
}

fn is_complete(instance: &DynamicObject) -> bool {
    instance.data["status"]["planStatus"]["deploy"]["status"] == "COMPLETE"
}

fn api(client: &kube::Client, namespace: &str) -> Api<DynamicObject> {
    let kind = ApiResource {
        group: meta::KUDO_GROUP.to_owned(),
        version: "v1beta1".to_owned(),
        api_version: meta::KUDO_API_VERSION.to_owned(),
        kind: "Instance".to_owned(),
        plural: "instances".to_owned(),
    };
    Api::namespaced_with(client.clone(), namespace, &kind)
}

fn path(namespace: &str) -> String {
    format!("/apis/{}/namespaces/{namespace}/instances", meta::KUDO_API_VERSION)
}

fn instance(number: usize) -> Value {
    instance_of("three", &format!("demo-{number}"))
}

fn instance_of(operator: &str, name: &str) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"name": name, "labels": {"kudo.dev/operator": operator}},
        "spec": {"operatorVersion": {"name": format!("{operator}-0.1.0")}},
    })
}
