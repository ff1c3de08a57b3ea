//! Holds the rooms to their rules: what a pure room may not name, that imports run downwards, and
//! that no modules rest on each other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "purity/circles.rs"]
mod circles;
#[path = "purity/documents.rs"]
mod documents;
#[path = "purity/house.rs"]
mod house;
#[path = "purity/imports.rs"]
mod imports;
#[path = "purity/tokens.rs"]
mod tokens;

use std::collections::BTreeMap;
use std::path::Path;

use house::Module;

/// Floors from the bottom; a room imports only from floors below it, or from itself.
const FLOORS: [&[&str]; 9] = [
    &["api"],
    &["effect", "telemetry"],
    &["plan", "rollout"],
    &["topology"],
    &["cluster"],
    &["admission"],
    &["controllers", "install", "server"],
    &["run"],
    &["cli"],
];

/// Rooms that are pure as a whole folder.
const PURE: [&str; 6] = ["api", "effect", "plan", "rollout", "topology", "admission"];

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

fn product() -> Vec<Module> {
    house::modules(&house::files(Path::new("src")), "lib.rs")
}

#[test]
fn pure_rooms_are_pure() {
    let mut wrong = Vec::new();
    for module in product().iter().filter(|module| PURE.contains(&module.room())) {
        for (number, line) in &module.lines {
            for word in IMPURE.iter().filter(|word| line.contains(*word)) {
                wrong.push(format!("src/{}:{number}: {word}: {}", module.file.display(), line.trim()));
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
    for module in product().iter().filter(|module| !module.path.is_empty()) {
        let own = module.room();
        let own_floor = floor.get(own).unwrap_or_else(|| panic!("no floor for the room {own}"));
        for (number, line) in &module.lines {
            for start in line.match_indices("crate::").map(|(at, word)| at + word.len()) {
                let named: String =
                    line[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                let Some(other) = floor.get(named.as_str()) else { continue };
                if named != own && other >= own_floor {
                    wrong.push(format!("src/{}:{number}: {own} -> {named}", module.file.display()));
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
    for module in product().iter().filter(|module| module.room() == "cluster") {
        for (number, line) in &module.lines {
            if ["crate::plan", "crate::rollout", "crate::admission", "go_template"]
                .iter()
                .any(|word| line.contains(word))
            {
                wrong.push(format!("src/{}:{number}: {}", module.file.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_threat_model_names_tests_that_exist() {
    let missing = documents::missing(Path::new("docs/threat-model.md"));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
