//! DataPlanes that are carried out: how soon a live Deployment that was deleted is there again, and what many of
//! them at rest take.
//!
//! How often a promotion asks the API server is counted by `tests/service_path/rollouts/requests.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../results/mod.rs"]
mod results;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use interlock::install::{self, InstallOptions, Part};
use interlock_kong::api as kong;
use results::{Goal, Row, median};
use serde_json::{Value, json};
use support::audit::{Audit, tally};
use support::process::resident;
use support::{Client, Cluster, Interlock, interlock::apply, wait_until};

const CAP: Duration = Duration::from_secs(300);
const ROUNDS: usize = 50;
const NAMESPACE: &str = "default";
/// The namespace of a tenant with the largest DataPlanes that the API server takes, and how many.
const LARGE: (&str, usize) = ("large", 40);
const LARGE_BYTES: usize = 1_300_000;
/// So often is the lease renewed while nothing else is asked.
const RENEWALS: usize = 20;

fn main() {
    let cluster = Cluster::own(&["--audit"]);
    let process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    carry_out_data_planes(&admin);
    create(&admin, NAMESPACE, "edge", &json!({}));
    await_ready(&admin, "edge");
    let mut rows = vec![recreated(&admin, "a deleted live Deployment is there again, ms", ROUNDS)];
    rows.extend(at_rest(&cluster, &process, &admin));
    rows.extend(beside_large_ones(&process, &admin));
    results::report(&rows);
}

fn carry_out_data_planes(admin: &Client) {
    apply(admin, install::objects(Part::KongCrds, &InstallOptions::default()).unwrap());
    let options = InstallOptions { data_planes: true, ..InstallOptions::default() };
    apply(admin, install::objects(Part::Rbac, &options).unwrap());
    let settings = "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {name: default}\n\
                    spec: {capabilities: {dataplanes: {mode: auto}}}\n";
    admin.kubectl_in(&["apply", "--server-side", "--force-conflicts", "-f", "-"], settings).ok();
}

fn path(resource: &str, name: &str) -> String {
    let api = match resource {
        "dataplanes" => kong::API_VERSION,
        _ => "apps/v1",
    };
    format!("/apis/{api}/namespaces/{NAMESPACE}/{resource}/{name}")
}

fn create(admin: &Client, namespace: &str, name: &str, deployment: &Value) {
    let mut object = json!({
        "apiVersion": kong::API_VERSION, "kind": "DataPlane", "metadata": {"name": name},
        "spec": {
            "deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}}},
            "network": {"services": {"ingress": {"type": "ClusterIP"}}},
        },
    });
    json_patch::merge(&mut object["spec"]["deployment"], deployment);
    let path = format!("/apis/{}/namespaces/{namespace}/dataplanes", kong::API_VERSION);
    wait_until("a DataPlane is created", CAP, || {
        let answer = admin.post(&path, &object);
        if answer.code == 201 { Ok(()) } else { Err(answer.to_string()) }
    });
}

fn await_ready(admin: &Client, name: &str) {
    wait_until(&format!("{name} is ready"), CAP, || {
        let found = admin.read(&path("dataplanes", name));
        let conditions = found.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
        if is_ready { Ok(()) } else { Err(found.to_string()) }
    });
}

/// From the answer to a deletion of a live Deployment to the first look that finds the next one, beside a creation
/// and a look by a bare client.
fn recreated(admin: &Client, name: &str, rounds: usize) -> Row {
    let live = path("deployments", "dataplane-edge-blue");
    let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let before = admin.read(&live).ok();
        let mut copy = plain(&before);
        copy["metadata"]["name"] = json!(format!("bare-{round}"));
        let began = Instant::now();
        admin.post(path("deployments", "").trim_end_matches('/'), &copy).ok();
        await_another(admin, &path("deployments", &format!("bare-{round}")), &Value::Null);
        bare.push(began.elapsed().as_secs_f64() * 1e3);
        admin.delete(&path("deployments", &format!("bare-{round}"))).ok();

        admin.delete(&live).ok();
        let began = Instant::now();
        await_another(admin, &live, &before["metadata"]["uid"]);
        ours.push(began.elapsed().as_secs_f64() * 1e3);
        ratios.push(ours[round] / bare[round]);
        await_ready(admin, "edge");
    }
    println!(
        "rollouts: a live Deployment is there again after ms {ours:.1?}; created by a bare client {bare:.1?}"
    );
    Row::beside(
        name,
        median(ours),
        ("a bare creation", median(bare)),
        median(ratios),
        Some(Goal::AtMost(10.0)),
    )
}

/// A Deployment without what the API server wrote on it, and without pods.
fn plain(found: &Value) -> Value {
    let mut spec = found["spec"].clone();
    spec["replicas"] = json!(0);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": spec})
}

fn await_another(admin: &Client, path: &str, uid: &Value) {
    let began = Instant::now();
    loop {
        let found = admin.read(path);
        if found.code == 200 && found.body["metadata"]["uid"] != *uid {
            return;
        }
        assert!(began.elapsed() < CAP, "{path} does not come: {found}");
    }
}

/// INTERLOCK_BENCH_DATAPLANES says another number.
fn many() -> usize {
    std::env::var("INTERLOCK_BENCH_DATAPLANES").map_or(200, |text| text.parse().expect("a number"))
}

/// Requests and memory of many DataPlanes at rest.
fn at_rest(cluster: &Cluster, process: &Interlock, admin: &Client) -> Vec<Row> {
    let audit = Audit::of(cluster).expect("the testbed writes an audit log");
    let pid = process.pid().expect("it runs");
    silence(&audit);
    let before = resident(pid);
    let many = many();
    // What a thousand pods of the usual size ask for is more than the node has.
    let small = json!({"requests": {"cpu": "10m", "memory": "16Mi"}});
    let container = json!({"name": "proxy", "image": "kong:3.9", "resources": small});
    let small = json!({"podTemplateSpec": {"spec": {"containers": [container]}}});
    let names: Vec<String> = (0..many).map(|number| format!("plane-{number}")).collect();
    // The controllers of Kubernetes make so many in the time that is waited for.
    for batch in names.chunks(100) {
        batch.iter().for_each(|name| create(admin, NAMESPACE, name, &small));
        batch.iter().for_each(|name| await_ready(admin, name));
    }
    silence(&audit);
    let asked = requests(&audit, audit.since(0).1);
    let each = (resident(pid) - before) * 1024.0 / many as f64;
    println!(
        "rollouts: {many} DataPlanes at rest: {asked} requests in {RENEWALS} renewals, {each:.1} KiB each"
    );
    vec![
        Row::alone(&format!("requests of {many} DataPlanes at rest"), asked as f64, Some(Goal::AtMost(0.0))),
        Row::alone(
            &format!("memory of one of {many} DataPlanes at rest, KiB"),
            each,
            Some(Goal::AtMost(64.0)),
        ),
    ]
}

/// Memory with the DataPlanes of a tenant who makes them as large as the API server takes them, and what the others then
/// wait for.
fn beside_large_ones(process: &Interlock, admin: &Client) -> Vec<Row> {
    let (namespace, count) = LARGE;
    let pid = process.pid().expect("it runs");
    let before = resident(pid);
    admin.kubectl(&["create", "namespace", namespace]).ok();
    let env = json!([{"name": "FILLER", "value": "x".repeat(LARGE_BYTES)}]);
    let container = json!({"name": "proxy", "image": "kong:3.9", "env": env});
    let large = json!({"replicas": 0, "podTemplateSpec": {"spec": {"containers": [container]}}});
    for number in 0..count {
        create(admin, namespace, &format!("large-{number}"), &large);
    }
    wait_until("each has its Deployment", CAP, || {
        let out = admin.kubectl(&["get", "deployments", "-n", namespace, "-o", "name"]).ok();
        if out.lines().count() == count { Ok(()) } else { Err(out) }
    });
    let taken = resident(pid) - before;
    println!("rollouts: {count} DataPlanes of {LARGE_BYTES} bytes take {taken:.1} MiB");
    vec![
        Row::alone("memory of a tenant with the largest DataPlanes, MiB", taken, Some(Goal::AtMost(128.0))),
        recreated(admin, "a deleted live Deployment beside them, ms", ROUNDS / 5),
    ]
}

/// Requests but those about leases while the lease is renewed some times.
fn requests(audit: &Audit, from: u64) -> usize {
    let (seen, _) = audit.while_renewed(from, RENEWALS);
    let rest: Vec<_> = seen.iter().filter(|request| !request.is_about_leases()).collect();
    if !rest.is_empty() {
        println!("rollouts: asked {:?}", tally(rest.iter().copied()));
    }
    rest.len()
}

fn silence(audit: &Audit) {
    wait_until("nothing is asked any more", CAP, || match requests(audit, audit.since(0).1) {
        0 => Ok(()),
        asked => Err(format!("{asked} requests")),
    });
}
