//! The process itself: how soon `interlock run` listens, and how much memory it takes when
//! nothing happens.
//!
//! The API server that its kubeconfig names does not answer: ports open before anything is
//! asked, and what watches would bring into memory belongs to other numbers.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../results/mod.rs"]
mod results;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use results::{Goal, Row, median};

const STARTS: usize = 15;
const SETTLED: Duration = Duration::from_secs(2);

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, kubeconfig_of(free_port())).expect("a file in a folder of our own");
    let mut found = Vec::new();
    let mut resident = Vec::new();
    for start in 0..STARTS {
        let (process, took) = Process::start(&kubeconfig);
        found.push(took.as_secs_f64() * 1e3);
        if start < 3 {
            std::thread::sleep(SETTLED);
            resident.extend(process.resident());
        }
    }
    println!("process: from exec to listening, ms: {found:.1?}; resident, MiB: {resident:.1?}");
    results::report(&[
        Row::alone("from exec to listening, ms", median(found), Some(Goal::AtMost(50.0))),
        Row::alone(
            "resident memory, idle and without an API server, MiB",
            median(resident),
            Some(Goal::AtMost(30.0)),
        ),
    ]);
}

/// `interlock run`; killed when dropped.
struct Process(Child);

impl Process {
    fn start(kubeconfig: &Path) -> (Self, Duration) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let begun = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_interlock"))
            .args(["run", "--webhook-bind-address=127.0.0.1", &format!("--webhook-port={}", address.port())])
            .arg(format!("--ops-bind-address=127.0.0.1:{}", free_port()))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let process = Self(child);
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "nothing listens on {address} after 10 s");
            std::thread::sleep(Duration::from_micros(200));
        }
        (process, begun.elapsed())
    }

    /// In MiB.
    fn resident(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
        kib.parse::<f64>().ok().map(|kib| kib / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn kubeconfig_of(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
    )
}
