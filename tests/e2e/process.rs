//! The process and what it needs to live: certificates, caBundles, the lease, its way out.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use interlock::install::{InstallOptions, Layout};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    Cluster, Interlock, announce, block_on, count, free_port, interlock::apply_installation, wait_for,
    wait_until,
};

pub(crate) const CAP: Duration = Duration::from_secs(60);
pub(crate) const SECRET: &str = "/api/v1/namespaces/interlock-system/secrets/interlock-certificate";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/interlock-system/leases/interlock";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/interlock";

/// These tests take away what others rely on: a control plane of their own, one at a time.
pub(crate) fn cluster() -> MutexGuard<'static, Cluster> {
    static OWN: LazyLock<Mutex<Cluster>> = LazyLock::new(|| Mutex::new(Cluster::own(&[])));
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A write that the webhook refuses, without waiting for anything; why it did not, if it did not.
pub(crate) fn call(cluster: &Cluster) -> Result<(), String> {
    let instance = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {"name": "probe"}, "spec": {},
    });
    let path = "/apis/kudo.dev/v1beta1/namespaces/default/instances?dryRun=All";
    let answer = cluster.admin().post(path, &instance);
    let message = answer.message();
    let refused = message.contains("denied the request");
    if refused { Ok(()) } else { Err(format!("{}: {message}", answer.code)) }
}

pub(crate) fn secret(cluster: &Cluster) -> Value {
    cluster.admin().read(SECRET).ok()
}

pub(crate) fn bundle(cluster: &Cluster) -> String {
    let configuration = cluster.admin().read(MUTATING).ok();
    configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default().to_owned()
}

/// Calls without a pause until told to stop; the failures and how many calls there were.
pub(crate) fn calls_while(cluster: &Cluster, work: impl FnOnce()) -> (Vec<String>, usize) {
    let stop = AtomicBool::new(false);
    wait_until("the webhook answers", CAP, || call(cluster));
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

#[test]
fn authorities_that_come_and_go_cost_no_call() {
    let cluster = cluster();
    // The CA of another test would live for years.
    let _ = cluster.admin().delete(SECRET);
    let process = Interlock::install(&cluster, &["--cert-lifetime=9s", "--ca-lifetime=18s"]);
    let rotations = count(3, 100);
    let (mut authorities, mut leaves) = (BTreeSet::new(), BTreeSet::new());
    let (failures, calls) = calls_while(&cluster, || {
        let cap = CAP * u32::try_from(rotations).unwrap();
        wait_for("CAs and leaves have been exchanged", cap, || {
            let data = secret(&cluster)["data"].clone();
            authorities.insert(data["ca.crt"].to_string());
            leaves.insert(data["tls.crt"].to_string());
            authorities.len() > rotations
        });
    });
    assert!(failures.is_empty(), "{failures:?}");
    announce(&format!(
        "counted: {} CAs, {} leaves, {calls} calls, 0 failed",
        authorities.len(),
        leaves.len()
    ));
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

#[test]
fn one_process_leads_and_another_takes_over() {
    let cluster = cluster();
    let one = Interlock::install(&cluster, &[]);
    wait_for("the first leads", CAP, || one.leads());
    let two = Interlock::prepare(&cluster, &[]);
    two.start();
    wait_for("the second is up", CAP, || two.ops("/livez").is_some());
    let (before, _) = holder(&cluster);

    let began = Instant::now();
    assert_eq!(one.terminate(), Some(0), "a clean stop");
    wait_for("the second leads", CAP, || two.leads());
    let graceful = began.elapsed();
    assert_ne!(holder(&cluster).0, before);

    one.start();
    wait_for("the first is back", CAP, || one.ops("/livez").is_some());
    let began = Instant::now();
    two.kill();
    wait_for("the first leads again", CAP, || one.leads());
    let killed = began.elapsed();
    // A lease of 3 s, looked at every 0.5 s.
    assert!(killed < Duration::from_secs(6), "{killed:?}");
    eprintln!("taken over {graceful:?} after a stop, {killed:?} after a kill");

    // Suspended for longer than its lease, it finds out by itself.
    two.start();
    wait_for("the second is up", CAP, || two.ops("/livez").is_some());
    one.freeze(true);
    wait_for("the second leads", CAP, || two.leads());
    one.freeze(false);
    wait_for("the first has stood down", CAP, || one.ops("/metrics").is_some() && !one.leads());
    assert!(two.leads());
}

#[test]
fn a_stop_is_told_at_once_and_answers_go_on() {
    let cluster = cluster();
    let process = Interlock::prepare(&cluster, &["--shutdown-delay=10s"]);
    apply_installation(&cluster, &process.options(&[]));
    process.start();
    process.await_ready();
    process.await_guarding(&cluster);
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| process.terminate());
        let (failures, _) = calls_while(&cluster, || {
            wait_for("it is not ready any more", Duration::from_secs(10), || {
                process.ops("/readyz").is_some_and(|(code, text)| code == 503 && text.contains("shutdown"))
            });
            // Calls go on for a while on what is known to be on its way out.
            std::thread::sleep(Duration::from_secs(1));
        });
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!(ending.join().unwrap(), Some(0));
    });
}

/// The webhook apart, as the overlay `split` has it: it may write nothing and read no Secret,
/// and finds its certificate in files that the kubelet delivers.
#[test]
fn a_webhook_without_rights_is_served_by_a_controller_elsewhere() {
    let cluster = cluster();
    let dir = tempfile::tempdir().unwrap();
    let webhook_user = cluster.user("system:serviceaccount:interlock-system:interlock-webhook", &[]);
    let flags = [
        "--role=webhook",
        "--controller-user=system:serviceaccount:interlock-system:interlock",
        "--cert-interval=100ms",
        &format!("--cert-dir={}", dir.path().display()),
        &format!("--kubeconfig={}", webhook_user.kubeconfig().display()),
    ];
    let webhook = Interlock::prepare(&cluster, &flags);
    apply_installation(&cluster, &InstallOptions { layout: Layout::Split, ..webhook.options(&[]) });
    let controller = Interlock::prepare(&cluster, &["--role=controller"]);
    // Another test may have left a leaf that expires before the next delivery.
    let left = cluster.admin().delete(SECRET);
    assert!([200, 404].contains(&left.code), "{left}");
    controller.start();
    webhook.start();
    let deliver = || {
        let answer = cluster.admin().read(SECRET);
        let Some(data) = (answer.code == 200).then(|| answer.ok()["data"].clone()) else { return };
        for file in ["tls.crt", "tls.key"] {
            let text = data[file].as_str().unwrap_or_default();
            std::fs::write(dir.path().join(file), base64_decode(text)).unwrap();
        }
    };
    wait_until("the webhook answers", CAP, || {
        deliver();
        call(&cluster)
    });
    webhook.await_ready();
    let guards = || webhook.ops("/metrics").map(|(_, text)| text).unwrap_or_default();
    wait_for("it tells of the one policy that it may read", CAP, || {
        guards().contains("name=\"interlock-flavor-overrides\"} 1")
    });
    assert!(!guards().contains("name=\"interlock-lock\""), "{}", guards());
    let old = bundle(&cluster);
    let (failures, calls) = calls_while(&cluster, || {
        cluster.admin().delete(SECRET).ok();
        wait_for("another CA serves", CAP, || {
            deliver();
            let new = bundle(&cluster);
            new != old && webhook.ops("/readyz").is_some_and(|(code, _)| code == 200) && {
                let answer = cluster.admin().read(SECRET);
                answer.code == 200 && answer.ok()["data"]["next-ca.crt"].is_null()
            }
        });
    });
    assert!(failures.is_empty(), "{failures:?}");
    println!("{calls} calls while the CA was exchanged, 0 failed");
    assert!(!webhook.log().contains("wrote") && controller.ops("/readyz").is_some());
}

fn base64_decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// Beyond loopback the ops port and the metrics port speak TLS, and tell metrics and the live graph only to
/// those who may read them; the metrics port has no graph.
#[test]
fn metrics_and_graph_beyond_loopback_are_for_those_who_may_read_them() {
    let cluster = cluster();
    let Some(testbed) = cluster.testbed() else { return };
    let port = free_port();
    let metrics_port = free_port();
    let flags = [
        format!("--ops-bind-address=0.0.0.0:{port}"),
        format!("--metrics-bind-address=0.0.0.0:{metrics_port}"),
    ];
    let process = Interlock::prepare(&cluster, &flags.each_ref().map(String::as_str));
    apply_installation(&cluster, &process.options(&[]));
    process.start();
    let ask_at = |port: u16, path: &str, token: Option<&str>| -> Result<(u16, String), String> {
        let answer = cluster.admin().read(SECRET);
        let data = if answer.code == 200 { answer.ok()["data"].clone() } else { Value::Null };
        let ca = base64_decode(data["ca.crt"].as_str().ok_or("there is no CA yet")?);
        block_on(https_get(port, &ca, path, token)).map_err(|error| error.to_string())
    };
    let ask = |path: &str, token: Option<&str>| ask_at(port, path, token);
    for port in [port, metrics_port] {
        wait_until("health needs no token", CAP, || match ask_at(port, "/readyz", None)? {
            (200, _) => Ok(()),
            (code, text) => Err(format!("{code}: {text}")),
        });
    }
    let token =
        |user: &str| testbed.command(format!("token {user}").as_str())["token"].as_str().unwrap().to_owned();
    for (token, code) in [
        (None, 401),
        (Some("nonsense".to_owned()), 403),
        (Some(token("interlock")), 403),
        (Some(token("admin")), 200),
    ] {
        let at_metrics = ask_at(metrics_port, "/metrics", token.as_deref()).unwrap();
        assert_eq!(at_metrics.0, code, "{at_metrics:?}");
        for path in ["/metrics", "/graph", "/graph.json"] {
            let answer = ask(path, token.as_deref()).unwrap();
            if answer.0 != code {
                panic!("{code} was expected of {path}, not {answer:?}");
            }
        }
    }
    let admin = token("admin");
    assert_eq!(ask_at(metrics_port, "/graph", Some(&admin)).unwrap().0, 404);
    // The role of the installation is enough for a Prometheus.
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "prometheus"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "interlock-metrics-reader"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccount:interlock-system:interlock"}],
    });
    cluster.admin().post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).ok();
    let interlock = token("interlock");
    wait_until("who has the role reads metrics, and nothing else", CAP, || {
        let metrics = ask_at(metrics_port, "/metrics", Some(&interlock))?;
        let graph = ask("/graph", Some(&interlock))?;
        let page = metrics.1.contains("interlock_instances{state=\"ready\"} 0");
        if (metrics.0, page, graph.0) == (200, true, 403) {
            Ok(())
        } else {
            Err(format!("{metrics:?} {graph:?}"))
        }
    });
}

async fn https_get(port: u16, ca: &[u8], path: &str, token: Option<&str>) -> std::io::Result<(u16, String)> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(interlock::cluster::certificates::stored::certificates(ca));
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let socket = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let name = rustls::pki_types::ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{authorization}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::InvalidData)?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((code.ok_or(std::io::ErrorKind::InvalidData)?, body.to_owned()))
}
