//! The process and what it needs to live: certificates, caBundles, the lease, its way out.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Cluster, Interlock, interlock::apply_installation, wait_for, wait_until};

const CAP: Duration = Duration::from_secs(30);
const SECRET: &str = "/api/v1/namespaces/interlock-system/secrets/interlock-certificate";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/interlock-system/leases/interlock";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/interlock";

/// These tests take away what others rely on: a control plane of their own, one at a time.
fn cluster() -> MutexGuard<'static, Cluster> {
    static OWN: LazyLock<Mutex<Cluster>> = LazyLock::new(|| Mutex::new(Cluster::own(&[])));
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that the webhook has to answer; why it was not, when it was not.
fn call(cluster: &Cluster) -> Result<(), String> {
    let instance = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {"name": "probe"}, "spec": {"operatorVersion": {"name": "no-such-version"}},
    });
    let path = "/apis/kudo.dev/v1beta1/namespaces/default/instances?dryRun=All";
    let answer = cluster.admin().post(path, &instance);
    let message = answer.message();
    if message.contains("failed calling webhook") { Err(message.to_owned()) } else { Ok(()) }
}

fn secret(cluster: &Cluster) -> Value {
    cluster.admin().read(SECRET).ok()
}

fn bundle(cluster: &Cluster) -> String {
    let configuration = cluster.admin().read(MUTATING).ok();
    configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned()
}

/// Calls without a pause until told to stop; the failures and how many calls there were.
fn calls_while(cluster: &Cluster, work: impl FnOnce()) -> (Vec<String>, usize) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let (mut failures, mut calls) = (Vec::new(), 0);
            while !stop.load(Ordering::SeqCst) {
                failures.extend(call(cluster).err());
                calls += 1;
            }
            (failures, calls)
        });
        // Also when the work fails its test, so that the caller ends.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let ending = Stop(&stop);
        work();
        drop(ending);
        caller.join().unwrap()
    })
}

#[test]
fn without_its_secret_and_lease_a_start_heals_by_itself() {
    let cluster = cluster();
    let process = Interlock::install(&cluster, &[]);
    let before = bundle(&cluster);
    process.kill();
    cluster.admin().delete(SECRET).ok();
    cluster.admin().delete(LEASE).ok();
    let began = Instant::now();
    process.start();
    process.await_ready();
    wait_until("the webhook answers again", CAP, || call(&cluster));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_ne!(bundle(&cluster), before);
    eprintln!("healthy {took:?} after a start without Secret and Lease");
}

#[test]
fn a_secret_deleted_or_spoiled_under_it_costs_no_call() {
    let cluster = cluster();
    let process = Interlock::install(&cluster, &["--cert-lifetime=10m"]);
    wait_until("the webhook answers", CAP, || call(&cluster));
    let before = secret(&cluster)["data"]["ca.crt"].clone();
    let (failures, calls) = calls_while(&cluster, || {
        cluster.admin().delete(SECRET).ok();
        wait_until("there is a new CA", CAP, || {
            let answer = cluster.admin().read(SECRET);
            let data = if answer.code == 200 { answer.ok()["data"].clone() } else { Value::Null };
            let new = data["ca.crt"].is_string() && data["ca.crt"] != before;
            new.then_some(()).ok_or_else(|| "still the old one".to_owned())
        });
        let spoiled = json!({"data": {"tls.crt": "c3BvaWxlZA=="}});
        cluster.admin().merge_patch(SECRET, &spoiled).ok();
        wait_for("the spoiled certificate is mended", CAP, || {
            secret(&cluster)["data"]["tls.crt"] != spoiled["data"]["tls.crt"]
        });
        let emptied = json!({"webhooks": [{"name": "instances.mutate.interlock.dev", "clientConfig": {"caBundle": null}}]});
        let patch = emptied.to_string();
        let configuration = ["patch", "mutatingwebhookconfiguration", "interlock", "-p", &patch];
        cluster.admin().kubectl(&configuration).ok();
        wait_for("the caBundle is mended", CAP, || !bundle(&cluster).is_empty());
    });
    // Between the emptied caBundle and its mending the API server itself trusts nobody.
    let ours: Vec<_> = failures.iter().filter(|failure| !failure.contains("unknown authority")).collect();
    assert!(ours.is_empty(), "{ours:?}");
    eprintln!("{calls} calls");
    assert_eq!(process.ops("/readyz").map(|(code, _)| code), Some(200));
}

/// Exchanges of the CA: the short form, and that of `make soak`.
fn rotations() -> usize {
    if std::env::var_os("INTERLOCK_SOAK").is_some() { 100 } else { 3 }
}

#[test]
fn authorities_that_come_and_go_cost_no_call() {
    let cluster = cluster();
    // The CA of another test would live for years.
    let _ = cluster.admin().delete(SECRET);
    let process = Interlock::install(&cluster, &["--cert-lifetime=3s", "--ca-lifetime=6s"]);
    wait_until("the webhook answers", CAP, || call(&cluster));
    let (mut authorities, mut leaves) = (BTreeSet::new(), BTreeSet::new());
    let (failures, calls) = calls_while(&cluster, || {
        let cap = CAP * u32::try_from(rotations()).unwrap();
        wait_for("CAs and leaves have been exchanged", cap, || {
            let data = secret(&cluster)["data"].clone();
            authorities.insert(data["ca.crt"].to_string());
            leaves.insert(data["tls.crt"].to_string());
            authorities.len() > rotations()
        });
    });
    assert!(failures.is_empty(), "{failures:?}");
    eprintln!("{} CAs, {} leaves, {calls} calls, 0 failed", authorities.len(), leaves.len());
    assert!(leaves.len() > authorities.len());
    drop(process);
}

/// `holderIdentity`, and how often it has changed.
fn holder(cluster: &Cluster) -> (String, i64) {
    let answer = cluster.admin().read(LEASE);
    if answer.code != 200 {
        return (String::new(), -1);
    }
    let spec = answer.ok()["spec"].clone();
    let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
    (holder, spec["leaseTransitions"].as_i64().unwrap_or(0))
}

fn leads(process: &Interlock) -> bool {
    let metrics = process.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
    metrics.contains("leader_election_master_status{name=\"interlock\"} 1")
}

#[test]
fn one_process_leads_and_another_takes_over() {
    let cluster = cluster();
    let one = Interlock::install(&cluster, &[]);
    wait_for("the first leads", CAP, || leads(&one));
    let two = Interlock::prepare(&cluster, &[]);
    two.start();
    wait_for("the second is up", CAP, || two.ops("/livez").is_some());
    let (before, _) = holder(&cluster);

    let began = Instant::now();
    assert_eq!(one.terminate(), Some(0), "a clean stop");
    wait_for("the second leads", CAP, || leads(&two));
    let graceful = began.elapsed();
    assert_ne!(holder(&cluster).0, before);

    one.start();
    wait_for("the first is back", CAP, || one.ops("/livez").is_some());
    let began = Instant::now();
    two.kill();
    wait_for("the first leads again", CAP, || leads(&one));
    let killed = began.elapsed();
    // A lease of 3 s, looked at every 0.5 s.
    assert!(killed < Duration::from_secs(6), "{killed:?}");
    eprintln!("taken over {graceful:?} after a stop, {killed:?} after a kill");

    // Suspended for longer than its lease, it finds out by itself.
    two.start();
    wait_for("the second is up", CAP, || two.ops("/livez").is_some());
    one.freeze(true);
    wait_for("the second leads", CAP, || leads(&two));
    one.freeze(false);
    wait_for("the first has stood down", CAP, || one.ops("/metrics").is_some() && !leads(&one));
    assert!(leads(&two));
}

#[test]
fn a_stop_is_told_at_once_and_answers_go_on() {
    let cluster = cluster();
    let process = Interlock::prepare(&cluster, &["--shutdown-delay=3s"]);
    apply_installation(&cluster, &process.options(&[]));
    process.start();
    process.await_ready();
    process.await_guarding(&cluster);
    wait_until("the webhook answers", CAP, || call(&cluster));
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| process.terminate());
        let (failures, _) = calls_while(&cluster, || {
            wait_for("it is not ready any more", Duration::from_secs(2), || {
                process.ops("/readyz").is_some_and(|(code, text)| code == 503 && text.contains("shutdown"))
            });
            std::thread::sleep(Duration::from_secs(1));
        });
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!(ending.join().unwrap(), Some(0));
    });
}
