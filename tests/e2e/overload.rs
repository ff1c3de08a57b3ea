//! An API server that refuses requests of packages for a while, as API Priority and Fairness does.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{await_run, condition};
use crate::support::{Client, Interlock, suffix, wait_until};

const CAP: Duration = Duration::from_secs(60);
const FLOW: &str = "flowcontrol.apiserver.k8s.io/v1";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const PATHS: [&str; 3] = [
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];

/// Its plan makes a ConfigMap.
const PACKAGE: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: one-0.1.0}
spec:
  operator: {kind: Operator, name: one}
  version: 0.1.0
  tasks: [{name: config, kind: Apply, spec: {resources: [config.yaml]}}]
  plans:
    deploy:
      strategy: serial
      phases: [{name: all, strategy: serial, steps: [{name: config, tasks: [config]}]}]
  templates:
    config.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "{{ .Name }}-config"}
"#;

/// Requests of packages for ConfigMaps of a namespace are answered 429, until this is dropped: one seat is there for
/// them, and the ConfigMap of an Instance `hang` takes it, as it waits for a webhook that never answers.
struct Overload {
    admin: Client,
    name: String,
    webhook: TcpListener,
}

impl Overload {
    fn of(admin: Client, namespace: &str) -> Self {
        let webhook = TcpListener::bind("127.0.0.1:0").expect("a port");
        let overload = Self { admin, name: format!("overload-{}", suffix()), webhook };
        let metadata = json!({"name": overload.name});
        let level = json!({
            "apiVersion": FLOW, "kind": "PriorityLevelConfiguration", "metadata": metadata,
            "spec": {"type": "Limited", "limited": {
                "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            }},
        });
        let flow = json!({
            "apiVersion": FLOW, "kind": "FlowSchema", "metadata": metadata,
            "spec": {"matchingPrecedence": 5, "priorityLevelConfiguration": metadata, "rules": [{
                "subjects": [{"kind": "Group", "group": {"name": "system:serviceaccounts"}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": [namespace],
                }],
            }]},
        });
        let address = overload.webhook.local_addr().expect("an address");
        let webhook = json!({
            "apiVersion": ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": metadata,
            "webhooks": [{
                "name": "hang.example.com", "clientConfig": {"url": format!("https://{address}/")},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
                }],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "matchConditions": [{"name": "one", "expression": "object.metadata.name == 'hang-config'"}],
                "failurePolicy": "Ignore", "timeoutSeconds": 30, "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        for (path, object) in PATHS.iter().zip([level, flow, webhook]) {
            overload.admin.post(path, &object).ok();
        }
        wait_until("the API server knows the flow", CAP, || {
            let found = overload.admin.read(&format!("{}/{}", PATHS[1], overload.name)).ok();
            let taken = condition(&found, "Dangling")["status"] == "False";
            if taken { Ok(()) } else { Err(found.to_string()) }
        });
        overload
    }

    /// Waits until the seat is taken.
    fn await_hanging(&self) -> TcpStream {
        self.webhook.accept().expect("a call of the webhook").0
    }
}

impl Drop for Overload {
    fn drop(&mut self) {
        for path in PATHS.iter().rev() {
            self.admin.delete(&format!("{path}/{}", self.name));
        }
    }
}

/// A counter of this process, over all labels that contain this text.
fn count(process: &Interlock, name: &str, labels: &str) -> f64 {
    let (_, text) = process.ops("/metrics").expect("metrics");
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(labels));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// The plans of a namespace whose requests are answered 429 say so, send few requests meanwhile, and end when the
/// API server takes them again. Those of another namespace do not wait.
#[test]
fn a_namespace_pauses_while_the_api_server_refuses_its_requests() {
    const INSTANCES: usize = 4;
    let (cluster, process) = Interlock::shared();
    let (busy, calm) = (Ground::new(cluster, "busy", PACKAGE), Ground::new(cluster, "calm", PACKAGE));
    let overload = Overload::of(cluster.admin(), busy.ns.name());
    let paused = || count(process, "interlock_requests_put_off_total", "retry_after");
    let refused = || count(process, "rest_client_requests_total", "\"429\"");
    let before = (paused(), refused());
    busy.create("hang", "one-0.1.0", &json!({}));
    let hanging = overload.await_hanging();
    let names: Vec<String> = (0..INSTANCES).map(|i| format!("demo-{i}")).collect();
    names.iter().for_each(|name| busy.create(name, "one-0.1.0", &json!({})));
    for name in &names {
        busy.await_that(name, "it says that the API server refuses", |found: &Value| {
            found["status"]["conditions"].to_string().to_lowercase().contains("too many requests")
        });
    }
    wait_until("requests wait", CAP, || if paused() > before.0 { Ok(()) } else { Err("none".to_owned()) });
    calm.create("demo", "one-0.1.0", &json!({}));
    await_run(&calm.user, "demo", "deploy", "");
    assert!(refused() > before.1, "some were refused");
    drop((overload, hanging));
    for name in names.iter().map(String::as_str).chain(["hang"]) {
        await_run(&busy.user, name, "deploy", "");
    }
}
