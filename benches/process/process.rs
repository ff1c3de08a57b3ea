//! `interlock run` as a process that is measured.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::free_port;
use crate::support::interlock::binary;
use crate::support::process::resident;

/// `interlock run`; killed when dropped.
pub struct Process(Child);

impl Process {
    /// Starts it, and says how long it took until it listened.
    pub fn start(kubeconfig: &Path) -> (Self, Duration) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let begun = Instant::now();
        let child = Command::new(binary())
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

    /// Resident memory in MiB.
    pub fn resident(&self) -> f64 {
        resident(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The peak is what is resident now.
pub fn forget_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("a process of ours");
}

/// A kubeconfig of an API server that does not answer.
pub fn kubeconfig_of_nobody() -> String {
    let port = free_port();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}'}}}}]\nusers: [{{name: u, user: {{token: t}}}}]\n"
    )
}
