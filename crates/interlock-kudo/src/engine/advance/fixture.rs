//! Packages for tests of the engine: a template and two tasks for each of a few objects.

use interlock_core::api::object::{Gvk, ObjectKey};
use serde_json::{Value, json};

use super::sim::{Fixture, manifest};

pub fn config_map(name: &str) -> ObjectKey {
    key("v1", "ConfigMap", name)
}

pub fn key(api_version: &str, kind: &str, name: &str) -> ObjectKey {
    ObjectKey { gvk: Gvk::new(api_version, kind), namespace: Some("ns".to_owned()), name: name.to_owned() }
}

/// An object that the Instance made.
pub fn made(api_version: &str, kind: &str, name: &str) -> Value {
    let owner = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "inst", "uid": "uid-1", "controller": true,
        "blockOwnerDeletion": true,
    });
    let metadata = json!({"name": name, "namespace": "ns", "ownerReferences": [owner]});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

/// A package of one plan, whose tasks `apply-X` and `delete-X` each name one template `X.yaml`.
pub fn package(plan: Value) -> Value {
    let kinds = [
        ("a", "v1", "ConfigMap"),
        ("b", "v1", "ConfigMap"),
        ("j", "batch/v1", "Job"),
        ("k", "batch/v1", "Job"),
    ];
    let mut tasks = vec![
        json!({"name": "wait", "kind": "Dummy", "spec": {}}),
        json!({"name": "nothing", "kind": "Dummy", "spec": {"done": true}}),
        json!({"name": "error", "kind": "Dummy", "spec": {"wantErr": true}}),
        json!({"name": "fatal", "kind": "Dummy", "spec": {"wantErr": true, "fatal": true}}),
        json!({"name": "pipe", "kind": "Pipe", "spec": {"pod": "p", "pipe": [{"file": "/f", "kind": "Secret", "key": "k"}]}}),
        json!({"name": "odd", "kind": "Odd"}),
        json!({"name": "empty", "kind": "Apply", "spec": {"resources": []}}),
        json!({"name": "lost", "kind": "Apply", "spec": {"resources": ["lost.yaml"]}}),
        json!({"name": "broken", "kind": "Apply", "spec": {"resources": ["broken.yaml"]}}),
        json!({"name": "mapless", "kind": "Apply", "spec": {"resources": ["mapless.yaml"]}}),
        json!({"name": "toggle", "kind": "Toggle", "spec": {"parameter": "ON", "resources": ["a.yaml"]}}),
        json!({"name": "toggle-lost", "kind": "Toggle", "spec": {"parameter": "LOST", "resources": ["a.yaml"]}}),
        json!({"name": "toggle-list", "kind": "Toggle", "spec": {"parameter": "LIST", "resources": ["a.yaml"]}}),
        json!({"name": "apply-ab", "kind": "Apply", "spec": {"resources": ["b.yaml", "a.yaml"]}}),
    ];
    let mapless = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: x\n";
    let mut templates = json!({"broken.yaml": "{{ .Params.NOPE }}", "mapless.yaml": mapless});
    for (name, version, kind) in kinds {
        templates[format!("{name}.yaml")] = manifest(version, kind, name).into();
        tasks.push(json!({"name": format!("apply-{name}"), "kind": "Apply", "spec": {"resources": [format!("{name}.yaml")]}}));
        tasks.push(json!({"name": format!("delete-{name}"), "kind": "Delete", "spec": {"resources": [format!("{name}.yaml")]}}));
    }
    json!({
        "operator": {"name": "op"}, "version": "1.2.3", "templates": templates, "tasks": tasks,
        "parameters": [{"name": "ON", "default": "true"}, {"name": "LIST", "value-type": "array", "default": "[]"}],
        "plans": {"deploy": plan},
    })
}

/// A plan of one phase; each step is named after its place.
pub fn phase(strategy: Value, steps: &[&[&str]]) -> Value {
    json!({"strategy": "serial", "phases": [phase_named("main", strategy, steps)]})
}

pub fn phase_named(name: &str, strategy: Value, steps: &[&[&str]]) -> Value {
    let steps: Vec<Value> =
        steps.iter().enumerate().map(|(i, tasks)| json!({"name": format!("s{i}"), "tasks": tasks})).collect();
    json!({"name": name, "strategy": strategy, "steps": steps})
}

pub fn one(task: &str) -> Fixture {
    Fixture::new(package(phase(json!("serial"), &[&[task]])))
}
