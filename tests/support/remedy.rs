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

/// Runs a command of a refusal as somebody who copies it does: in a shell that knows the two programs and the cluster,
/// and nothing else, in another folder.
pub fn run(client: &Client, command: &str) -> Output {
    let folder = interlock::binary().parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let script =
        format!("cd / && exec env -i PATH=\"{folder}:$PATH\" KUBECONFIG=\"$KUBECONFIG\" /bin/sh -c \"$1\"");
    client.command(Path::new("/bin/sh"), &["-c", &script, "sh", command], "")
}
