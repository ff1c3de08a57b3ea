//! Env files, as kubectl reads them (`kubectl/pkg/util/env_file.go`): one variable a line.

use std::collections::BTreeMap;

/// The variables of a file, by name. Without `=` the value is empty.
///
/// # Errors
/// The first line that is none, without its value, which may be a password.
pub(super) fn parse(content: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let text = std::str::from_utf8(content).map_err(|error| {
        let line = 1 + content[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        format!("line {line} is not UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        if !is_name(name) {
            return Err(format!(
                "line {} names no variable: begin it with a name of letters, digits, -, . and _, and =",
                i + 1
            ));
        }
        found.insert(name.to_owned(), value.to_owned());
    }
    Ok(found)
}

/// Whether a variable and a key of a ConfigMap may have the name (`IsEnvVarName`, apimachinery).
fn is_name(name: &str) -> bool {
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let starts = name.bytes().next().is_some_and(|b| valid(b) && !b.is_ascii_digit());
    starts && name.bytes().all(valid) && name != "." && !name.starts_with("..")
}
