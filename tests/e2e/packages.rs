//! `interlock package` beside the real `kubectl kudo`, and the example packages' lives.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::instances::{await_run, instance};
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, peers, shared};

fn example(folder: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(folder).display().to_string()
}

fn package(user: &Client, ns: &Namespace<'_>, arguments: &[&str]) -> crate::support::Output {
    interlock(user, &[&["package"], arguments, &["-n", ns.name()]].concat(), "")
}

fn kudo(user: &Client, ns: &Namespace<'_>, binary: &Path, arguments: &[&str]) -> crate::support::Output {
    user.command(binary, &[arguments, &["--validate-install=false", "-n", ns.name()]].concat(), "")
}

/// Names and specs of what packages became.
pub fn written(ns: &Namespace<'_>) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for kind in ["operators", "operatorversions"] {
        let list = ns.admin().read(&ns.path("kudo.dev/v1beta1", kind, "")).ok();
        for object in list["items"].as_array().into_iter().flatten() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            all.push((format!("{kind}/{name}"), object["spec"].clone()));
        }
    }
    all
}

/// A package with every conversion that has a rule of its own.
fn quirks() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("templates/sub")).unwrap();
    for (file, text) in [
        ("operator.yaml", include_str!("packages/operator.yaml")),
        ("params.yaml", include_str!("packages/params.yaml")),
        ("templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
        ("templates/sub/b.yaml", "apiVersion: v1\r\nkind: ConfigMap\r\nmetadata: {name: é}"),
    ] {
        std::fs::write(dir.path().join(file), text).unwrap();
    }
    dir
}

/// Writes a package without parameters into a folder.
fn write_package(folder: &Path, operator: &str, templates: &[(&str, &str)]) {
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    std::fs::write(folder.join("operator.yaml"), operator).unwrap();
    std::fs::write(folder.join("params.yaml"), "parameters: []\n").unwrap();
    for (name, text) in templates {
        std::fs::write(folder.join("templates").join(name), text).unwrap();
    }
}

/// Folders of packages: `web` installs `db` and `cache`, and both of them `disk`.
fn nested() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let operator = |name: &str, tasks: &[&str]| {
        let list: String = tasks.iter().map(|task| format!("- {task}\n")).collect();
        let names: Vec<String> = (0..tasks.len()).map(|i| format!("t{i}")).collect();
        format!(
            "name: {name}\noperatorVersion: 1.0.0\nkubernetesVersion: 1.15.0\ntasks:\n{list}\
             plans: {{deploy: {{strategy: serial, phases: [{{name: p, strategy: serial, steps: [{{name: s, tasks: [{}]}}]}}]}}}}\n",
            names.join(", ")
        )
    };
    let web = [
        "{name: t0, kind: KudoOperator, spec: {package: ../db, parameterFile: db.yaml, instanceName: store}}",
        "{name: t1, kind: KudoOperator, spec: {package: ./cache}}",
    ];
    let disk = "{name: t0, kind: KudoOperator, spec: {package: PATH/disk, operatorVersion: 0.0.1}}";
    let make = "{name: t0, kind: Apply, spec: {resources: [disk.yaml]}}";
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-made'}\n";
    write_package(&dir.path().join("web"), &operator("web", &web), &[("db.yaml", "{}\n")]);
    let db = format!("appVersion: '9.0'\n{}", operator("db", &[&disk.replace("PATH", "..")]));
    write_package(&dir.path().join("db"), &db, &[]);
    write_package(&dir.path().join("web/cache"), &operator("cache", &[&disk.replace("PATH", "../..")]), &[]);
    write_package(&dir.path().join("disk"), &operator("disk", &[make]), &[("disk.yaml", config)]);
    dir
}

#[test]
fn what_a_package_installs_is_installed_with_it() {
    let (cluster, _) = Interlock::shared();
    let (ns, dir) = (cluster.namespace("nested"), nested());
    let user = ns.user("alice");
    let web = dir.path().join("web").display().to_string();
    let verified = interlock(&user, &["package", "verify", &web], "").ok();
    assert_eq!(verified, "package web 1.0.0 is valid: 0 errors, 0 warnings\n");
    let out = package(&user, &ns, &["install", &web, "--instance", "demo", "--wait"]).ok();
    assert!(out.contains("plan deploy is COMPLETE"), "{out}");
    let created: Vec<&str> = out.lines().filter(|line| line.starts_with("operatorversion ")).collect();
    let created: Vec<&str> = created.iter().filter_map(|line| line.split(['/', ' ']).nth(2)).collect();
    assert_eq!(created, ["disk-1.0.0", "db-9.0-1.0.0", "cache-1.0.0", "web-1.0.0"], "{out}");
    for name in ["store", "demo-cache", "store-disk", "demo-cache-disk"] {
        assert_eq!(instance(&user, name)["status"]["planStatus"]["deploy"]["status"], "COMPLETE", "{name}");
    }
    assert!(user.get("configmap", "store-disk-made").is_some());
}

#[test]
fn a_package_whose_children_are_missing_is_not_installed() {
    let (cluster, _) = Interlock::shared();
    let (ns, dir) = (cluster.namespace("lacking"), tempfile::tempdir().unwrap());
    let user = ns.user("alice");
    let operator = "name: web\noperatorVersion: 1.0.0\n\
                    tasks: [{name: t, kind: KudoOperator, spec: {package: db, operatorVersion: 1.0.0}}]\n\
                    plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [t]}]}]}}\n";
    write_package(dir.path(), operator, &[]);
    let out = package(&user, &ns, &["install", &dir.path().display().to_string()]);
    assert_eq!(out.code, 3, "{out}");
    let why = format!("OperatorVersion {}/db-1.0.0 does not exist, and the package installs it", ns.name());
    assert!(out.stderr.contains(&why), "{out}");
    assert_eq!(written(&ns), [], "nothing is written");
}

/// Byte for byte what the real client writes, for real packages and for one of quirks.
#[test]
fn what_is_written_is_what_kudo_writes() {
    let binary = peers::kubectl_kudo();
    let (cluster, _) = Interlock::shared();
    let quirks = quirks();
    let mut packages: Vec<PathBuf> = ["elastic", "mysql", "kafka", "first-operator", "redis", "zookeeper"]
        .iter()
        .filter_map(|name| shared::find(&format!("packages/{name}/operator")))
        .collect();
    packages.push(quirks.path().to_owned());
    let nested = nested();
    packages.push(nested.path().join("web"));
    packages
        .extend(["first/operator", "ledger/v1", "ledger/v2"].map(|folder| PathBuf::from(example(folder))));
    for folder in packages {
        let folder = folder.display().to_string();
        let (theirs, ours) = (cluster.namespace("kudo"), cluster.namespace("ours"));
        kudo(&theirs.user("alice"), &theirs, &binary, &["install", &folder, "--skip-instance"]).ok();
        package(&ours.user("alice"), &ours, &["install", &folder, "--skip-instance"]).ok();
        let (theirs, ours) = (written(&theirs), written(&ours));
        assert_eq!(ours.len(), if folder.ends_with("/web") { 8 } else { 2 }, "{folder}");
        similar_asserts::assert_eq!(ours, theirs, "{}", folder);
    }
}

#[test]
fn the_first_example_is_deployed_and_refuses_a_second_change() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("first");
    let user = ns.user("alice");
    let out = package(&user, &ns, &["install", &example("first/operator"), "--wait"]).ok();
    assert!(out.contains("plan deploy is COMPLETE"), "{out}");
    assert_eq!(user.get("configmap", "first-instance-greeting").unwrap()["data"]["greeting"], "Hello");
    user.kubectl(&["apply", "-f", &example("first/louder.yaml")]).ok();
    let refusal = user.kubectl(&["apply", "-f", &example("first/quieter.yaml")]).refused();
    assert!(refusal.contains("plan-running"), "{refusal}");
    let found = await_run(&user, "first-instance", "deploy", "");
    assert_eq!(found["spec"]["parameters"]["GREETING"], "HELLO");
    let again = package(&user, &ns, &["install", &example("first/operator")]).refused();
    assert!(again.contains("already exists in namespace"), "{again}");
}

/// A copy of the second version without some plans.
fn without_plans(names: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = format!("{}/.", example("ledger/v2"));
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(dir.path()).status().unwrap();
    assert!(copied.success());
    let file = dir.path().join("operator.yaml");
    let mut text = std::fs::read_to_string(&file).unwrap();
    for name in names {
        let begin = text.find(&format!("\n  {name}:\n")).expect("the plan") + 1;
        let rest = &text[begin + 3..];
        let end = rest
            .match_indices("\n  ")
            .find(|(i, _)| !rest[i + 3..].starts_with([' ', '-']))
            .map_or(rest.len(), |(i, _)| i + 1);
        text.replace_range(begin..begin + 3 + end, "");
    }
    std::fs::write(file, text).unwrap();
    dir
}

#[test]
fn the_ledger_is_updated_backed_up_upgraded_and_closed() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("ledger");
    let user = ns.user("alice");
    let missing = package(&user, &ns, &["install", &example("ledger/v1")]).refused();
    assert!(missing.contains("missing required parameters during installation: ACCOUNT_BOOK"), "{missing}");
    package(&user, &ns, &["install", &example("ledger/v1"), "-p", "ACCOUNT_BOOK=main", "--wait"]).ok();
    let name = "ledger-instance";
    assert_eq!(instance(&user, name)["metadata"]["finalizers"][0], "kudo.dev.instance.cleanup");

    user.kubectl(&["apply", "-f", &example("ledger/busier.yaml")]).ok();
    await_run(&user, name, "update", "");
    assert_eq!(user.get("deployment", "ledger-instance-writers").unwrap()["spec"]["replicas"], 3);
    user.kubectl(&["apply", "-f", &example("ledger/saved.yaml")]).ok();
    await_run(&user, name, "backup", "");
    let rename = r#"{"spec":{"parameters":{"ACCOUNT_BOOK":"other"}}}"#;
    let refusal = user.kubectl(&["patch", "instance", name, "--type=merge", "-p", rename]).refused();
    assert!(refusal.contains("immutable"), "{refusal}");
    let wrong = r#"{"spec":{"parameters":{"WRITERS":"many"}}}"#;
    let refusal = user.kubectl(&["patch", "instance", name, "--type=merge", "-p", wrong]).refused();
    assert!(refusal.contains("invalid"), "{refusal}");

    let out = package(&user, &ns, &["upgrade", &example("ledger/v2"), "--wait"]).ok();
    assert!(out.contains("plan upgrade is COMPLETE"), "{out}");
    let down = package(&user, &ns, &["upgrade", &example("ledger/v1")]).refused();
    assert!(down.contains("is the same or smaller as current version"), "{down}");
    let out = package(&user, &ns, &["uninstall", "--instance", name, "--wait"]).ok();
    assert!(out.contains("plan cleanup close/close"), "{out}");
    assert!(user.get("instances.kudo.dev", name).is_none());
}

/// Where the new version has no `upgrade` plan, `update` runs, else `deploy`.
#[test]
fn an_upgrade_falls_back() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    for (missing, plan) in [(&["upgrade"][..], "update"), (&["upgrade", "update"], "deploy")] {
        let ns = cluster.namespace("fallback");
        let user = ns.user("alice");
        package(&user, &ns, &["install", &example("ledger/v1"), "-p", "ACCOUNT_BOOK=main", "--wait"]).ok();
        let newer = without_plans(missing);
        let out = package(&user, &ns, &["upgrade", &newer.path().display().to_string(), "--wait"]).ok();
        assert!(out.contains(&format!("plan {plan} is COMPLETE")), "{out}");
    }
}

/// The version before an upgrade is where the Instance refers to, and the next one is put there.
#[test]
fn an_instance_of_a_version_elsewhere_is_upgraded() {
    let (cluster, _) = Interlock::shared();
    let (ns, catalog) = (cluster.namespace("app"), cluster.namespace("catalog"));
    let user = ns.admin();
    let dir = tempfile::tempdir().unwrap();
    let write = |version: &str| {
        let operator = format!(
            "name: note\noperatorVersion: {version}\ntasks: [{{name: no, kind: Dummy, spec: {{done: true}}}}]\n\
             plans: {{deploy: {{phases: [{{name: p, steps: [{{name: s, tasks: [no]}}]}}]}}}}\n"
        );
        write_package(dir.path(), &operator, &[]);
    };
    let path = dir.path().display().to_string();
    write("1.0.0");
    package(&user, &catalog, &["install", &path, "--skip-instance"]).ok();
    let reference = json!({"name": "note-1.0.0", "namespace": catalog.name()});
    let object = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "note"},
        "spec": {"operatorVersion": reference},
    });
    user.post(&ns.path("kudo.dev/v1beta1", "instances", ""), &object).ok();
    await_run(&user.within(ns.name()), "note", "deploy", "");
    write("1.1.0");
    let out = package(&user, &ns, &["upgrade", &path, "--instance", "note", "--wait"]).ok();
    assert!(out.contains(&format!("operatorversion {}/note-1.1.0 created", catalog.name())), "{out}");
    assert!(out.contains("plan deploy is COMPLETE"), "{out}");
    assert!(written(&ns).is_empty());
}

/// `--wait` ends where the plan does, and says why; KUDO's client waits on.
#[test]
fn a_plan_that_fails_ends_the_wait() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("fails");
    let user = ns.user("alice");
    let dir = tempfile::tempdir().unwrap();
    let operator = "name: fails\noperatorVersion: 1.0.0\ntasks: [{name: no, kind: Dummy, spec: {wantErr: true, fatal: true}}]\n\
                    plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [no]}]}]}}\n";
    std::fs::write(dir.path().join("operator.yaml"), operator).unwrap();
    std::fs::write(dir.path().join("params.yaml"), "{}").unwrap();
    let out = package(&user, &ns, &["install", &dir.path().display().to_string(), "--wait", "--timeout=60s"]);
    assert_eq!(out.code, 1, "{out}");
    assert!(out.stderr.contains("plan deploy ended in FATAL_ERROR"), "{out}");
    assert!(out.stderr.contains("step p/s: "), "{out}");
}
