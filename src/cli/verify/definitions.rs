//! Whether the definitions are established, and have the fields that this version writes.

use serde_json::{Value, json};

use super::report::CheckResult;
use crate::cli::common::installation::Installation;
use crate::cli::common::reader::ReadOutcome;
use crate::install::crds;

const CHECK: &str = "definitions";
const APPLY: &str =
    "apply them: `interlock render crds | kubectl apply --server-side --force-conflicts -f -`";

pub(super) async fn check(installation: &Installation) -> CheckResult {
    let wanted: Vec<Value> = crds::all().iter().map(|crd| json!(crd)).collect();
    for crd in &wanted {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let read = installation.get("apiextensions.k8s.io", "CustomResourceDefinition", "", name).await;
        if let Some((message, next)) = problem(crd, &read) {
            return CheckResult::failed(CHECK, format!("CustomResourceDefinition {name} {message}"), next);
        }
    }
    CheckResult::ok(CHECK, format!("{} are established, with all fields of this version", wanted.len()))
}

/// What is wrong with a definition, and what to do.
fn problem(wanted: &Value, read: &ReadOutcome) -> Option<(String, String)> {
    let found = match read {
        ReadOutcome::There(found) => found,
        ReadOutcome::Missing => return Some(("does not exist".to_owned(), APPLY.to_owned())),
        ReadOutcome::Unknown(why) => {
            let next = "run this as a user who may read CustomResourceDefinitions";
            return Some((format!("cannot be read: {why}"), next.to_owned()));
        }
    };
    if !found["metadata"]["deletionTimestamp"].is_null() {
        let next = "remove the finalizers of the objects that are left of it, or wait until it is gone";
        return Some(("is being deleted".to_owned(), format!("{next}; then {APPLY}")));
    }
    let mut conditions = found["status"]["conditions"].as_array().into_iter().flatten();
    if !conditions.any(|c| c["type"] == "Established" && c["status"] == "True") {
        let next = "look at its conditions: `kubectl describe crd NAME`";
        return Some(("is not established".to_owned(), next.to_owned()));
    }
    let versions = |crd: &Value| crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
    for version in versions(wanted) {
        let served = versions(found).into_iter().find(|other| other["name"] == version["name"]);
        let Some(served) = served.filter(|served| served["served"] == true) else {
            return Some((format!("does not serve version {}", version["name"]), APPLY.to_owned()));
        };
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        if let Some(field) = lacking(&schema(&version), &schema(&served), "") {
            let message = format!("is of another version: it lacks the field {field}");
            return Some((message, APPLY.to_owned()));
        }
    }
    None
}

/// The first field that a schema lacks. Where it keeps unknown fields it lacks none.
fn lacking(wanted: &Value, found: &Value, path: &str) -> Option<String> {
    if found["x-kubernetes-preserve-unknown-fields"] == true {
        return None;
    }
    let fields = wanted["properties"].as_object().into_iter().flatten();
    let mut fields = fields.filter(|(name, _)| !(path.is_empty() && is_of_every_object(name)));
    let below = fields.find_map(|(name, schema)| {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match found["properties"].get(name) {
            None => Some(path),
            Some(found) => lacking(schema, found, &path),
        }
    });
    let nested = || {
        ["items", "additionalProperties"].into_iter().find_map(|nested| {
            let schema = wanted.get(nested).filter(|schema| schema.is_object())?;
            lacking(schema, &found[nested], path)
        })
    };
    below.or_else(nested)
}

/// The API server adds these to every schema.
fn is_of_every_object(name: &str) -> bool {
    ["apiVersion", "kind", "metadata"].contains(&name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;

    fn definition(change: &Value) -> Value {
        let mut definition = json!({
            "metadata": {"name": "instances.kudo.dev"},
            "spec": {"versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {"properties": {
                "metadata": {"type": "object"},
                "status": {"properties": {"plans": {"items": {"properties": {"uid": {}}}}}},
            }}}}]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        json_patch::merge(&mut definition, change);
        definition
    }

    fn with_schema(schema: &Value) -> Value {
        json!({"spec": {"versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}]}})
    }

    #[rstest]
    #[case::same(json!({}), None)]
    #[case::keeps_all(with_schema(&json!({"x-kubernetes-preserve-unknown-fields": true})), None)]
    #[case::new(json!({"status": null}), Some("is not established"))]
    #[case::terminating(json!({"metadata": {"deletionTimestamp": "now"}}), Some("is being deleted"))]
    #[case::older(with_schema(&json!({"properties": {"status": {"properties": {}}}})), Some("status.plans"))]
    #[case::deeper(
        with_schema(&json!({"properties": {"status": {"properties": {"plans": {"items": {}}}}}})),
        Some("status.plans.uid")
    )]
    #[case::another_version(json!({"spec": {"versions": []}}), Some("does not serve version"))]
    fn what_is_wrong_is_named(#[case] change: Value, #[case] text: Option<&str>) {
        let read = ReadOutcome::There(Arc::new(definition(&change)));
        let found = problem(&definition(&json!({})), &read).map(|(message, _)| message);
        match text {
            None => assert_eq!(found, None),
            Some(text) => assert!(found.clone().is_some_and(|found| found.contains(text)), "{found:?}"),
        }
    }

    #[test]
    fn one_that_is_not_there_is_named() {
        let found = problem(&definition(&json!({})), &ReadOutcome::Missing);
        assert_eq!(found.map(|(message, _)| message).as_deref(), Some("does not exist"));
    }
}
