//! `examples/add-a-kind`, run: a kind of a folder and a line is guarded like Interlock's own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use interlock::install::InstallOptions;
use serde_json::json;

use crate::support::interlock::apply_installation;
use crate::support::{Cluster, Interlock, wait_until};

#[path = "../../examples/add-a-kind/backup/mod.rs"]
mod backup;

/// Longest wait for what the process does after an event.
const CAP: Duration = Duration::from_secs(60);

const CRD: &str = include_str!("../../examples/add-a-kind/backup/crd.yaml");

/// The binary of the example, beside this test's own. `cargo test` builds it; `cargo test --test e2e` alone does
/// not.
fn example() -> PathBuf {
    let own = std::env::current_exe().expect("this test is a file");
    let binary = own.ancestors().nth(2).expect("it is in target/PROFILE/deps").join("add-a-kind");
    let built = modified(&binary);
    let is_current = |root: &str| newest(Path::new(root)) <= built;
    if !["examples/add-a-kind", "src", "crates"].into_iter().all(is_current) {
        let release = binary.ancestors().any(|folder| folder.ends_with("release")).then_some("--release");
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--locked",
                "--package",
                "add-a-kind",
                "--features",
                "interlock/pod-proxy",
            ])
            .args(release)
            // With it, crates would be built anew.
            .env_remove("RUSTC_BOOTSTRAP")
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the example does not compile");
    }
    binary
}

/// When a file was written; `None` without it.
fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// When the newest source below a folder was written.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries =
        std::fs::read_dir(folder).expect("a folder of the project").map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.is_dir() {
        true => newest(&path),
        false => modified(&path).filter(|_| path.extension().is_some_and(|extension| extension == "rs")),
    };
    entries.filter_map(of).max()
}

const PACKAGE: &str = include_str!("bypass/operatorversion.yaml");
const INSTANCE: &str = "apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: mysql}\n\
                        spec: {operatorVersion: {name: gated-0.1.0}, parameters: {GATED: \"false\"}}\n";

fn backup_of(instance: &str) -> String {
    format!(
        "apiVersion: backup.example.com/v1\nkind: Backup\nmetadata: {{name: nightly}}\nspec: {{instance: {instance}}}\n"
    )
}

#[test]
fn the_kind_is_guarded_and_reconciled() {
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    admin.kubectl_in(&["apply", "-f", "-"], CRD).ok();
    let process = Interlock::prepare(&cluster, &[]).running(example());
    let kinds = interlock::kinds::all().iter().copied().chain([&backup::KIND]).collect();
    let options = InstallOptions { kinds: Vec::leak(kinds), ..process.options(&[]) };
    apply_installation(&cluster, &options);
    process.start();
    process.await_ready();
    process.await_guarding(&cluster);

    let ns = cluster.namespace("backups");
    let user = ns.user("alice");
    user.kubectl_in(&["apply", "-f", "-"], &backup_of("mysql")).ok();
    let refused = user.kubectl_in(&["apply", "-f", "-"], &backup_of("postgres")).refused();
    let sentence = format!("Backup {}/nightly belongs to another Instance [backup-instance]", ns.name());
    for part in [
        sentence.as_str(),
        "\"mysql\" -> \"postgres\"",
        "create a Backup of Instance \"postgres\" under another name",
        "examples/add-a-kind/backup/backup-instance.md",
    ] {
        assert!(refused.contains(part), "{part:?} is not in:\n{refused}");
    }
    // The schema is still the API server's to check, and other fields are free.
    user.kubectl(&["label", "backup", "nightly", "team=a"]).ok();

    let path = ns.path("backup.example.com/v1", "backups", "nightly");
    let phase_is = |wanted: &str| {
        wait_until(&format!("the phase is {wanted}"), CAP, || {
            let found = user.read(&path);
            if found.body["status"]["phase"] == wanted { Ok(()) } else { Err(found.to_string()) }
        });
    };
    phase_is("InstanceMissing");
    // The Instance appears, and goes: the link of the kind says who follows it.
    user.create_package(ns.name(), PACKAGE);
    user.kubectl_in(&["apply", "-f", "-"], INSTANCE).ok();
    phase_is("Ready");
    // A status of others is put right.
    let forged = json!({"status": {"phase": "Done"}});
    cluster.admin().merge_patch(&format!("{path}/status"), &forged).ok();
    phase_is("Ready");
    user.kubectl(&["delete", "instance", "mysql"]).ok();
    phase_is("InstanceMissing");
}
