//! The package of the model: `deploy` by parameter A, `update` by B, C never changes.

use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use serde_json::{Value, json};

/// Namespace of everything.
pub const NAMESPACE: &str = "ns";
pub const INSTANCE: &str = "db";
/// The OperatorVersion.
const VERSION: &str = "db-1.0.0";
/// One that is not there at first.
pub const LATER: &str = "db-2.0.0";

/// What the steps of `deploy` make.
pub const DEPLOYED: [&str; 4] = ["d1", "d2", "d3", "d4"];
/// What the steps of `update` make.
pub const UPDATED: [&str; 4] = ["u1", "u2", "u3", "u4"];
/// What the steps of `cleanup` delete.
pub const CLEANED: [&str; 2] = ["d1", "d2"];

/// The key of the Instance.
pub fn key() -> NamespacedName {
    NamespacedName::new(NAMESPACE, INSTANCE)
}

/// The Instance, as a user writes it.
pub fn manifest() -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"namespace": NAMESPACE, "name": INSTANCE},
        "spec": {"operatorVersion": {"name": VERSION}, "parameters": {"A": "1", "B": "1", "C": "1"}},
    })
}

/// The OperatorVersion.
pub fn operator_version() -> Arc<Value> {
    versioned(VERSION, "1.0.0")
}

/// The one that comes later.
pub fn later_version() -> Arc<Value> {
    versioned(LATER, "2.0.0")
}

fn versioned(name: &str, version: &str) -> Arc<Value> {
    let made = DEPLOYED.iter().chain(&UPDATED);
    let templates: serde_json::Map<_, _> = made.clone().map(|name| (file(name), template(name))).collect();
    let apply = made.map(|name| task("Apply", "apply", name));
    let delete = CLEANED.iter().map(|name| task("Delete", "delete", name));
    let cleanup = phase("all", &CLEANED.map(|name| format!("delete-{name}")));
    Arc::new(json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": {"namespace": NAMESPACE, "name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "1"},
        "spec": {
            "operator": {"name": "db"}, "version": version, "templates": templates,
            "tasks": apply.chain(delete).collect::<Vec<Value>>(),
            "parameters": [
                {"name": "A", "default": "1", "trigger": "deploy"},
                {"name": "B", "default": "1", "trigger": "update"},
                {"name": "C", "default": "1", "trigger": "deploy", "immutable": true},
            ],
            "plans": {
                "deploy": plan(&DEPLOYED), "update": plan(&UPDATED),
                "cleanup": {"strategy": "serial", "phases": [cleanup]},
            },
        },
    }))
}

fn file(name: &str) -> String {
    format!("{name}.yaml")
}

fn template(name: &str) -> Value {
    let data = "data:\n  A: \"{{ .Params.A }}\"\n  B: \"{{ .Params.B }}\"\n";
    Value::from(format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{data}"))
}

fn task(kind: &str, verb: &str, name: &str) -> Value {
    json!({"name": format!("{verb}-{name}"), "kind": kind, "spec": {"resources": [file(name)]}})
}

fn phase(name: &str, tasks: &[String]) -> Value {
    let steps: Vec<Value> = tasks.iter().map(|task| json!({"name": task, "tasks": [task]})).collect();
    json!({"name": name, "strategy": "serial", "steps": steps})
}

/// Two phases of two steps.
fn plan(made: &[&str; 4]) -> Value {
    let [a, b, c, d] = made.map(|name| format!("apply-{name}"));
    json!({"strategy": "serial", "phases": [phase("first", &[a, b]), phase("second", &[c, d])]})
}
