//! The commands that a refusal names, run as they stand.

use std::path::Path;

use super::{Client, Output, interlock};

/// The commands in the line `Next: ` of a text.
#[track_caller]
pub fn commands(text: &str) -> Vec<String> {
    let next = text.lines().find_map(|line| line.trim_start_matches("# ").strip_prefix("Next: "));
    let next = next.unwrap_or_else(|| panic!("no remedy in:\n{text}"));
    let quoted = next.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| text.starts_with("kubectl ") || text.starts_with("interlock "))
        .map(str::to_owned)
        .collect()
}

/// Runs a command of a refusal in a shell, as somebody who copies it does.
pub fn run(client: &Client, command: &str) -> Output {
    let folder = interlock::binary().parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let script = format!("PATH=\"{folder}:$PATH\"\nexec {command}\n");
    client.command(Path::new("/bin/sh"), &["-c", &script], "")
}
