//! Two replicas behind the rendered Service, under load: exchanges of the CA cost no call.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::{
    Cluster, Namespace, announce, backup, block_on, count, service_path, wait_for, wait_until,
};

const CAP: Duration = Duration::from_secs(60);
const CALLERS: usize = 8;
const SECRET: &str = "/api/v1/namespaces/interlock-system/secrets/interlock-certificate";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/interlock";

/// An Instance that can be changed.
fn instance(ns: &Namespace<'_>) {
    let version = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "quiet-1.0"},
        "spec": {
            "operator": {"name": "quiet", "kind": "Operator"}, "version": "1.0.0",
            "parameters": [{"name": "A", "default": "a"}],
            "templates": {},
            "tasks": [{"name": "nothing", "kind": "Dummy", "spec": {"wantErr": false, "done": true}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "p", "strategy": "serial", "steps": [{"name": "s", "tasks": ["nothing"]}]},
            ]}},
        },
    });
    let instance = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "quiet"},
        "spec": {"operatorVersion": {"name": "quiet-1.0"}},
    });
    let admin = ns.admin();
    admin.post(&ns.path("kudo.dev/v1beta1", "operatorversions", ""), &version).ok();
    admin.post(&ns.path("kudo.dev/v1beta1", "instances", ""), &instance).ok();
}

/// Callers that change an annotation of the Instance, dry-run: both webhooks answer each call.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    callers: JoinSet<()>,
}

impl Load {
    /// Starts; `pace` = time between two calls of one caller, zero for as fast as it goes.
    fn start(ns: &Namespace<'_>, pace: Duration) -> Self {
        let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let failures = Arc::new(Mutex::new(Vec::new()));
        let mut callers = JoinSet::new();
        let client = ns.admin().kube();
        let path = format!("{}?dryRun=All", ns.path("kudo.dev/v1beta1", "instances", "quiet"));
        let load = |i: usize| {
            let (stop, calls, failures) = (stop.clone(), calls.clone(), failures.clone());
            let (client, path) = (client.clone(), path.clone());
            async move {
                let mut clock = tokio::time::interval(pace.max(Duration::from_micros(1)));
                for n in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    clock.tick().await;
                    let patch =
                        json!({"metadata": {"annotations": {"load": format!("{i}-{n}")}}}).to_string();
                    let request = Request::patch(&path)
                        .header("Content-Type", "application/merge-patch+json")
                        .body(patch.into_bytes())
                        .unwrap();
                    if let Err(error) = client.request::<Value>(request).await {
                        failures.lock().unwrap().push(error.to_string());
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        block_on(async {
            for i in 0..CALLERS {
                callers.spawn(load(i));
            }
        });
        Self { stop, calls, failures, callers }
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Stops; how many calls there were, none of which may have failed.
    #[track_caller]
    pub(super) fn end(mut self) -> usize {
        self.stop.store(true, Ordering::SeqCst);
        block_on(async { while self.callers.join_next().await.is_some() {} });
        let failures = self.failures.lock().unwrap();
        let shown = &failures[..failures.len().min(5)];
        assert!(failures.is_empty(), "{} of {} calls failed: {shown:#?}", failures.len(), self.calls());
        self.calls()
    }
}

/// Half of the highest rate that this machine holds.
pub(super) fn half_load(ns: &Namespace<'_>) -> (Load, f64) {
    let full = Load::start(ns, Duration::ZERO);
    wait_for("callers are warm", CAP, || full.calls() > 50);
    let (before, began) = (full.calls(), Instant::now());
    // A rate is measured over time.
    std::thread::sleep(Duration::from_secs(3));
    let count = u32::try_from(full.calls() - before).unwrap();
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    full.end();
    let callers = u32::try_from(CALLERS).unwrap();
    (Load::start(ns, Duration::from_secs_f64(f64::from(callers) / (rate / 2.0))), rate)
}

pub(super) fn ready(cluster: &Cluster) -> Namespace<'_> {
    let ns = cluster.namespace("load");
    instance(&ns);
    ns
}

/// Waits until the next CA of our certificate is there.
pub(super) fn await_exchange(cluster: &Cluster) {
    let authority = || cluster.admin().read(SECRET).ok()["data"]["ca.crt"].clone();
    let before = authority();
    wait_until("the CA is exchanged", CAP, || {
        (authority() != before).then_some(()).ok_or_else(|| "not yet".to_owned())
    });
}

#[test]
fn rotations_cost_no_call() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let _installation = service_path::install(&cluster, 2, &["--cert-lifetime=9s", "--ca-lifetime=18s"]);
    let ns = ready(&cluster);
    let (load, rate) = half_load(&ns);
    let rotations = count(3, 100);
    for _ in 0..rotations {
        await_exchange(&cluster);
    }
    let calls = load.end();
    announce(&format!(
        "counted: {rotations} exchanges of the CA, {calls} dry-run updates at half of {rate:.0}/s, 0 failed"
    ));
}

#[test]
fn a_secret_restored_from_a_backup_costs_no_call_of_either_replica() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let _installation = service_path::install(&cluster, 2, &["--cert-lifetime=30s"]);
    let ns = ready(&cluster);
    let (load, _) = half_load(&ns);
    let restored = backup::another(&cluster.admin().read(SECRET).ok()["data"]);
    cluster.admin().merge_patch(SECRET, &json!({"data": restored.write()})).ok();
    let wanted = backup::ca_bundle(&restored);
    wait_for("only the restored CA is trusted", CAP * 2, || {
        let configuration = cluster.admin().read(MUTATING).ok();
        configuration["webhooks"][0]["clientConfig"]["caBundle"] == wanted
    });
    let calls = load.end();
    announce(&format!("counted: {calls} dry-run updates while a Secret was restored, 0 failed"));
}
