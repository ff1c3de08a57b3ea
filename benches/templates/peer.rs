//! Go's engine, in a process of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::package::Package;
use crate::{REPETITIONS, Times, process};

/// Killed when dropped.
pub struct Peer {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Answer {
    output: String,
    #[serde(default)]
    both: u64,
    #[serde(default)]
    rendered: u64,
    error: Option<String>,
}

impl Peer {
    pub fn start() -> Self {
        let mut command = Command::new(process::built("tests/peers/gotemplate/build").join("gotemplate"));
        command.env("TZ", "UTC").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::spawn(command).expect("gotemplate starts");
        let ask = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, ask, answers }
    }

    /// What it makes of a package, all files one after the other.
    pub fn measure(&mut self, package: &Package) -> (String, Times) {
        let file = |(name, template): &(String, String)| json!({"name": name, "template": template});
        let templates: Vec<Value> = package.templates.iter().map(file).collect();
        let measure = json!({"templates": templates, "repetitions": REPETITIONS});
        writeln!(self.ask, "{}", json!({"data": package.data, "measure": measure})).expect("it reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        let Answer { output, both, rendered, error } = serde_json::from_str(&line).expect("an answer");
        assert_eq!(error, None, "Go renders {}", package.name);
        (output, Times::of(both.into(), rendered.into()))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
