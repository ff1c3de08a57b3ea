//! KUDO's own manager at the same work.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Cluster, block_on, shared};
use crate::{PACKAGE, instance, through};

/// The manager; killed when dropped.
struct Manager(Child);

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How many Instances a second it carries through their plan; `None` where it is not there. Its
/// webhook is not asked: the Instances are made as it would leave them.
pub fn rate(cluster: &Cluster, count: usize) -> Option<f64> {
    let binary = shared::find("bin/kudo-manager")?;
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
    let _manager = Manager(manager.expect("kudo-manager starts"));
    let namespace = cluster.namespace("kudo");
    cluster.admin().create_package(namespace.name(), PACKAGE);
    Some(block_on(through(&cluster.admin(), namespace.name(), count, scheduled)))
}

/// As KUDO's webhook leaves it.
fn scheduled(number: usize) -> Value {
    let mut object = instance(number);
    let uid = uuid::Uuid::new_v4().to_string();
    object["spec"]["planExecution"] = json!({"planName": "deploy", "uid": uid, "status": "NEVER_RUN"});
    object
}
