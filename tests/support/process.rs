//! Starting programs that do not outlive the test process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, mpsc};

type Job = (Command, mpsc::Sender<io::Result<Child>>);

/// The kernel's parent-death signal follows the thread that forked; this one never ends,
/// while a test's thread does.
static SPAWNER: LazyLock<Mutex<mpsc::Sender<Job>>> = LazyLock::new(|| {
    let (jobs, inbox) = mpsc::channel::<Job>();
    std::thread::Builder::new()
        .name("spawner".to_owned())
        .spawn(move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        })
        .expect("a thread");
    Mutex::new(jobs)
});

/// Starts a command from the thread that never ends.
pub fn spawn(command: Command) -> io::Result<Child> {
    let (reply, answer) = mpsc::channel();
    SPAWNER.lock().expect("the spawner").send((command, reply)).expect("the spawner lives");
    answer.recv().expect("the spawner answers")
}

/// A command that the kernel kills with the test process; its process id is its own.
pub fn tethered(testbed: &Path, program: &Path) -> Command {
    let mut command = Command::new(testbed);
    command.arg("tether").arg(program);
    command
}

/// A program that ends with its owner, and the file that holds what it says.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts it, tethered: `command` is of [`tethered`].
    pub fn start(mut command: Command, log: PathBuf) -> Self {
        let file = File::options().create(true).append(true).open(&log).expect("its log");
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("its log")).stderr(file);
        Self { child: spawn(command).expect("it starts"), log }
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder that a build script of the project prints; its progress is on the terminal.
pub fn built(script: &str) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let build = Command::new(&script).stderr(Stdio::inherit()).output();
    let build = build.unwrap_or_else(|error| panic!("cannot run {}: {error}", script.display()));
    assert!(build.status.success(), "{} failed; why is printed above", script.display());
    PathBuf::from(String::from_utf8_lossy(&build.stdout).trim())
}

/// Sends a signal by name (`TERM`, `KILL`, `STOP`, `CONT`).
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(sent.is_ok_and(|s| s.success()), "kill -{name} {pid} failed: does it run?");
}

/// Resident memory of a process in MiB.
#[track_caller]
pub fn resident(pid: u32) -> f64 {
    mib(status_kib(pid, "VmRSS:"))
}

/// The most that a process has had resident since it began; in MiB.
#[track_caller]
pub fn peak(pid: u32) -> f64 {
    mib(status_kib(pid, "VmHWM:"))
}

#[expect(clippy::cast_precision_loss, reason = "no process has so much memory")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Processor time that a process has used, in clock ticks (`USER_HZ`, of which Linux has 100 a second).
pub struct Used {
    /// Its name.
    pub name: String,
    /// Ticks.
    pub ticks: u64,
}

impl Used {
    /// `None` where it does not run.
    pub fn by(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        // After the name: utime and stime are the 12th and 13th.
        let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
        Some(Self { name: name.to_owned(), ticks: ticks.sum() })
    }
}

/// Resident memory of a process at its peak, in KiB, beside what it is when this is made.
pub struct Peak {
    pid: u32,
    before: u64,
}

impl Peak {
    /// From now on.
    #[track_caller]
    pub fn of(pid: u32) -> Self {
        // The kernel forgets the peak so far (proc(5), clear_refs).
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process is ours");
        Self { pid, before: status_kib(pid, "VmRSS:") }
    }

    /// How much more the peak was.
    #[track_caller]
    pub fn added_kib(&self) -> u64 {
        status_kib(self.pid, "VmHWM:").saturating_sub(self.before)
    }
}

#[track_caller]
fn status_kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field of the kernel");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
