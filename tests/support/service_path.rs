//! Suites that need several addresses: two replicas behind a Service, pods that answer.
//!
//! Such a test runs again inside a network namespace of its own (no root needed), where
//! addresses are free to be had and the API server dials the endpoints of a webhook's Service
//! itself.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ::interlock::install::InstallOptions;
use ::interlock_core::api::meta;
use serde_json::json;

use super::{Client, Cluster, Interlock, announce, interlock, wait_until};

/// Set inside.
const INSIDE: &str = "INTERLOCK_INSIDE_NETNS";
/// Address that the API server names as its own.
pub const API_SERVER: &str = "10.99.0.1";
/// Addresses for replicas.
pub const REPLICAS: [&str; 3] = ["10.99.0.11", "10.99.0.12", "10.99.0.13"];

/// Whether the test is to go on: `false` = it has run in a child process inside a network
/// namespace, and passed, or was skipped where those cannot be made.
///
/// ```ignore
/// #[test]
/// fn both_replicas_answer() {
///     if !service_path::inside() { return }
///     let cluster = service_path::cluster();
/// ```
#[track_caller]
pub fn inside() -> bool {
    if is_inside() {
        return true;
    }
    let mut command = match command() {
        Ok(command) => command,
        Err(why) => {
            let said = format!("skipped: {why}");
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{said}");
            announce(&said);
            return false;
        }
    };
    let thread = std::thread::current();
    let test = thread.name().expect("libtest names its threads");
    let out = command
        .args(["--exact", test, "--nocapture", "--include-ignored", "--test-threads=1"])
        .output()
        .expect("unshare runs");
    // What the case said is on stderr and comes first; indented, `hack/failures` takes it for the outer case's.
    let text = format!("{}{}", String::from_utf8_lossy(&out.stderr), String::from_utf8_lossy(&out.stdout));
    let said = || text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    assert!(out.status.success(), "inside its network namespace the test failed:\n{}", said());
    assert!(text.contains("1 passed"), "inside its network namespace the test did not run:\n{}", said());
    for line in text.lines().filter(|line| line.starts_with("skipped: ") || line.starts_with("counted: ")) {
        announce(line);
    }
    false
}

/// Whether this process runs inside a network namespace of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// This binary inside a network namespace of its own, or why none can be made.
pub fn command() -> Result<Command, String> {
    let possible = Command::new("unshare").args(["-rn", "ip", "link", "set", "lo", "up"]).output();
    let why = match possible {
        Ok(out) if out.status.success() => None,
        Ok(out) => Some(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = why {
        return Err(format!("no network namespace can be made here (unshare -rn, ip): {why}"));
    }
    let mut script = String::from("ip link set lo up");
    for address in std::iter::once(API_SERVER).chain(REPLICAS) {
        script.push_str(&format!(" && ip addr add {address}/32 dev lo"));
    }
    // Every address of the range is local: one server on 0.0.0.0 answers as each fake pod.
    script.push_str(" && ip addr add 10.244.0.0/16 dev lo && exec \"$@\"");
    let mut command = Command::new("unshare");
    command
        .args(["-rn", "sh", "-c", &script, "sh"])
        .arg(std::env::current_exe().expect("this binary"))
        .env(INSIDE, "1");
    Ok(command)
}

/// A control plane that dials Services by their EndpointSlices.
pub fn cluster() -> Cluster {
    cluster_with(&[])
}

/// The same, with more flags of the testbed.
pub fn cluster_with(flags: &[&str]) -> Cluster {
    Cluster::own(&[&["--service-path", "--advertise", API_SERVER], flags].concat())
}

/// Interlock installed as rendered, Service and all, with a process at each of the first
/// `replicas` addresses; the endpoints follow their readiness.
pub struct Installation {
    pub replicas: Vec<Arc<Interlock>>,
    _following: Following,
}

/// Installs and waits until every replica is ready and is an endpoint.
pub fn install(cluster: &Cluster, replicas: usize, flags: &[&str]) -> Installation {
    install_each(cluster, &vec![flags; replicas])
}

/// Like [`install`], with flags of its own for each replica.
pub fn install_each(cluster: &Cluster, flags: &[&[&str]]) -> Installation {
    interlock::apply_installation(cluster, &InstallOptions::default());
    let admin = cluster.admin();
    let replicas = flags.len();
    let addresses = &REPLICAS[..replicas];
    let started: Vec<Arc<Interlock>> = addresses
        .iter()
        .zip(flags)
        .map(|(address, flags)| Arc::new(Interlock::replica(cluster, address, flags)))
        .collect();
    for replica in &started {
        replica.start();
    }
    let following = follow(&admin, &started);
    for replica in &started {
        replica.await_ready();
        replica.await_guarding(cluster);
    }
    await_endpoints(&admin, meta::NAMESPACE, meta::install::SERVICE, replicas);
    Installation { replicas: started, _following: following }
}

/// Keeps the endpoints of the rendered Service at the readiness of these replicas, at the first of the addresses.
pub fn follow(admin: &Client, replicas: &[Arc<Interlock>]) -> Following {
    let probes = replicas.iter().zip(REPLICAS).map(|(replica, address)| {
        let replica = replica.clone();
        let ready = Box::new(move || matches!(replica.ops("/readyz"), Some((200, _))));
        Replica { address: address.to_owned(), port: meta::install::WEBHOOK_PORT, ready }
    });
    follow_readiness(admin, meta::NAMESPACE, meta::install::SERVICE, "webhook", probes.collect())
}

/// Gives a Service endpoints, each with its readiness: what the endpoint controller and the
/// kubelet's probes do in a cluster. The port carries the Service's port name.
pub fn write_endpoints(
    admin: &Client,
    namespace: &str,
    service: &str,
    port_name: &str,
    endpoints: &[(&str, u16, bool)],
) {
    for (i, (address, port, ready)) in endpoints.iter().enumerate() {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": format!("{service}-testbed-{i}"),
                "namespace": namespace,
                "labels": {
                    "kubernetes.io/service-name": service,
                    "endpointslice.kubernetes.io/managed-by": "interlock-testbed",
                },
            },
            "addressType": "IPv4",
            "ports": [{"name": port_name, "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
        });
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{service}-testbed-{i}?fieldManager=testbed&force=true"
        );
        admin.server_side_apply(&path, &slice).ok();
    }
}

/// One endpoint of a Service.
pub struct Replica {
    pub address: String,
    pub port: u16,
    /// What its `/readyz` says.
    pub ready: Box<dyn Fn() -> bool + Send>,
}

/// Keeps the endpoints of a Service at what each replica's `/readyz` says, as the kubelet's
/// probes would, until the returned guard is dropped.
pub fn follow_readiness(
    admin: &Client,
    namespace: &str,
    service: &str,
    port_name: &str,
    replicas: Vec<Replica>,
) -> Following {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (admin, namespace) = (admin.clone(), namespace.to_owned());
    let (service, port_name) = (service.to_owned(), port_name.to_owned());
    let thread = std::thread::spawn(move || {
        let mut known: Vec<Option<bool>> = vec![None; replicas.len()];
        while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) =
            stopped.recv_timeout(Duration::from_millis(100))
        {
            let seen: Vec<Option<bool>> = replicas.iter().map(|r| Some((r.ready)())).collect();
            if seen != known {
                let endpoints: Vec<(&str, u16, bool)> = replicas
                    .iter()
                    .zip(&seen)
                    .map(|(r, ready)| (r.address.as_str(), r.port, *ready == Some(true)))
                    .collect();
                write_endpoints(&admin, &namespace, &service, &port_name, &endpoints);
                known = seen;
            }
        }
    });
    Following { stop: Some(stop), thread: Some(thread) }
}

/// See [`follow_readiness`].
pub struct Following {
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until a Service has a ready endpoint of ours.
pub fn await_endpoints(admin: &Client, namespace: &str, service: &str, count: usize) {
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={service}"
    );
    wait_until("the Service has its endpoints", Duration::from_secs(60), || {
        let list = admin.read(&path).ok();
        let ready = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default())
            .filter(|endpoint| endpoint["conditions"]["ready"] == true)
            .count();
        if ready >= count { Ok(()) } else { Err(format!("{ready} of {count} are ready")) }
    });
}
