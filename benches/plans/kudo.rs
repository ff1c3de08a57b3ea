//! KUDO's own manager at the same work.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Cluster, block_on, peers};
use crate::{PACKAGE, Rates, completed, instance, make, through};

/// The manager; killed when dropped.
struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it does. Its webhook is not asked: the Instances are made as
/// it would leave them.
pub fn rates(cluster: fn() -> Cluster, count: usize) -> Rates {
    let binary = peers::kudo_manager();
    let cluster = cluster();
    let admin = cluster.admin();
    let spaces = ["made", "there"].map(|name| cluster.namespace(name));
    let [made, there] = spaces.each_ref().map(|space| space.name());
    admin.create_package(made, PACKAGE);
    admin.create_package(there, PACKAGE);
    let manager = start(&binary, &cluster);
    let rate = block_on(through(&admin, made, count, scheduled));
    drop(manager);
    block_on(make(&admin.kube(), there, count, scheduled));
    let _manager = start(&binary, &cluster);
    Rates { made: rate, there: block_on(completed(&admin.kube(), there, count)) }
}

fn start(binary: &Path, cluster: &Cluster) -> Manager {
    let certificates = cluster.dir().join("kudo-certificates");
    let made = Command::new("certs/make").arg(&certificates).arg("127.0.0.1").stdout(Stdio::null()).status();
    assert!(made.expect("certs/make runs").success(), "certs/make failed");
    let log = File::create(cluster.dir().join("kudo-manager.log")).expect("a log");
    let manager = Command::new(binary)
        .env("KUBECONFIG", cluster.admin().kubeconfig())
        .env("KUDO_CERT_DIR", &certificates)
        .stdout(log.try_clone().expect("a file"))
        .stderr(log)
        .spawn();
    Manager(manager.expect("kudo-manager starts"))
}

/// As KUDO's webhook leaves it.
fn scheduled(number: usize) -> Value {
    let mut object = instance(number);
    let uid = uuid::Uuid::new_v4().to_string();
    object["spec"]["planExecution"] = json!({"planName": "deploy", "uid": uid, "status": "NEVER_RUN"});
    object
}
