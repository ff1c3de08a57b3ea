use std::fmt::Write as _;

use clap::Parser;
use interlock_kudo::package::bundle::PackageBundle;
use interlock_kudo::package::repository::{IndexedPackage, RepositoryIndex};

use super::server::Server;
use super::*;
use crate::cli::kudo::package::dependencies;

fn package(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = dir.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    dir
}

#[test]
fn templates_are_found_by_kudos_rule() {
    let dir = package(&[
        ("operator.yaml", "name: a"),
        ("params.yaml", ""),
        ("README.md", "x"),
        ("docs/a.yaml", "x"),
        ("templates/params.yaml", "x"),
        ("templates/s/operator.yaml", "x"),
        ("templates/x.yaml.bak", "x"),
        ("templates/ayaml", "x"),
        ("templates/x.txt", "x"),
    ]);
    let source = place::files_of_folder(dir.path()).unwrap();
    let names: Vec<_> = source.templates.keys().map(String::as_str).collect();
    assert_eq!(names, ["params.yaml", "s/operator.yaml", "x.yaml.bak"]);
}

/// The examples can be installed, and all their templates can be parsed.
#[test]
fn the_examples_are_packages() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (dir, name) in [
        ("first/operator", "first-0.1.0"),
        ("ledger/v1", "ledger-4.1-1.0.0"),
        ("ledger/v2", "ledger-4.2-1.1.0"),
    ] {
        let package = Place::Folder(examples.join(dir)).read().unwrap();
        assert_eq!(package.operator_version_name, name);
        for (file, text) in package.operator_version["spec"]["templates"].as_object().unwrap() {
            let parsed = interlock_kudo::package::functions::parse(file, text.as_str().unwrap());
            assert!(parsed.is_ok(), "{dir}: {file}: {:?}", parsed.err());
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let dir = package(&[("operator.yaml", "name: a")]);
    let error = place::files_of_folder(dir.path()).unwrap_err().text();
    assert!(error.contains("params.yaml cannot be read"), "{error}");
    let error = place::files_of_folder(Path::new("no/such")).unwrap_err().text();
    assert!(error.contains("no/such is not a folder"), "{error}");
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: SourceFlags,
}

/// What the words name, with what it installs.
fn tree(words: &[&str]) -> Result<dependencies::PackageTree, CliError> {
    dependencies::of(&Line::try_parse_from([&["x"], words].concat()).unwrap().flags)
}

fn names(words: &[&str]) -> Vec<String> {
    let tree = tree(words).unwrap();
    let all = tree.installed.iter().chain([&tree.package]);
    all.map(|package| package.operator_version_name.clone()).collect()
}

/// A package that installs those.
fn operator(name: &str, version: &str, children: &[&str]) -> String {
    let mut text = format!("name: {name}\noperatorVersion: {version}\ntasks:\n");
    for (i, child) in children.iter().enumerate() {
        let _ = writeln!(text, "- {{name: t{i}, kind: KudoOperator, spec: {{package: {child}}}}}");
    }
    text
}

fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let files = files.iter().map(|(path, content)| ((*path).to_owned(), content.to_vec())).collect();
    archive::pack(&files).unwrap()
}

/// The archive of a package that installs those.
fn tgz(name: &str, version: &str, children: &[&str]) -> Vec<u8> {
    packed(&[("operator.yaml", operator(name, version, children).as_bytes()), ("params.yaml", b"{}")])
}

fn entry(bytes: &[u8], url: &str) -> IndexedPackage {
    let package: PackageBundle = in_memory("x", bytes).unwrap().read().unwrap();
    IndexedPackage { urls: vec![url.to_owned()], digest: Some(digest(bytes)), ..IndexedPackage::of(&package) }
}

fn index(entries: Vec<IndexedPackage>) -> String {
    RepositoryIndex::of(entries).unwrap().write("2026-11-26T12:00:00Z")
}

#[test]
fn an_archive_is_the_package_of_its_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ledger/v2");
    let files = place::files_of_folder(&folder).unwrap();
    let mut all: Vec<(String, Vec<u8>)> = files
        .templates
        .into_iter()
        .map(|(path, text)| (format!("templates/{path}"), text.into_bytes()))
        .collect();
    all.push(("operator.yaml".to_owned(), files.operator.into_bytes()));
    all.push(("params.yaml".to_owned(), files.params.into_bytes()));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ledger.tgz");
    fs::write(&file, archive::pack(&all.into_iter().collect()).unwrap()).unwrap();
    let found = tree(&[file.to_str().unwrap()]).unwrap().package;
    assert_eq!(found, Place::Folder(folder).read().unwrap());
}

#[test]
fn what_an_archive_installs_is_in_it() {
    let inner = tgz("cache", "1.0.0", &[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("web.tgz");
    let web = packed(&[
        ("operator.yaml", operator("web", "1.0.0", &["./db", "packages/cache.tgz"]).as_bytes()),
        ("params.yaml", b"{}"),
        ("db/operator.yaml", operator("db", "1.0.0", &["../packages/cache.tgz"]).as_bytes()),
        ("db/params.yaml", b"{}"),
        ("packages/cache.tgz", &inner),
    ]);
    fs::write(&file, web).unwrap();
    assert_eq!(names(&[file.to_str().unwrap()]), ["cache-1.0.0", "db-1.0.0", "web-1.0.0"]);
    // From a folder an archive is named by its path.
    let folder = dir.path().join("shop");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("operator.yaml"), operator("shop", "1.0.0", &["../web.tgz"])).unwrap();
    fs::write(folder.join("params.yaml"), "{}").unwrap();
    let all = names(&[folder.to_str().unwrap()]);
    assert_eq!(all, ["cache-1.0.0", "db-1.0.0", "web-1.0.0", "shop-1.0.0"]);
}

/// What lies beside an archive, and on this machine, is nothing to it.
#[test]
fn an_archive_names_nothing_outside() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    fs::create_dir(&db).unwrap();
    fs::write(db.join("operator.yaml"), operator("db", "1.0.0", &[])).unwrap();
    fs::write(db.join("params.yaml"), "{}").unwrap();
    for child in ["../db", db.to_str().unwrap()] {
        let file = dir.path().join("web.tgz");
        fs::write(&file, tgz("web", "1.0.0", &[child])).unwrap();
        let error = tree(&[file.to_str().unwrap()]).unwrap_err().text();
        assert!(error.contains(&format!("names package {child}, which is not in the archive")), "{error}");
    }
}

#[test]
fn an_address_is_downloaded_once() {
    let server = Server::start();
    let db = server.put("/db.tgz", tgz("db", "1.0.0", &[]));
    let web = server.put("/web.tgz", tgz("web", "1.0.0", &[&db, &db]));
    assert_eq!(names(&[&web]), ["db-1.0.0", "web-1.0.0"]);
    assert_eq!(*server.asked.lock().unwrap(), ["/web.tgz", "/db.tgz"]);
}

#[test]
fn a_name_is_looked_up_in_the_repository_with_what_it_installs() {
    let server = Server::start();
    let mut entries = Vec::new();
    for (name, version, children) in [
        ("web", "1.0.0", &[][..]),
        ("web", "1.10.0", &["db", "cache, operatorVersion: 1.0.0"][..]),
        ("web", "1.9.0", &[]),
        ("db", "2.0.0", &[]),
    ] {
        let bytes = tgz(name, version, children);
        let url = server.put(&format!("/v1/{name}-{version}.tgz"), bytes.clone());
        entries.push(entry(&bytes, &url));
    }
    server.put("/v1/index.yaml", index(entries));
    for repo in [server.url("/v1"), server.url("/v1/"), server.url("/v1/index.yaml")] {
        let found = tree(&["web", "--repo", &repo]).unwrap();
        assert_eq!(found.package.operator_version_name, "web-1.10.0");
        assert_eq!(found.installed[0].operator_version_name, "db-2.0.0");
        // What the repository does not have has to be in the cluster.
        assert_eq!(found.elsewhere, std::collections::BTreeSet::from(["cache-1.0.0".to_owned()]));
    }
    let old = names(&["web", "--repo", &server.url("/v1"), "--operator-version", "1.9.0"]);
    assert_eq!(old, ["web-1.9.0"]);
}

/// The errors as they are printed; `INTERLOCK_BLESS=1` writes what is printed now.
#[test]
fn what_cannot_be_used_is_told() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(dir.path().join(name), bytes).unwrap();
        path(name)
    };
    let web = tgz("web", "1.0.0", &[]);
    let url = server.put("/web.tgz", web.clone());
    let other = entry(&tgz("web", "1.0.0", &["other"]), &url);
    let named = IndexedPackage { name: "db".to_owned(), ..entry(&web, &url) };
    let unsigned = IndexedPackage { name: "cache".to_owned(), urls: Vec::new(), ..entry(&web, &url) };
    server.put("/v1/index.yaml", index(vec![other, named, unsigned]));
    server.put("/page/index.yaml", "<html>");
    let folder = packed(&[("web/operator.yaml", b"x"), ("web/params.yaml", b"x")]);
    let repo = server.url("/v1");
    let of_repository = |name: &str| vec![name.to_owned(), "--repo".to_owned(), repo.clone()];
    let with = |mut words: Vec<String>, flag: &str| {
        words.extend([flag.to_owned(), "9".to_owned()]);
        words
    };
    let cases: [(&str, Vec<String>); 13] = [
        ("a file of another kind", vec![file("web.zip", b"PK")]),
        ("no such folder", vec![path("no/such")]),
        ("a name without a repository", vec!["kafka".to_owned()]),
        ("text that is called an archive", vec![file("text.tgz", b"text")]),
        ("an archive of the folder itself", vec![file("folder.tgz", &folder)]),
        ("a child outside", vec![file("outside.tgz", &tgz("web", "1.0.0", &["../db"]))]),
        ("a name that is not in the repository", of_repository("kafka")),
        ("a version that is not in the repository", with(of_repository("web"), "--operator-version")),
        ("another archive than the digest is of", of_repository("web")),
        ("another package than the entry is of", of_repository("db")),
        ("an entry without an address", of_repository("cache")),
        ("a page", vec!["web".to_owned(), "--repo".to_owned(), server.url("/page")]),
        ("a version of an archive", with(of_repository(&url), "--app-version")),
    ];
    let mut text = String::new();
    for (what, words) in cases {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let error = tree(&words).unwrap_err();
        let _ = writeln!(text, "# {what}\n{}(exit code {})\n", error.text(), error.exit().code());
    }
    let digest = regex::Regex::new("[0-9a-f]{64}").unwrap();
    let text = digest.replace_all(&text, "DIGEST");
    let text = text.replace(&dir.path().display().to_string(), "DIR").replace(&server.url(""), "http://HOST");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/kudo/package/source/errors.txt");
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    similar_asserts::assert_eq!(fs::read_to_string(&golden).unwrap_or_default(), text);
}
