//! Processes pinned to a core, which end with this one.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

/// One core for servers, one for the load.
pub struct Cores {
    pub server: String,
    pub load: String,
}

impl Cores {
    /// The first two that this process may use.
    pub fn two() -> Result<Self, String> {
        let status = std::fs::read_to_string("/proc/self/status")
            .map_err(|error| format!("/proc is needed, so Linux: {error}"))?;
        let list =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
        let mut cores = list.trim().split(',').flat_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse::<u32>().unwrap_or(0)..=last.parse::<u32>().unwrap_or(0)
        });
        let (Some(server), Some(load)) = (cores.next(), cores.next()) else {
            return Err(format!(
                "two cores are needed, one for the server and one for the load; allowed: {list}"
            ));
        };
        for tool in ["taskset", "setpriv"] {
            Command::new(tool)
                .arg("--version")
                .stdout(Stdio::null())
                .status()
                .map_err(|error| format!("{tool} (Debian's package util-linux) does not start: {error}"))?;
        }
        Ok(Self { server: server.to_string(), load: load.to_string() })
    }
}

/// A process; killed when dropped, and by the kernel when this one ends in another way. Its input
/// stays open until it is to end by itself.
pub struct Child(std::process::Child);

impl Child {
    /// Starts a program on one core. What it logs goes nowhere.
    pub fn pinned(core: &str, program: &Path, arguments: &[impl AsRef<OsStr>]) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "taskset", "-c", core]).arg(program).args(arguments);
        // Go reads this; on one core it would choose the same.
        command.env("GOMAXPROCS", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("a process"))
    }

    fn output(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().expect("output is a pipe, read once"))
    }

    /// What it says first.
    pub fn first_line(&mut self) -> String {
        let mut line = String::new();
        self.output().read_line(&mut line).expect("output");
        line.trim().to_owned()
    }

    /// Lets a program end that does so at the end of its input.
    pub fn end(&mut self) {
        drop(self.0.stdin.take());
        let status = self.0.wait().expect("it ends");
        assert!(status.success(), "it ended with {status}");
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// The time that its threads have spent on the core.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        // The name of the program may hold spaces; utime and stime are fields 14 and 15.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        // A tick is 10 ms on every Linux there is (USER_HZ).
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
