//! An auth server at an address, which a proxy asks, and what it says of AuthConfigs, as Authorino does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::process::{self, Running};
use super::{Client, Cluster, peers, testbed, wait_for};

/// Of its gRPC service.
pub const PORT: u16 = 8084;

/// A process; killed when dropped.
pub struct AuthServer {
    address: String,
    file: PathBuf,
    log: PathBuf,
    process: Option<Running>,
    /// Whether it takes in AuthConfigs.
    follows: Arc<AtomicBool>,
}

impl AuthServer {
    /// At an address of the test's network namespace.
    pub fn start(cluster: &Cluster, address: &str) -> Self {
        let place = |kind: &str| cluster.dir().join(format!("auth-{address}.{kind}"));
        let (file, log, follows) = (place("json"), place("log"), Arc::new(AtomicBool::new(true)));
        std::fs::write(&file, "{}").expect("its file");
        let mut server =
            Self { address: address.to_owned(), file: file.clone(), log, process: None, follows };
        server.restart();
        let (admin, follows) = (cluster.admin(), Arc::downgrade(&server.follows));
        std::thread::spawn(move || {
            while let Some(follows) = follows.upgrade() {
                if follows.load(Ordering::SeqCst) {
                    take_in(&admin, &file);
                }
                drop(follows);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        server
    }

    /// Takes AuthConfigs in, or leaves them as they are.
    pub fn follow(&self, follows: bool) {
        self.follows.store(follows, Ordering::SeqCst);
    }

    /// Kills it, where it runs.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it.
    pub fn restart(&mut self) {
        self.kill();
        let mut command = process::tethered(&testbed::BIN.join("testbed"), &peers::auth_server());
        command.arg(format!("{}:{PORT}", self.address)).arg(&self.file);
        let mut process = Running::start(command, self.log.clone());
        wait_for("the auth server listens", Duration::from_secs(60), || {
            assert!(!process.has_ended(), "{}", process.said());
            std::net::TcpStream::connect((self.address.as_str(), PORT)).is_ok()
        });
        self.process = Some(process);
    }

    /// What it was asked since the beginning: `{"host": …, "path": …, "let_in": …}`.
    pub fn asked(&self) -> Vec<Value> {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Writes the AuthConfigs by host, and says of each that it is in force.
fn take_in(admin: &Client, file: &Path) {
    let found = admin.read("/apis/authorino.kuadrant.io/v1beta3/authconfigs");
    let mut by_host = Map::new();
    let mut news = Vec::new();
    for object in found.body["items"].as_array().into_iter().flatten() {
        for host in object["spec"]["hosts"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            by_host.insert(host.to_owned(), object["spec"].clone());
        }
        let status = json!({
            "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled"}],
            "summary": {
                "ready": true, "hostsReady": object["spec"]["hosts"], "numHostsReady": "1/1", "numIdentitySources": 1,
                "numMetadataSources": 0, "numAuthorizationPolicies": 0, "numResponseItems": 0,
                "festivalWristbandEnabled": false,
            },
        });
        if object["status"]["summary"]["hostsReady"] != object["spec"]["hosts"] {
            let metadata = &object["metadata"];
            let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
            news.push((text("namespace"), text("name"), status));
        }
    }
    // It may read at any time.
    let new = file.with_extension("new");
    std::fs::write(&new, Value::from(by_host).to_string()).expect("its AuthConfigs");
    std::fs::rename(new, file).expect("its AuthConfigs");
    for (namespace, name, status) in news {
        let path =
            format!("/apis/authorino.kuadrant.io/v1beta3/namespaces/{namespace}/authconfigs/{name}/status");
        // It may be gone.
        admin.merge_patch(&path, &json!({"status": status}));
    }
}
