//! When a step is done: by the conditions of custom resources, and by what the controllers of others report.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::{Cluster, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(60);

const PACKAGE: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: health-0.1.0}
spec:
  operator: {kind: Operator, name: health}
  version: 0.1.0
  tasks:
  - {name: database, kind: Apply, spec: {resources: [database.yaml]}}
  - {name: late, kind: Apply, spec: {resources: [late.yaml]}}
  plans:
    deploy: {phases: [{name: all, steps: [{name: database, tasks: [database]}]}]}
    late: {phases: [{name: all, steps: [{name: late, tasks: [late]}]}]}
  templates:
    database.yaml: |
      apiVersion: health.example/v1
      kind: Database
      metadata:
        name: {{ .Name }}
        annotations: {interlock.dev/ready-condition: Available}
    late.yaml: |
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "{{ .Name }}-late"}
      spec:
        progressDeadlineSeconds: 2
        selector: {matchLabels: {app: late}}
        template:
          metadata: {labels: {app: late}}
          spec: {containers: [{name: main, image: never-ready}]}
"#;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.health.example}
spec:
  group: health.example
  scope: Namespaced
  names: {kind: Database, plural: databases}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"#;

#[test]
fn a_step_waits_for_the_condition_that_an_object_names_and_ends_at_an_exceeded_deadline() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    let _interlock = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    admin.apply(DEFINITION);
    let of_group = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "packages"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "interlock-packages", "namespace": "interlock-system"}],
    });
    admin.apply(&of_group.to_string());
    admin
        .kubectl(&["wait", "--for=condition=Established", "crd/databases.health.example", "--timeout=60s"])
        .ok();
    let ground = Ground::new(&cluster, "health", PACKAGE);
    ground.create("one", "health-0.1.0", &json!({}));
    let path = format!("{}/status", ground.ns.path("health.example/v1", "databases", "one"));
    ground.await_that("one", "it waits for the condition", |found| {
        let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0];
        let conditions = found["status"]["conditions"].to_string();
        step["status"] == "IN_PROGRESS" && conditions.contains("it has no condition Available")
    });
    let report = |status: &str| {
        let conditions = json!([{"type": "Available", "status": status, "reason": "Started"}]);
        admin.merge_patch(&path, &json!({"status": {"conditions": conditions}})).ok();
    };
    report("False");
    ground.await_that("one", "it tells the condition", |found| {
        found["status"]["conditions"].to_string().contains("Available is False (Started)")
    });
    report("True");
    ground.await_plan("one", "deploy", "COMPLETE");

    let triggered = json!({"spec": {"planExecution": {"planName": "late"}}});
    ground.user.merge_patch(&ground.path("one"), &triggered).ok();
    let found = ground.await_plan("one", "late", "FATAL_ERROR");
    let said = found["status"]["planStatus"]["late"].to_string();
    assert!(said.contains("exceeded its progress deadline"), "{said}");
    wait_until("an Event tells of it", CAP, || {
        let out = ground.user.kubectl(&["get", "events"]);
        if out.stdout.contains("exceeded its progress deadline") { Ok(()) } else { Err(out.to_string()) }
    });
}

const MISSPELLED: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: misspelled-0.1.0}
spec:
  operator: {kind: Operator, name: misspelled}
  version: 0.1.0
  parameters: [{name: SIZE, default: small, trigger: deploy}]
  tasks: [{name: service, kind: Apply, spec: {resources: [service.yaml]}}]
  plans: {deploy: {phases: [{name: all, steps: [{name: service, tasks: [service]}]}]}}
  templates:
    service.yaml: |
      apiVersion: v1
      kind: Service
      metadata: {name: "{{ .Name }}", labels: {size: "{{ .Params.SIZE }}"}}
      spec: {ports: [{port: 80}], sessionAfinity: ClientIP}
"#;

/// A field that the API server does not know gets an Event for each write, and holds nothing up.
#[test]
fn a_misspelled_field_of_a_template_is_told_of() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "misspelled", MISSPELLED);
    ground.create("one", "misspelled-0.1.0", &json!({}));
    ground.await_plan("one", "deploy", "COMPLETE");
    ground.edit("one", &json!({"SIZE": "large"}));
    ground.await_that("one", "the second run is over", |found| {
        let service = ground.user.get("service", "one").expect("the Service");
        let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        observed && service["metadata"]["labels"]["size"] == "large"
    });
    wait_until("an Event tells of the field", CAP, || {
        let out = ground.user.kubectl(&["get", "events", "--field-selector", "reason=APIWarning"]);
        let said = format!("Service {}/one: unknown field \"spec.sessionAfinity\"", ground.ns.name());
        if out.stdout.contains(&said) { Ok(()) } else { Err(out.to_string()) }
    });
    let list = ground.user.kubectl(&["get", "events", "-o", "json", "--field-selector", "reason=APIWarning"]);
    let list: Value = serde_json::from_str(&list.stdout).expect("JSON");
    let times = |event: &Value| event["series"]["count"].as_u64().or(event["count"].as_u64()).unwrap_or(1);
    let told: u64 = list["items"].as_array().into_iter().flatten().map(times).sum();
    assert!((1..=2).contains(&told), "{list:#}");
}
