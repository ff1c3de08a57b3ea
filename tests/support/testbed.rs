//! The supervisor `testbed up` as a process of ours.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use serde::Deserialize;
use serde_json::Value;

use super::process;

/// Folder with `testbed`, `kubectl` and the components; built on first use, with its progress
/// on the terminal.
pub static BIN: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/testbed/build"));

/// What the supervisor says when everything is ready.
#[derive(Clone, Debug, Deserialize)]
pub struct Ready {
    pub dir: PathBuf,
    pub server: String,
    pub ca: PathBuf,
    pub etcd: String,
    pub kubeconfigs: BTreeMap<String, PathBuf>,
    /// Process ids of the components when it became ready.
    #[serde(default)]
    pub pids: BTreeMap<String, u32>,
    #[serde(default)]
    pub audit: Option<PathBuf>,
    pub workloads: bool,
}

/// A running control plane. Dropping it, or the end of this process, stops it.
pub struct Testbed {
    pub ready: Ready,
    talk: Mutex<Talk>,
    child: Mutex<Child>,
}

struct Talk {
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Testbed {
    /// Starts one; `flags` are those of `testbed up`.
    pub fn up(flags: &[&str]) -> Self {
        Self::up_with(flags, &[])
    }

    /// The same with variables in the environment of its components.
    pub fn up_with(flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(BIN.join("testbed"));
        // Control planes live for seconds: a heap that grows costs less than collecting it.
        command.env("GOGC", "off").env("GOMEMLIMIT", "1GiB");
        command.envs(variables.iter().copied());
        command.arg("up").arg("--quiet").args(flags).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::spawn(command).expect("the testbed starts");
        let ask = child.stdin.take().expect("its input");
        let mut answers = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        answers.read_line(&mut line).expect("its first line");
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!("the control plane did not become ready (why is printed above): {error}: {line:?}")
        });
        Self { ready, talk: Mutex::new(Talk { ask, answers }), child: Mutex::new(child) }
    }

    /// One command of the supervisor's line protocol, for example `kill kube-apiserver`.
    #[track_caller]
    pub fn command(&self, line: &str) -> Value {
        let mut talk = self.talk.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        writeln!(talk.ask, "{line}").expect("the supervisor listens");
        let mut answer = String::new();
        talk.answers.read_line(&mut answer).expect("the supervisor answers");
        let answer: Value = serde_json::from_str(&answer)
            .unwrap_or_else(|error| panic!("the supervisor ended at `{line}`: {error}: {answer:?}"));
        assert!(answer.get("error").is_none(), "{line}: {answer}");
        answer
    }

    /// Ends it and its components; once is enough.
    pub fn end(&self) {
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Ok(None) = child.try_wait() {
            process::signal(child.id(), "TERM");
            let _ = child.wait();
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.end();
    }
}
