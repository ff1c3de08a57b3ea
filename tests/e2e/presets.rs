//! The presets of guards are evaluated by the API server as they are here: the conditions of webhooks hold what
//! `interlock guard test` says. On recorded objects, and on such that break the types that expressions count on.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use interlock_core::api::object::Gvk;
use interlock_guard::judgement::Guard;
use interlock_guard::{Preset, of_kind, presets};
use serde_json::{Value, json};

use crate::support::{Cluster, wait_until};

const CAP: Duration = Duration::from_secs(90);
const API: &str = "test.interlock.dev/v1";

/// Recorded objects that have a preset, and of each preset one object with fields of other types.
fn objects() -> Vec<(&'static Preset, Value)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/objects/health.jsonl");
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["object"].take());
    let of = |mut object: Value| {
        // Expressions are not asked about what is being deleted.
        object["metadata"].as_object_mut().map(|own| own.remove("deletionTimestamp"));
        Some((of_kind(&Gvk::of(&object)?.group, object["kind"].as_str()?)?, object))
    };
    let mut objects: Vec<_> = rows.filter_map(of).collect();
    let mut broken = BTreeSet::new();
    for (preset, object) in objects.clone() {
        if object["status"].is_object() && broken.insert(&preset.name) {
            objects.extend(broken_ones(&object).into_iter().map(|own| (preset, own)));
        }
    }
    objects
}

fn broken_ones(object: &Value) -> Vec<Value> {
    let with = |path: &[&str], value: Value| {
        let mut object = object.clone();
        *path.iter().fold(&mut object, |at, name| &mut at[*name]) = value;
        object
    };
    let swapped = |value: &Value| match value {
        Value::Number(number) => json!(number.to_string()),
        Value::String(_) => json!(7),
        other => json!([other]),
    };
    let status = object["status"].as_object().unwrap();
    let swapped: Value = status.iter().map(|(name, value)| (name.clone(), swapped(value))).collect();
    vec![
        with(&["status"], json!("text")),
        with(&["status", "conditions"], json!(5)),
        with(&["status", "conditions"], json!(["text"])),
        with(&["status", "conditions"], json!([{"type": 5, "status": true, "reason": null}])),
        with(&["status"], swapped),
        with(&["metadata", "generation"], json!(7.5)),
    ]
}

/// A policy that warns of each condition of a preset that holds.
fn policy(preset: &Preset) -> [Value; 2] {
    let validation = |own: &interlock_guard::api::BusyWhen| {
        json!({
            "expression": format!("!({})", own.expression.replace("oldObject", "object.spec.object")),
            "messageExpression": format!("object.metadata.name + ' is busy by {} of {}.'", own.name, preset.name),
        })
    };
    let rule = json!({"apiGroups": ["test.interlock.dev"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]});
    let policies = "admissionregistration.k8s.io/v1";
    let selector = json!({"matchLabels": {"preset": preset.name}});
    [
        json!({
            "apiVersion": policies, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": preset.name},
            "spec": {
                "failurePolicy": "Ignore", "matchConstraints": {"resourceRules": [rule], "objectSelector": selector},
                "validations": preset.busy.iter().map(validation).collect::<Vec<_>>(),
            },
        }),
        json!({
            "apiVersion": policies, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": preset.name},
            "spec": {"policyName": preset.name, "validationActions": ["Warn"]},
        }),
    ]
}

fn definition() -> Value {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "recordeds.test.interlock.dev"},
        "spec": {
            "group": "test.interlock.dev", "scope": "Cluster",
            "names": {"kind": "Recorded", "plural": "recordeds", "singular": "recorded", "listKind": "RecordedList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn list(items: impl IntoIterator<Item = Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items.into_iter().collect::<Vec<_>>()}).to_string()
}

#[test]
fn presets_decide_in_the_api_server_as_here() {
    let objects = objects();
    if objects.is_empty() {
        return;
    }
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    admin.apply(&definition().to_string());
    admin.apply(&list(presets().iter().flat_map(policy)));
    let mut wanted = BTreeSet::new();
    let mut recorded = Vec::new();
    for (n, (preset, object)) in objects.iter().enumerate() {
        let name = format!("r-{n}");
        let found = Guard::of_preset(preset).unwrap().busy(object);
        wanted.extend(
            found.busy.iter().map(|own| format!("{name} is busy by {} of {}.", own.name, preset.name)),
        );
        recorded.push(json!({
            "apiVersion": API, "kind": "Recorded", "metadata": {"name": name, "labels": {"preset": preset.name}},
            "spec": {"object": object},
        }));
    }
    assert!(wanted.len() > 80, "{}", wanted.len());
    // A policy decides from when the API server has taken it in.
    wait_until("the API server decides as Interlock does", CAP, || {
        let out = admin.kubectl_in(&["create", "--dry-run=server", "-f", "-"], &list(recorded.clone()));
        if out.code != 0 {
            return Err(out.to_string());
        }
        let lines = out.stderr.lines().filter_map(|line| line.split_once("': "));
        let found: BTreeSet<String> = lines.map(|(_, text)| text.to_owned()).collect();
        if found == wanted {
            return Ok(());
        }
        let first =
            |own: &BTreeSet<String>, other| own.difference(other).take(9).cloned().collect::<Vec<_>>();
        Err(format!("only there: {:?}; only here: {:?}", first(&found, &wanted), first(&wanted, &found)))
    });
}
