//! Holds the rooms to their rules: what a pure room may not name, and that imports run downwards.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Floors from the bottom; a room imports only from floors below it, or from itself.
const FLOORS: [&[&str]; 10] = [
    &["api"],
    &["effect", "template", "telemetry"],
    &["plan", "rollout"],
    &["topology"],
    &["cluster"],
    &["admission"],
    &["controllers", "install", "server"],
    &["run"],
    &["cli"],
    &["main"],
];

/// Rooms that are pure as a whole folder.
const PURE: [&str; 7] = ["api", "effect", "template", "plan", "rollout", "topology", "admission"];

/// What a pure room may not name: clients, clocks, randomness, files, processes, threads.
const IMPURE: [&str; 17] = [
    "tokio",
    "kube::Client",
    "kube::api::Api",
    "kube::runtime",
    "hyper",
    "axum",
    "std::fs",
    "std::net::Tcp",
    "UdpSocket",
    "std::process",
    "std::thread",
    "std::env::",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "new_v4",
    "rand::",
];

fn sources(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

fn room(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The lines of a file that are code and not tests.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let body = text.split("#[cfg(test)]").next().unwrap();
    body.lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn is_test(path: &Path) -> bool {
    path.components().any(|c| {
        let name = c.as_os_str().to_string_lossy();
        name.starts_with("tests") || name.contains("_test") || name == "sim.rs" || name == "fixtures.rs"
    })
}

#[test]
fn pure_rooms_are_pure() {
    let mut wrong = Vec::new();
    for (path, text) in sources(Path::new("src")) {
        if !PURE.contains(&room(&path).as_str()) || is_test(&path) {
            continue;
        }
        for (number, line) in code(&text) {
            for word in IMPURE.iter().filter(|word| line.contains(*word)) {
                wrong.push(format!("src/{}:{number}: {word}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "pure rooms name what has effects:\n{}", wrong.join("\n"));
}

#[test]
fn imports_run_downwards() {
    let floor: BTreeMap<&str, usize> =
        FLOORS.iter().enumerate().flat_map(|(i, rooms)| rooms.iter().map(move |r| (*r, i))).collect();
    let mut wrong = Vec::new();
    for (path, text) in sources(Path::new("src")) {
        let own = room(&path);
        if own == "lib" {
            continue;
        }
        let own_floor = floor.get(own.as_str()).unwrap_or_else(|| panic!("no floor for the room {own}"));
        for (number, line) in code(&text) {
            for start in line.match_indices("crate::").map(|(at, word)| at + word.len()) {
                let named: String =
                    line[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                let Some(other) = floor.get(named.as_str()) else { continue };
                if named != own && other >= own_floor {
                    wrong.push(format!("src/{}:{number}: {own} -> {named}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports that do not run downwards:\n{}", wrong.join("\n"));
}

/// `cluster` knows effects and wire types, and no rule.
#[test]
fn the_cluster_knows_no_rule() {
    let mut wrong = Vec::new();
    for (path, text) in sources(Path::new("src")).into_iter().filter(|(p, _)| room(p) == "cluster") {
        for (number, line) in code(&text) {
            if ["crate::plan", "crate::rollout", "crate::admission", "crate::template"]
                .iter()
                .any(|word| line.contains(word))
            {
                wrong.push(format!("src/{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
