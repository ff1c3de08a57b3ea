//! The commands of `docs/add-a-kind.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::process::Command;

fn said(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_add-a-kind")).args(arguments).output().expect("it runs");
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_kind_has_events_and_a_webhook() {
    let events = said(&["topology", "events"]);
    assert_eq!(events.lines().filter(|line| line.contains("Backup")).count(), 4, "{events}");
    assert!(said(&["render", "webhooks"]).contains("name: backups.interlock.dev"));
}
