//! The commands of KUDO's client that the lives of packages in `kudo_client` do not need.

use std::path::Path;

use serde_json::{Value, json};

use crate::kudo_client::{Kudo, assert_all};
use crate::support::instances::{await_run, instance, run_of};

const BOOK: &str = "book";

fn ledger(version: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ledger").join(version);
    folder.display().to_string()
}

/// A file with parameters.
fn parameters(dir: &Path, text: &str) -> String {
    let file = dir.join("parameters.yaml");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

/// A package as an archive, with parameters from files; then every form of what can be read.
#[test]
fn an_archive_is_installed_and_everything_of_it_is_read() {
    let Some(kudo) = Kudo::new("kudo-commands") else { return };
    let (ns, dir) = (kudo.ns.name(), tempfile::tempdir().unwrap());
    let folder = dir.path().display().to_string();
    for version in ["v1", "v2"] {
        assert_eq!(kudo.run(&["package", "verify", &ledger(version)]).ok(), "package is valid\n");
    }
    let made = kudo.run(&["package", "create", &ledger("v1"), "--destination", &folder]).ok();
    let archive = format!("{folder}/ledger-4.1_1.0.0.tgz");
    assert_all(&made, &["Package created: ", &archive]);
    let listed = kudo.run(&["package", "list", "plans", &archive]).ok();
    assert_all(&listed, &["deploy", "backup", "cleanup"]);
    assert_all(&kudo.run(&["package", "list", "tasks", &archive]).ok(), &["back-up-again", "Delete"]);
    assert_all(&kudo.run(&["package", "list", "parameters", &archive]).ok(), &["ACCOUNT_BOOK", "WRITERS"]);

    let file = parameters(dir.path(), "ACCOUNT_BOOK: main\nCURRENCIES: [USD, JPY]\n");
    kudo.run(&["install", &archive, "--instance", BOOK, "-P", &file, "--wait", "--wait-time=90"]).ok();
    let installed = await_run(&kudo.user, BOOK, "deploy", "");
    let given = json!({"ACCOUNT_BOOK": "main", "CURRENCIES": "- USD\n- JPY\n"});
    assert_eq!(installed["spec"]["parameters"], given);
    let file = parameters(dir.path(), "WRITERS: 3\n");
    kudo.run(&["update", "--instance", BOOK, "-P", &file, "--wait"]).ok();
    let updated = await_run(&kudo.user, BOOK, "update", "");
    assert_eq!(updated["spec"]["parameters"]["WRITERS"], "3");

    for (kinds, name) in
        [("operators", "ledger"), ("operatorversions", "ledger-4.1-1.0.0"), ("instances", BOOK)]
    {
        assert_all(&kudo.run(&["get", kinds]).ok(), &[&format!("{kinds} in namespace \"{ns}\""), name]);
        let printed: Value =
            serde_json::from_str(&kudo.run(&["get", kinds, "-o", "json"]).ok()).expect("JSON");
        assert_all(&printed.to_string(), &[&format!("\"name\":\"{name}\"")]);
    }
    let all = kudo.run(&["get", "all", "-o", "yaml"]).ok();
    assert_all(&all, &["kind: Operator\n", "kind: OperatorVersion\n", "kind: Instance\n"]);
    let status = kudo.run(&["plan", "status", "--instance", BOOK, "-o", "yaml"]).ok();
    let status = go_template::yaml::documents(&status).expect("YAML");
    assert_eq!(status[0]["planStatus"]["deploy"]["uid"], run_of(&installed, "deploy"));
    assert_all(&kudo.run(&["version"]).ok(), &["KUDO Version: ", "0.19.0"]);

    let file = parameters(dir.path(), "ROUNDING: half-up\n");
    kudo.run(&["upgrade", &ledger("v2"), "--instance", BOOK, "-P", &file]).ok();
    await_run(&kudo.user, BOOK, "upgrade", "");
    diagnostics(&kudo, dir.path());
    kudo.run(&["uninstall", "--instance", BOOK, "--wait", "--wait-time=90"]).ok();
    assert_eq!(kudo.user.get("instances.kudo.dev", BOOK), None);
}

/// All of the package is there. Of its own manager it finds none, says so, and fails, unless a namespace has the label
/// of that.
fn diagnostics(kudo: &Kudo<'_>, dir: &Path) {
    let into = dir.join("diagnostics");
    let (admin, into_text) = (kudo.ns.admin(), into.display().to_string());
    let collected = kudo.run_as(&admin, &["diagnostics", "collect", "--instance", BOOK, "-O", &into_text]);
    assert_eq!(collected.refused().trim(), "Error: kudo system namespace not found");
    let of_instance = into.join("operator_ledger").join(format!("instance_{BOOK}"));
    for file in [
        "version.yaml".into(),
        "operator_ledger/ledger.yaml".into(),
        "operator_ledger/operatorversion_ledger-4.2-1.1.0/ledger-4.2-1.1.0.yaml".into(),
        format!("operator_ledger/instance_{BOOK}/{BOOK}.yaml"),
        format!("operator_ledger/instance_{BOOK}/deploymentlist.yaml"),
        format!("operator_ledger/instance_{BOOK}/statefulsetlist.yaml"),
    ] {
        assert!(into.join(&file).is_file(), "{file} is not there: {:?}", list(&into));
    }
    let logs = list(&of_instance).into_iter().filter(|file| file.ends_with(".log.gz")).count();
    assert!(logs > 0, "{:?}", list(&of_instance));
    let failed: Vec<String> = list(&into).into_iter().filter(|file| file.ends_with(".err")).collect();
    assert_eq!(failed, [""; 0]);
    let told = std::fs::read_to_string(of_instance.join(format!("{BOOK}.yaml"))).unwrap();
    assert_all(&told, &["name: ledger-4.2-1.1.0", &run_of(&instance(&kudo.user, BOOK), "upgrade")]);

    admin.kubectl(&["label", "namespace", kudo.ns.name(), "app=kudo-manager"]).ok();
    let into = dir.join("again").display().to_string();
    kudo.run_as(&admin, &["diagnostics", "collect", "--instance", BOOK, "-O", &into]).ok();
}

/// Every file below a folder.
fn list(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(list(&path)) } else { files.push(path.display().to_string()) }
    }
    files
}

/// `install --create-namespace` and what the client refuses by itself.
#[test]
fn a_namespace_is_made_for_a_package() {
    let Some(kudo) = Kudo::new("kudo-namespace") else { return };
    let name = format!("{}-made", kudo.ns.name());
    let admin = kudo.ns.admin().within(&name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first/operator");
    let binary = crate::support::peers::kubectl_kudo();
    let arguments = [
        "install",
        &folder.display().to_string(),
        "--instance",
        "made",
        "--create-namespace",
        "--wait",
        "-n",
        &name,
    ];
    admin.command(&binary, &arguments, "").ok();
    await_run(&admin, "made", "deploy", "");
    let space = admin.get("namespace", &name).unwrap();
    assert_eq!(space["metadata"]["annotations"]["created-by"], "kudo-cli");
    admin.command(&binary, &["uninstall", "--instance", "made", "--wait", "-n", &name], "").ok();
    admin.delete(&format!("/api/v1/namespaces/{name}")).ok();
}
