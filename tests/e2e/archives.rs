//! Archives and repositories of packages beside KUDO's own client, v0.19: each reads what the other makes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::packages::written;
use crate::support::interlock::interlock;
use crate::support::{Client, Cluster, Interlock, peers, shared};

/// The folders of real packages.
fn real() -> Vec<PathBuf> {
    let names = ["cowsay", "elastic", "first-operator", "kafka", "mysql", "redis", "zookeeper"];
    let found = names.iter().filter_map(|name| shared::find(&format!("packages/{name}/operator")));
    // KUDO's client takes a folder off the names of entries only as it is cleaned: one with `..` stays.
    found.map(|folder| folder.canonicalize().unwrap()).collect()
}

/// The same and the examples, which KUDO's client installs but does not pack: a default is a number in them.
fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = ["examples/first/operator", "examples/ledger/v2"].map(|folder| root.join(folder));
    real().into_iter().chain(examples).collect()
}

/// Serves the files of a folder until the process ends; its address.
fn serve(folder: &Path) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let path = lines.next().unwrap_or_default();
            let path = path.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            for line in lines {
                if line.is_empty() {
                    break;
                }
            }
            let (status, content) = match std::fs::read(folder.join(path)) {
                Ok(content) => ("200 OK", content),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let length = content.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&content));
        }
    });
    url
}

/// What of a package is applied.
#[track_caller]
fn rendered(user: &Client, source: &[&str]) -> String {
    let flags = ["--seed=a", "--now=2026-01-01T00:00:00Z", "-o", "json"];
    interlock(user, &[&["package", "render"], source, &flags].concat(), "").ok()
}

/// The only file of a folder.
fn only(folder: &Path) -> PathBuf {
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Both clients make an archive of the same name and content of a folder.
#[test]
fn each_reads_the_archives_of_the_other() {
    let (user, kudo) = (Cluster::shared().admin(), peers::kubectl_kudo());
    for folder in real() {
        let folder = folder.to_str().unwrap();
        let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        user.command(&kudo, &["package", "create", folder, "-d", theirs.path().to_str().unwrap()], "").ok();
        let created = ["package", "create", folder, "-d", ours.path().to_str().unwrap()];
        let said = interlock(&user, &created, "").ok();
        let (theirs, ours) = (only(theirs.path()), only(ours.path()));
        assert_eq!(theirs.file_name(), ours.file_name());
        assert_eq!(said, format!("Package created: {}\n", ours.display()));
        let of_folder = rendered(&user, &[folder]);
        assert!(of_folder.contains("apiVersion"), "{of_folder}");
        for archive in [&theirs, &ours] {
            let of_archive = rendered(&user, &[archive.to_str().unwrap()]);
            similar_asserts::assert_eq!(of_archive, of_folder, "{}", archive.display());
        }
        for what in ["parameters", "plans", "tasks"] {
            let told = |package: &str| user.command(&kudo, &["package", "list", what, package], "").ok();
            similar_asserts::assert_eq!(told(ours.to_str().unwrap()), told(folder), "{} of {}", what, folder);
        }
    }
}

/// A package that installs another one of its repository.
fn shop(folder: &Path) {
    let operator = "name: shop\noperatorVersion: 1.0.0\nkubernetesVersion: 1.15.0\n\
                    tasks: [{name: t, kind: KudoOperator, spec: {package: first}}]\n\
                    plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, \
                    steps: [{name: s, tasks: [t]}]}]}}\n";
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    std::fs::write(folder.join("operator.yaml"), operator).unwrap();
    std::fs::write(folder.join("params.yaml"), "parameters: []\n").unwrap();
}

/// Both clients install the same from a repository, whichever of them has written its index.
#[test]
fn each_installs_from_the_repositories_of_the_other() {
    let (cluster, _) = Interlock::shared();
    let (admin, kudo) = (cluster.admin(), peers::kubectl_kudo());
    let (served, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (url, at) = (serve(served.path()), served.path().to_str().unwrap());
    shop(own.path());
    let mut all = folders();
    all.push(own.path().to_owned());
    for folder in &all {
        interlock(&admin, &["package", "create", folder.to_str().unwrap(), "-d", at], "").ok();
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("repository")).unwrap();
    let repositories =
        json!({"repoVersion": "v1", "context": "test", "repositories": [{"name": "test", "url": url}]});
    std::fs::write(home.path().join("repository/repositories.yaml"), repositories.to_string()).unwrap();
    let home = ["--home", home.path().to_str().unwrap()];

    interlock(&admin, &["package", "index", at, "--url", &url], "").ok();
    let ours = std::fs::read_to_string(served.path().join("index.yaml")).unwrap();
    let theirs = cluster.namespace("kudo");
    let user = theirs.user("alice");
    let install = ["install", "shop", "--skip-instance", "--validate-install=false", "-n", theirs.name()];
    user.command(&kudo, &[&install[..], &home].concat(), "").ok();

    admin.command(&kudo, &["repo", "index", at, "--url", &url, "--overwrite"], "").ok();
    let text = std::fs::read_to_string(served.path().join("index.yaml")).unwrap();
    let dated = |text: &str| {
        text.lines().filter(|line| !line.starts_with("generated: ")).collect::<Vec<_>>().join("\n")
    };
    similar_asserts::assert_eq!(dated(&ours), dated(&text));
    let ns = cluster.namespace("ours");
    let user = ns.user("alice");
    let install = ["package", "install", "shop", "--repo", &url, "--skip-instance", "-n", ns.name()];
    interlock(&user, &install, "").ok();
    let (theirs, ours) = (written(&theirs), written(&ns));
    assert_eq!(ours.len(), 4, "{ours:#?}");
    similar_asserts::assert_eq!(ours, theirs);

    let listed = interlock(&admin, &["package", "list", "--repo", &url], "").ok();
    let found = admin.command(&kudo, &[&["search", ""][..], &home].concat(), "").ok();
    let rows = |text: &str| -> Vec<Vec<String>> {
        let words =
            |line: &str| line.split_whitespace().filter(|word| *word != "-").map(str::to_owned).collect();
        text.lines().skip(1).map(words).collect()
    };
    for row in rows(&listed) {
        assert!(
            found.lines().any(|line| row.iter().all(|word| line.contains(word))),
            "{row:?} is not in: {found}"
        );
    }
    assert_eq!(rows(&listed).len(), all.len(), "{listed}");
}
