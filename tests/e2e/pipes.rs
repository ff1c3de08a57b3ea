//! Pipe tasks: files of a Pod become a ConfigMap and a Secret, which the next step uses.

use std::path::Path;

use interlock_core::effect::MAX_FILE;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{await_event, condition};
use crate::support::{Interlock, wait_until};

/// A Pod on a fake node runs what is executed in it on this machine, so its volume is a folder of this machine.
fn package(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {{name: piping-0.1.0}}
spec:
  operator: {{kind: Operator, name: piping}}
  version: 0.1.0
  tasks:
  - name: generate
    kind: Pipe
    spec:
      pod: pod.yaml
      pipe:
      - {{file: {folder}/index.html, kind: ConfigMap, key: indexHtml}}
      - {{envFile: {folder}/vars, kind: Secret, key: vars}}
  - {{name: use, kind: Apply, spec: {{resources: [use.yaml]}}}}
  plans:
    deploy:
      strategy: serial
      phases:
      - name: main
        strategy: serial
        steps: [{{name: files, tasks: [generate]}}, {{name: app, tasks: [use]}}]
  templates:
    pod.yaml: |
      apiVersion: v1
      kind: Pod
      spec:
        volumes: [{{name: data, emptyDir: {{}}}}]
        initContainers:
        - name: init
          image: example.io/tools
          volumeMounts: [{{name: data, mountPath: {folder}}}]
    use.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {{name: "{{{{ .Name }}}}-user"}}
      data: {{page: "{{{{ .Pipes.indexHtml }}}}", vars: "{{{{ .Pipes.vars }}}}"}}
"#
    )
}

fn read(ground: &Ground<'_>, plural: &str, name: &str) -> Value {
    ground.ns.admin().read(&ground.ns.path("v1", plural, name)).ok()
}

#[test]
fn files_of_a_pod_become_objects() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), b"<h1>\xff\r\n</h1>").unwrap();
    std::fs::write(folder.path().join("vars"), "# two\nA=1\nB=x=y\n").unwrap();
    let ground = Ground::new(cluster, "piping", &package(folder.path()));
    ground.create("demo", "piping-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let [page, vars] = ["indexhtml", "vars"].map(|key| format!("demo.deploy.main.files.generate.{key}"));
    let user = read(&ground, "configmaps", "demo-user");
    assert_eq!(user["data"], json!({"page": page, "vars": vars}));
    let page = read(&ground, "configmaps", &page);
    assert_eq!(page["binaryData"], json!({"index.html": "PGgxPv8NCjwvaDE+"}));
    let secret = read(&ground, "secrets", &vars);
    assert_eq!((&secret["type"], &secret["data"]), (&json!("Opaque"), &json!({"A": "MQ==", "B": "eD15"})));
    wait_until("the Pod is gone", std::time::Duration::from_secs(60), || {
        let pods = ground.ns.admin().read(&ground.ns.path("v1", "pods", "")).ok();
        if pods["items"].as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(pods.to_string()) }
    });
}

#[test]
fn a_file_that_is_too_large_ends_the_plan() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), vec![b'x'; MAX_FILE + 1]).unwrap();
    std::fs::write(folder.path().join("vars"), "A=1\n").unwrap();
    let ground = Ground::new(cluster, "large", &package(folder.path()));
    ground.create("demo", "piping-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "FATAL_ERROR");
    let said = await_event(&ground.ns, "PipeTaskError");
    assert!(said.contains("has more than 1048576 bytes"), "{said}");
}

/// The kubelet of the fake nodes answers a command that ends with an error as one that it could not run, so it is
/// tried again; with the exit code that others tell, the plan ends (a table of the engine).
#[test]
fn a_file_that_is_not_there_is_named() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground::new(cluster, "missing", &package(folder.path()));
    ground.create("demo", "piping-0.1.0", &json!({}));
    ground.await_that("demo", "the step names the file", |found| {
        let told = condition(found, "Reconciling")["message"].as_str().unwrap_or_default();
        told.contains("cat ") && told.contains("index.html: exit status 1")
    });
    std::fs::write(folder.path().join("index.html"), "x").unwrap();
    std::fs::write(folder.path().join("vars"), "A=1\n").unwrap();
    ground.await_plan("demo", "deploy", "COMPLETE");
}

/// The files of a Pod are read one after another; once one failed the others are not tried.
#[test]
fn a_file_that_waits_for_another_names_both() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The task names the one first that is read last.
    let package = package(folder.path()).replace("index.html", "zones.html");
    let ground = Ground::new(cluster, "waiting", &package);
    ground.create("demo", "piping-0.1.0", &json!({}));
    let [waits, failed] = ["zones.html", "vars"].map(|file| folder.path().join(file).display().to_string());
    ground.await_that("demo", "the step names both files", |found| {
        let told = condition(found, "Reconciling")["message"].as_str().unwrap_or_default();
        told.contains(&format!("file {waits} of pipe pod "))
            && told.contains(&format!("it is read after file {failed} of pod "))
            && told.contains(&format!("{failed}: exit status 1"))
    });
    std::fs::write(folder.path().join("zones.html"), "x").unwrap();
    std::fs::write(folder.path().join("vars"), "A=1\n").unwrap();
    ground.await_plan("demo", "deploy", "COMPLETE");
}
