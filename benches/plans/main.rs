//! Instances through a plan of three phases with one ConfigMap each: by Interlock, admission
//! included; by a bare client that sends the same writes, which is what the API server can do; and
//! by KUDO's own manager, where `../shared/bin/kudo-manager` is there.
//!
//! There are 1,000 of them for each; `INTERLOCK_BENCH_PLANS=100` asks for another
//! number.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bare;
mod kudo;
#[path = "../requests/mod.rs"]
mod requests;
#[path = "../results/mod.rs"]
mod results;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::HashSet;
use std::time::Instant;

use futures::{StreamExt as _, stream};
use http::Method;
use interlock::api::meta;
use interlock::install::{self, Part};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use requests::send;
use results::{Goal, Row, median};
use support::interlock::{apply, await_definitions};
use support::{Client, Cluster, Interlock, block_on};

const PACKAGE: &str = include_str!("../../tests/e2e/requests/operatorversion.yaml");
const ROUNDS: usize = 3;
/// Requests of the client that makes Instances, and of the bare one.
const AT_ONCE: usize = 8;
const FLAGS: [&str; 3] = ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s"];

fn main() {
    let instances = std::env::var("INTERLOCK_BENCH_PLANS").ok().and_then(|n| n.parse().ok());
    let instances: usize = instances.unwrap_or(1000);
    let (guarded, empty) = (Cluster::own(&[]), Cluster::own(&[]));
    let _process = Interlock::install(&guarded, &FLAGS);
    let admin = empty.admin();
    apply(&admin, install::objects(Part::Crds, &install::Options::default()));
    await_definitions(&admin);

    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let namespace = guarded.namespace("plans");
        guarded.admin().create_package(namespace.name(), PACKAGE);
        let our = block_on(through(&guarded.admin(), namespace.name(), instances, instance));
        let floor = bare::rate(&empty, instances);
        println!("plans: round {round}: {our:.1} Instances/s, a bare client {floor:.1}");
        ours.push(our);
        bare.push(floor);
        ratios.push(our / floor);
    }
    let (ours, bare) = (median(ours), median(bare));
    let name = "Instances/s through a plan of three phases";
    let mut rows =
        vec![Row::beside(name, ours, ("a bare client", bare), median(ratios), Some(Goal::AtLeast(0.6)))];
    if let Some(kudo) = kudo::rate(&empty, instances) {
        rows.push(Row::beside(name, ours, ("KUDO's manager", kudo), ours / kudo, Some(Goal::AtLeast(10.0))));
    }
    results::report(&rows);
}

/// How many Instances a second are made and have completed their plan.
async fn through(admin: &Client, namespace: &str, count: usize, make: fn(usize) -> Value) -> f64 {
    let client = admin.kube();
    let begun = Instant::now();
    let path = path(namespace);
    let made = (0..count).map(|number| {
        let (client, path) = (&client, &path);
        async move { drop(send(client, Method::POST, path, &make(number)).await) }
    });
    let made = stream::iter(made).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
    futures::join!(made, completed(&client, namespace, count));
    count as f64 / begun.elapsed().as_secs_f64()
}

/// Waits until that many Instances have completed their plan.
async fn completed(client: &kube::Client, namespace: &str, count: usize) {
    let kind = ApiResource {
        group: meta::KUDO_GROUP.to_owned(),
        version: "v1beta1".to_owned(),
        api_version: meta::KUDO_API_VERSION.to_owned(),
        kind: "Instance".to_owned(),
        plural: "instances".to_owned(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let mut seen = std::pin::pin!(watcher(api, watcher::Config::default()).touched_objects());
    let mut done = HashSet::new();
    while done.len() < count {
        let Some(Ok(object)) = seen.next().await else { continue };
        if object.data["status"]["planStatus"]["deploy"]["status"] == "COMPLETE" {
            done.extend(object.metadata.name);
        }
    }
}

fn path(namespace: &str) -> String {
    format!("/apis/{}/namespaces/{namespace}/instances", meta::KUDO_API_VERSION)
}

fn instance(number: usize) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"name": format!("demo-{number}"), "labels": {"kudo.dev/operator": "three"}},
        "spec": {"operatorVersion": {"name": "three-0.1.0"}},
    })
}
