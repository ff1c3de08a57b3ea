//! What a user waits for: a write of an Instance through kube-apiserver, with Interlock registered;
//! with a webhook that answers a constant in both phases; and with none.
//!
//! All three are registered at once on one control plane, each for a namespace of its own, and take
//! turns in every round. Ratios are of numbers of one round, so that a machine that is busy with other
//! things hurts all alike. What Interlock is registered with is what is rendered: policies as well.
//!
//! An Instance of 9 KB is created, which schedules its plan and stamps it. Nothing carries the plans
//! out: another process holds the lease.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod constant;
#[path = "../requests/mod.rs"]
mod requests;
#[path = "../results/mod.rs"]
mod results;
#[path = "../reviews/mod.rs"]
#[allow(dead_code, reason = "the reviews of another benchmark")]
mod reviews;
#[path = "../https/server.rs"]
mod server;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use futures::future::join_all;
use http::Method;
use interlock_core::api::meta;
use serde_json::{Map, Value, json};

use constant::Constant;
use requests::{lead, send};
use results::{Goal, Row, median};
use support::{Cluster, Interlock, block_on};

/// A name of the server that this benchmark does not start: see `benches/https`.
const OURS: &str = "interlock";
const CONSTANT: &str = "a webhook that answers a constant";
const NONE: &str = "no webhook";

const WRITERS: usize = 16;
const WRITES: usize = 60;
const ROUNDS: usize = 9;
const BYTES: usize = 9 * 1024;
const FLAGS: [&str; 3] = ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s"];

fn main() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["serve", what, bytes, folder] = words[..] {
        return server::serve(what, bytes, std::path::Path::new(folder));
    }
    bench();
}

fn bench() {
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    let spaces = [OURS, "constant", "none"].map(|name| cluster.namespace(name));
    let [ours, constant, _] = spaces.each_ref().map(|space| space.name());
    let flag = format!("--watch-namespaces={ours}");
    let _process = Interlock::install(&cluster, &[&[flag.as_str()], &FLAGS[..]].concat());
    let _constant = Constant::start(&admin, constant);
    let parameters = parameters();
    admin.post(&path(ours, "operatorversions"), &operator_version(parameters)).ok();
    // A process that does not lead answers reviews and carries nothing out.
    lead(&admin, "another process", 3600);

    let mut worlds =
        spaces.each_ref().map(|space| World { path: path(space.name(), "instances"), rounds: Vec::new() });
    for world in &worlds {
        block_on(round(&admin.kube(), world, "warm", parameters));
    }
    block_on(empty(&admin.kube(), &worlds));
    for number in 0..ROUNDS {
        for turn in 0..worlds.len() {
            let world = &mut worlds[(number + turn) % 3];
            let measured = block_on(round(&admin.kube(), world, &format!("r{number}"), parameters));
            world.rounds.push(measured);
        }
        block_on(empty(&admin.kube(), &worlds));
        let found: Vec<String> = worlds
            .iter()
            .map(|world| world.rounds[number])
            .map(|m| format!("{:.1}/{:.1}", m.p50, m.p99))
            .collect();
        println!(
            "round {}: p50/p99 ms: {OURS} {}; {CONSTANT} {}; {NONE} {}",
            number + 1,
            found[0],
            found[1],
            found[2]
        );
    }
    results::report(&rows(&worlds));
}

/// Where Instances are written, and how long that took.
struct World {
    path: String,
    rounds: Vec<Latency>,
}

/// Of the writes of a round, in milliseconds.
#[derive(Clone, Copy)]
struct Latency {
    p50: f64,
    p99: f64,
}

/// A quantile by its name.
type Quantile = (&'static str, fn(&Latency) -> f64);

fn rows(worlds: &[World; 3]) -> Vec<Row> {
    let [ours, constant, none] = worlds;
    let quantiles: [Quantile; 2] = [("p50", |l| l.p50), ("p99", |l| l.p99)];
    let mut rows = Vec::new();
    for (quantile, of) in quantiles {
        let name =
            format!("a write of an Instance of {} KB, {WRITERS} writers, {quantile}, ms", BYTES / 1024);
        for (other, world, goal) in [(CONSTANT, constant, Some(Goal::AtMost(1.15))), (NONE, none, None)] {
            let ratio = median(ours.rounds.iter().zip(&world.rounds).map(|(a, b)| of(a) / of(b)));
            let [mine, theirs] = [ours, world].map(|world| median(world.rounds.iter().map(of)));
            rows.push(Row::beside(&name, mine, (other, theirs), ratio, goal));
        }
    }
    rows
}

/// Removes what was written, so that the API server holds as much in every round.
async fn empty(client: &kube::Client, worlds: &[World; 3]) {
    for world in worlds {
        send(client, Method::DELETE, &world.path, &json!({})).await;
    }
}

/// Creates Instances from all writers at once.
async fn round(client: &kube::Client, world: &World, prefix: &str, parameters: usize) -> Latency {
    let writers = (0..WRITERS).map(|writer| async move {
        let mut took = Vec::with_capacity(WRITES);
        for number in 0..WRITES {
            let object = instance(&format!("{prefix}-{writer}-{number}"), parameters);
            let begun = Instant::now();
            send(client, Method::POST, &world.path, &object).await;
            took.push(begun.elapsed());
        }
        took
    });
    let mut took: Vec<Duration> = join_all(writers).await.concat();
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    Latency { p50: at(0.5), p99: at(0.99) }
}

fn path(namespace: &str, plural: &str) -> String {
    format!("/apis/{}/namespaces/{namespace}/{plural}", meta::KUDO_API_VERSION)
}

/// How many parameters an Instance of the wanted size has.
fn parameters() -> usize {
    (1..).find(|&n| instance("r0-00-00", n + 1).to_string().len() > BYTES).expect("sizes grow")
}

fn parameter(number: usize) -> (String, Value) {
    (format!("PARAM_{number:04}"), json!(format!("value-{number:04}-of-a-usual-length")))
}

fn instance(name: &str, parameters: usize) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"name": name, "labels": {"kudo.dev/operator": "written"}},
        "spec": {
            "operatorVersion": {"name": "written-0.1.0"},
            "parameters": (0..parameters).map(parameter).collect::<Map<_, _>>(),
        },
    })
}

fn operator_version(parameters: usize) -> Value {
    let declared: Vec<Value> =
        (0..parameters).map(|number| json!({"name": parameter(number).0, "default": ""})).collect();
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": {"name": "written-0.1.0"},
        "spec": {
            "operator": {"kind": "Operator", "name": "written"}, "version": "0.1.0",
            "parameters": declared,
            "tasks": [{"name": "nothing", "kind": "Dummy", "spec": {"done": true}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "only", "strategy": "serial", "steps": [{"name": "only", "tasks": ["nothing"]}]},
            ]}},
        },
    })
}
