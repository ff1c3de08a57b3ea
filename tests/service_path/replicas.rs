//! Two replicas behind the rendered Service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Namespace, count, service_path};

/// Writers at once; the API server spreads connections, not requests, over replicas.
const WRITERS: usize = 8;

fn operator_version() -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "OperatorVersion",
        "metadata": {"name": "load-1.0.0"},
        "spec": {
            "operator": {"name": "load", "kind": "Operator"},
            "version": "1.0.0",
            "parameters": [{"name": "LEVEL", "default": "0"}],
            "tasks": [{"name": "nothing", "kind": "Dummy", "spec": {"done": true}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "main", "strategy": "serial", "steps": [{"name": "all", "tasks": ["nothing"]}]},
            ]}},
        },
    })
}

fn instance(name: &str) -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": "load-1.0.0"}},
    })
}

/// Writes dry-run updates that change a parameter, at `pause` between two of a writer, until
/// told to stop; gives how many were answered and what failed.
fn load(
    writers: &[Client],
    ns: &Namespace<'_>,
    pause: Duration,
    stop: &Arc<AtomicBool>,
) -> (usize, Vec<String>) {
    let path = format!("{}?dryRun=All", ns.path("kudo.dev/v1beta1", "instances", "target"));
    let mut threads = Vec::new();
    for writer in writers {
        let (writer, path, stop) = (writer.clone(), path.clone(), stop.clone());
        threads.push(std::thread::spawn(move || {
            let (mut answered, mut failed, mut level) = (0, Vec::new(), 0);
            let mut next = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                level += 1;
                let patch = json!({"spec": {"parameters": {"LEVEL": level.to_string()}}});
                let answer = writer.merge_patch(&path, &patch);
                if answer.code == 200 {
                    answered += 1
                } else {
                    failed.push(answer.to_string())
                }
                next += pause;
                // The rate is what is held.
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            (answered, failed)
        }));
    }
    threads.into_iter().map(|thread| thread.join().unwrap()).fold((0, Vec::new()), |mut all, (n, failed)| {
        all.0 += n;
        all.1.extend(failed);
        all
    })
}

/// Replicas are restarted gracefully, one after the other, under half of the highest load that
/// this machine holds: not one call fails.
#[test]
fn graceful_restarts_under_load_fail_no_call() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let installed = service_path::install(&cluster, 2, &["--shutdown-delay=15s"]);
    let ns = cluster.namespace("load");
    let admin = ns.admin();
    admin.post(&ns.path("kudo.dev/v1beta1", "operatorversions", ""), &operator_version()).ok();
    admin.post(&ns.path("kudo.dev/v1beta1", "instances", ""), &instance("target")).ok();
    admin
        .kubectl(&[
            "wait",
            "--for=jsonpath={.status.planStatus.deploy.status}=COMPLETE",
            "--timeout=60s",
            "instance/target",
        ])
        .ok();
    // A client each: one connection of HTTP/2 would carry all their requests.
    let writers: Vec<Client> = (0..WRITERS).map(|i| ns.user(&format!("writer-{i}"))).collect();
    for writer in &writers {
        writer.read(&ns.path("kudo.dev/v1beta1", "instances", "target")).ok();
    }

    let during = |pause: Duration, work: &dyn Fn()| {
        let stop = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let loaded = scope.spawn(|| {
                let began = Instant::now();
                let (answered, failed) = load(&writers, &ns, pause, &stop);
                (answered, failed, began.elapsed().as_secs_f64())
            });
            work();
            stop.store(true, Ordering::Relaxed);
            loaded.join().unwrap()
        })
    };
    // A rate is measured over time.
    let (answered, failed, seconds) = during(Duration::ZERO, &|| std::thread::sleep(Duration::from_secs(5)));
    assert!(failed.is_empty(), "at full load: {failed:#?}");
    let highest = answered as f64 / seconds;
    let pause = Duration::from_secs_f64(WRITERS as f64 / (highest / 2.0));

    let restarts = count(5, 20);
    let (answered, failed, seconds) = during(pause, &|| {
        for i in 0..restarts {
            let replica = &installed.replicas[i % installed.replicas.len()];
            assert_eq!(replica.terminate(), Some(0));
            replica.start();
            replica.await_ready();
            service_path::await_endpoints(&cluster.admin(), "interlock-system", "interlock", 2);
        }
    });
    crate::support::announce(&format!(
        "counted: {restarts} graceful restarts, {answered} dry-run updates at {:.0}/s (highest {highest:.0}/s), {} failed",
        answered as f64 / seconds,
        failed.len()
    ));
    assert!(failed.is_empty(), "{failed:#?}");
}
