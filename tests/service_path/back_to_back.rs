//! Two replicas, one of which learns of everything half a second late: nothing that a client
//! does in good order is refused.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::held_back::HeldBack;
use crate::support::{Client, Interlock, Namespace, announce, count, service_path};

const CAP: Duration = Duration::from_secs(60);
/// The API server spreads connections over replicas, so clients act at once, a connection each.
const CLIENTS: usize = 10;
const LATE: Duration = Duration::from_millis(500);

fn operator_version(name: &str) -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "OperatorVersion",
        "metadata": {"name": name},
        "spec": {
            "operator": {"name": "quick", "kind": "Operator"},
            "version": "1.0.0",
            "parameters": [{"name": "LEVEL", "default": "0"}],
            "tasks": [{"name": "nothing", "kind": "Dummy", "spec": {"done": true}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "main", "strategy": "serial", "steps": [{"name": "all", "tasks": ["nothing"]}]},
            ]}},
        },
    })
}

fn instance(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": version}},
    })
}

/// Lets every client do its work at the same time, and gives what was refused.
fn at_once(clients: &[Client], work: impl Fn(usize, &Client) -> Vec<String> + Sync) -> Vec<String> {
    let start = Barrier::new(clients.len());
    std::thread::scope(|scope| {
        let (start, work) = (&start, &work);
        let begin = |(i, client)| {
            scope.spawn(move || {
                start.wait();
                work(i, client)
            })
        };
        let running: Vec<_> = clients.iter().enumerate().map(begin).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// Sum over all series of a replica's metric that have these labels.
fn metric(replica: &Interlock, name: &str, labels: &[&str]) -> f64 {
    let (_, text) = replica.ops("/metrics").expect("its metrics");
    let ours = |line: &&str| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    };
    let value = |line: &str| line.rsplit_once(' ').and_then(|(_, value)| value.parse::<f64>().ok());
    text.lines().filter(ours).filter_map(value).sum()
}

/// How many new Instances a replica has been asked about, and how long it took for one.
fn creations(replica: &Interlock) -> (f64, Duration) {
    let labels = [r#"door="mutate""#, r#"kind="Instance""#, r#"operation="CREATE""#];
    let asked = metric(replica, "interlock_admission_decisions_total", &labels);
    let took = metric(replica, "interlock_admission_duration_seconds_sum", &[r#"webhook="mutate""#]);
    (asked, Duration::from_secs_f64(took / asked.max(1.0)))
}

/// The OperatorVersion, and at once the Instance that refers to it.
fn back_to_back(ns: &Namespace<'_>, client: &Client, name: &str) -> Option<String> {
    let version = operator_version(&format!("{name}-1.0.0"));
    client.post(&ns.path("kudo.dev/v1beta1", "operatorversions", ""), &version).ok();
    let instance = instance(name, &format!("{name}-1.0.0"));
    let answer = client.post(&ns.path("kudo.dev/v1beta1", "instances", ""), &instance);
    (answer.code != 201).then(|| answer.to_string())
}

/// Reads without a pause until a plan is COMPLETE in another run than `before`; gives the run.
fn await_complete(client: &Client, path: &str, before: &str) -> Result<String, String> {
    let began = Instant::now();
    loop {
        let found = client.read(path).ok();
        let deploy = &found["status"]["planStatus"]["deploy"];
        match deploy["uid"].as_str() {
            Some(run) if run != before && deploy["status"] == "COMPLETE" => return Ok(run.to_owned()),
            _ if began.elapsed() > CAP => return Err(format!("deploy has not ended: {found:#}")),
            _ => {}
        }
    }
}

/// Waits for COMPLETE and changes a parameter, again and again.
fn update_when_complete(ns: &Namespace<'_>, client: &Client, name: &str, times: usize) -> Vec<String> {
    let path = ns.path("kudo.dev/v1beta1", "instances", name);
    let (mut run, mut refused) = (String::new(), Vec::new());
    for level in 1..=times {
        run = match await_complete(client, &path, &run) {
            Ok(run) => run,
            Err(why) => return vec![why],
        };
        let patch = json!({"spec": {"parameters": {"LEVEL": level.to_string()}}});
        let answer = client.merge_patch(&path, &patch);
        if answer.code != 200 {
            refused.push(answer.to_string());
        }
    }
    refused
}

#[test]
fn nothing_in_good_order_is_refused() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let held_back = HeldBack::start(&cluster, &cluster.user("interlock", &[]), LATE);
    let late = held_back.flag();
    let flags = "--shutdown-delay=2s";
    let installed = service_path::install_each(&cluster, &[&[flags], &[flags, &late]]);
    let ns = cluster.namespace("orderly");
    let clients: Vec<Client> = (0..CLIENTS).map(|i| ns.user(&format!("client-{i}"))).collect();

    let rounds = count(20, 500) / CLIENTS;
    let create = |wave: &str| {
        let name = |i, round| format!("{wave}-{i}-{round}");
        let refused = at_once(&clients, |i, client| {
            (0..rounds).filter_map(|round| back_to_back(&ns, client, &name(i, round))).collect()
        });
        announce(&format!(
            "counted: {} times OperatorVersion then Instance, {} refused",
            rounds * CLIENTS,
            refused.len()
        ));
        assert!(refused.is_empty(), "{refused:#?}");
    };
    create("quick");
    let [timely, mut late] = [0, 1].map(|i| creations(&installed.replicas[i]));
    if late.0 == 0.0 {
        // All connections are to the other one: they end with it.
        assert_eq!(installed.replicas[0].terminate(), Some(0));
        create("again");
        late = creations(&installed.replicas[1]);
        installed.replicas[0].start();
        installed.replicas[0].await_ready();
        service_path::await_endpoints(&cluster.admin(), "interlock-system", "interlock", 2);
    }
    announce(&format!(
        "counted: {} answered in time, in {:?} each; {} with the watch held back {LATE:?}, in {:?} each",
        timely.0, timely.1, late.0, late.1,
    ));
    assert!(late.1 > LATE / 5, "it was late, and waited: {late:?}");

    let refused =
        at_once(&clients, |i, client| update_when_complete(&ns, client, &format!("quick-{i}-0"), rounds));
    announce(&format!(
        "counted: {} updates at the moment of COMPLETE, {} refused",
        rounds * CLIENTS,
        refused.len()
    ));
    assert!(refused.is_empty(), "{refused:#?}");
}
