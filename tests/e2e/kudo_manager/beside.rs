//! The same packages by KUDO's manager and by Interlock, on one control plane, one after the other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::differences::{DIFFERENCES, between};
use super::manager::Manager;
use super::scenario::{Act, Case, Scenario, own, real, run};
use super::snapshot::Snapshot;
use crate::support::{Cluster, Interlock, Namespace, service_path};

const DOCS: &str = include_str!("../../../docs/kudo.md");

/// All cases; a Pod on a fake node runs what is executed in it on this machine, and its files are in this folder.
fn cases(files: &Path) -> Vec<Case> {
    let mut cases = vec![
        case(
            "every",
            own("every"),
            &[
                Act::Install,
                Act::Update("COLOR=blue", "update"),
                Act::Update("FEATURE=true", "update"),
                Act::Update("FEATURE=false", "update"),
                Act::Trigger("job"),
                Act::Trigger("remove"),
                Act::Trigger("broken"),
                Act::Upgrade("update"),
            ],
        ),
        case("parent", own("parent"), &[Act::Install, Act::Update("COLOR=green", "deploy")]),
        case("pipe", piping(files), &[Act::Install, Act::Update("COLOR=green", "deploy")]),
    ];
    let mut add = |operator, acts: &'static [Act]| {
        cases.extend(real(operator).map(|package| case(operator, package, acts)));
    };
    add("first-operator", &[Act::Install]);
    add("mysql", &[Act::Install, Act::Update("PASSWORD=tiger", "deploy"), Act::Trigger("backup")]);
    add("elastic", &[Act::Install, Act::Update("DATA_NODE_COUNT=3", "deploy")]);
    cases
}

fn case(operator: &'static str, package: PathBuf, acts: &'static [Act]) -> Case {
    Case { operator, package, acts }
}

/// A package that reads files out of a Pod, whose volume is this folder.
fn piping(files: &Path) -> PathBuf {
    std::fs::write(files.join("page.html"), "<h1>\n</h1>").expect("a file");
    std::fs::write(files.join("vars"), "A=1\nB=x=y\n").expect("a file");
    let package = files.join("package");
    let templates = package.join("templates");
    std::fs::create_dir_all(&templates).expect("a folder");
    let from = own("pipe");
    let copied = ["operator.yaml", "params.yaml", "templates/pod.yaml", "templates/use.yaml"];
    for file in copied {
        let text = std::fs::read_to_string(from.join(file)).expect("a file of the package");
        let text = text.replace("FOLDER", &files.display().to_string());
        std::fs::write(package.join(file), text).expect("a file of the package");
    }
    package
}

/// How plan deploy of packages ends that have an object of an API that Kubernetes has removed.
fn of_removed_apis(cluster: &Cluster) -> Vec<String> {
    let packages = ["redis", "zookeeper"].map(|operator| Some((operator, real(operator)?)));
    let installed =
        |(operator, package): (&str, PathBuf)| Scenario::new(cluster, operator, &package).act(Act::Install);
    packages.into_iter().flatten().map(installed).collect()
}

/// What all cases come to, side by side; the namespaces stay until everything was compared.
fn run_all<'a>(cluster: &'a Cluster, cases: &[Case]) -> Vec<(Namespace<'a>, Vec<(String, Snapshot)>)> {
    std::thread::scope(|threads| {
        let running: Vec<_> = cases.iter().map(|case| threads.spawn(move || run(cluster, case))).collect();
        running.into_iter().map(|thread| thread.join().expect("the case")).collect()
    })
}

#[test]
fn they_make_the_same_but_for_what_is_explained() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    if !cluster.has_workloads() {
        return;
    }
    let files = tempfile::tempdir().expect("a folder");
    let cases = cases(files.path());
    let manager = Manager::install(&cluster);
    let kudo = run_all(&cluster, &cases);
    assert!(of_removed_apis(&cluster).iter().all(|ended| ended == "FATAL_ERROR"));
    manager.remove();
    let _process = Interlock::install(&cluster, &[]);
    let ours = run_all(&cluster, &cases);
    assert!(of_removed_apis(&cluster).iter().all(|ended| ended == "COMPLETE"));

    let (mut seen, mut unexplained) = (BTreeSet::new(), Vec::new());
    for ((case, (_, kudo)), (_, ours)) in cases.iter().zip(&kudo).zip(&ours) {
        for ((act, kudo), (_, ours)) in kudo.iter().zip(ours) {
            let after = format!("{}, {act}", case.operator);
            for found in between(kudo, ours) {
                let why: Vec<usize> = found.explained(&after).collect();
                if why.is_empty() {
                    unexplained.push(format!("{after}: {found}"));
                }
                seen.extend(why);
            }
        }
    }
    assert!(unexplained.is_empty(), "{} are not explained:\n{}", unexplained.len(), unexplained.join("\n"));
    for (i, difference) in DIFFERENCES.iter().enumerate() {
        assert!(
            seen.contains(&i),
            "{} does not occur any more: take it off ({})",
            difference.at,
            difference.why
        );
        assert!(
            DOCS.contains(&format!("`{}`", difference.at)),
            "docs/kudo.md does not tell of {}",
            difference.at
        );
    }
}
