//! `db`, of two versions, and `web`, whose first two versions install those of `db`; the third installs nothing.

use serde_json::{Value, json};

const CONFIG: &str = "{{ if eq .Params.FAIL \"true\" }}{{ fail \"there is no disk\" }}{{ end }}\n\
                      apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-config'}\n\
                      data: {size: '{{ .Params.SIZE }}', version: '{{ .OperatorVersion }}'}\n";
const GATE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Name }}-gate'}\n\
                    spec: {type: LoadBalancer, ports: [{port: 80}]}\n";
const PARAMETERS: &str = "SIZE: {{ .Params.SIZE }}\nFAIL: {{ .Params.FAIL }}\n\
                          {{ if eq .Params.GATED \"true\" }}GATED: yes{{ end }}\n";
const AFTER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-after'}\n\
                     data: {size: '{{ .Params.SIZE }}'}\n";

/// One phase of steps, each with the task of its name.
fn plan(tasks: &[&str]) -> Value {
    let steps: Vec<Value> = tasks.iter().map(|task| json!({"name": task, "tasks": [task]})).collect();
    json!({"strategy": "serial", "phases": [{"name": "main", "strategy": "serial", "steps": steps}]})
}

fn version(name: &str, operator: &str, version: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": name},
        "spec": {
            "operator": {"kind": "Operator", "name": operator}, "version": version,
            "parameters": [
                {"name": "SIZE", "default": "1"}, {"name": "FAIL", "default": "false"},
                {"name": "GATED", "default": "false"},
            ],
        },
    });
    json_patch::merge(&mut object["spec"], &spec);
    object
}

/// Its plans wait at a Service without an address where GATED is true, and fail where FAIL is.
fn db(number: &str) -> Value {
    let change = plan(&["config", "gate"]);
    let spec = json!({
        "appVersion": "9.0",
        "tasks": [
            {"name": "config", "kind": "Apply", "spec": {"resources": ["config.yaml"]}},
            {"name": "gate", "kind": "Toggle", "spec": {"parameter": "GATED", "resources": ["gate.yaml"]}},
            {"name": "leave", "kind": "Dummy", "spec": {"done": true}},
        ],
        "plans": {"deploy": change, "update": change, "cleanup": plan(&["leave"])},
        "templates": {"config.yaml": CONFIG, "gate.yaml": GATE},
    });
    version(&format!("db-9.0-{number}"), "db", number, spec)
}

/// Installs that version of `db`, and then makes a ConfigMap.
fn web(number: &str) -> Value {
    let change = plan(&["db", "after"]);
    let child =
        json!({"package": "db", "appVersion": "9.0", "operatorVersion": number, "parameterFile": "db.yaml"});
    let spec = json!({
        "tasks": [
            {"name": "db", "kind": "KudoOperator", "spec": child},
            {"name": "after", "kind": "Apply", "spec": {"resources": ["after.yaml"]}},
        ],
        "plans": {"deploy": change, "update": change},
        "templates": {"db.yaml": PARAMETERS, "after.yaml": AFTER},
    });
    version(&format!("web-{number}"), "web", number, spec)
}

/// Makes the ConfigMaps `after` and `alone`, and installs nothing.
fn web_alone(number: &str) -> Value {
    let change = plan(&["after", "alone"]);
    let spec = json!({
        "tasks": [
            {"name": "after", "kind": "Apply", "spec": {"resources": ["after.yaml"]}},
            {"name": "alone", "kind": "Apply", "spec": {"resources": ["alone.yaml"]}},
        ],
        "plans": {"deploy": change, "update": change},
        "templates": {"after.yaml": AFTER, "alone.yaml": AFTER.replace("-after", "-alone")},
    });
    version(&format!("web-{number}"), "web", number, spec)
}

/// All of them, as a file.
pub fn all() -> String {
    [db("0.1.0"), db("0.2.0"), web("0.1.0"), web("0.2.0"), web_alone("0.3.0")]
        .map(|object| object.to_string())
        .join("\n---\n")
}

/// An OperatorVersion of version 1 that installs others of version 1.
pub fn installing(operator: &str, packages: &[&str]) -> Value {
    let task = |package: &&str| json!({"name": package, "kind": "KudoOperator", "spec": {"package": package, "operatorVersion": "1"}});
    let tasks: Value = packages.iter().map(task).collect();
    version(
        &format!("{operator}-1"),
        operator,
        "1",
        json!({"tasks": tasks, "plans": {"deploy": plan(packages)}}),
    )
}
