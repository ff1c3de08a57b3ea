//! What commands print without a cluster, and pages that show it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The end of a command.
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// What it answered.
    pub stdout: String,
    /// Errors and notes.
    pub stderr: String,
}

/// Runs a command line as it is written; what `-` reads is the input.
pub fn run(line: &str, input: &str) -> Ended {
    let named = std::env::var_os("INTERLOCK_BINARY").filter(|path| !path.is_empty());
    let program = named.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_interlock")), PathBuf::from);
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).env("KUBECONFIG", "/no/such/file");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: out.status.code().unwrap(), stdout: text(out.stdout), stderr: text(out.stderr) }
}

/// A page with what each of its commands prints now: errors and notes before the answer.
fn printed(page: &str) -> String {
    let mut parts = page.split("```console\n");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (block, rest) = part.split_once("```\n").unwrap();
        out += "```console\n";
        for command in block.lines().filter_map(|line| line.strip_prefix("$ interlock ")) {
            let ended = run(command, "");
            out += &format!("$ interlock {command}\n{}{}", ended.stderr, ended.stdout);
        }
        out += &format!("```\n{rest}");
    }
    out
}

/// A page shows what its commands print, of which it has so many.
#[track_caller]
pub fn assert_shown(file: &str, commands: usize) {
    let page = std::fs::read_to_string(file).unwrap();
    assert_eq!(page.matches("$ interlock ").count(), commands, "commands of {file}");
    let now = printed(&page);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::write(file, &now).unwrap();
    }
    similar_asserts::assert_eq!(page, now, "{}; INTERLOCK_BLESS=1 writes what is printed now", file);
}
