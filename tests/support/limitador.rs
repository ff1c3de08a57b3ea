//! Limitador at an address, which a proxy asks.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::process::{self, Running};
use super::{Cluster, peers, testbed, wait_for};

/// Of its gRPC service; Envoy Gateway has the usual one on all addresses.
pub const PORT: u16 = 8083;

/// A process; killed when dropped.
pub struct Limitador {
    address: String,
    file: PathBuf,
    log: PathBuf,
    process: Option<Running>,
}

impl Limitador {
    /// At an address of the test's network namespace, without limits.
    pub fn start(cluster: &Cluster, address: &str) -> Self {
        let place = |kind: &str| cluster.dir().join(format!("limitador-{address}.{kind}"));
        let mut limitador =
            Self { address: address.to_owned(), file: place("yaml"), log: place("log"), process: None };
        limitador.set_limits("[]");
        limitador.restart();
        limitador
    }

    /// Kills it, where it runs.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it, without the counts that it had.
    pub fn restart(&mut self) {
        self.kill();
        let mut command = process::tethered(&testbed::BIN.join("testbed"), &peers::limitador());
        command.arg(format!("{}:{PORT}", self.address)).arg(&self.file);
        let mut process = Running::start(command, self.log.clone());
        wait_for("Limitador listens", Duration::from_secs(60), || {
            // It says where what it listens on is another's.
            assert!(!process.has_ended(), "{}", process.said());
            std::net::TcpStream::connect((self.address.as_str(), PORT)).is_ok()
        });
        self.process = Some(process);
    }

    /// Its file of limits, as the ConfigMap has it; the next question is answered by them.
    pub fn set_limits(&self, limits: &str) {
        // It may read at any time.
        let new = self.file.with_extension("new");
        std::fs::write(&new, limits).expect("its limits");
        std::fs::rename(new, &self.file).expect("its limits");
    }

    /// What it was asked since the beginning: `{"asked": {"domain": …, "descriptors": […]}, "limited": …}`.
    pub fn asked(&self) -> Vec<Value> {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}
