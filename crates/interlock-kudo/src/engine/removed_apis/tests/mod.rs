//! What an object of a removed version becomes.

mod definitions;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn converted(api_version: &str, kind: &str, spec: Value) -> Value {
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    convert(object)
}

/// The spec of what it becomes.
fn spec(api_version: &str, kind: &str, spec: Value) -> Value {
    converted(api_version, kind, spec)["spec"].take()
}

#[test]
fn every_row_names_another_version_of_the_kind() {
    for removed in REMOVED_APIS {
        let found = converted(removed.api_version, removed.kind, json!({}));
        assert_eq!((&found["apiVersion"], &found["kind"]), (&removed.successor.into(), &removed.kind.into()));
        assert_eq!(found["metadata"]["annotations"][meta::CONVERTED_FROM], removed.api_version);
        let successor = Gvk::new(removed.successor, removed.kind);
        assert!(find(&successor).is_none(), "{successor} is served");
        assert_eq!(served(Gvk::new(removed.api_version, removed.kind)), successor);
        let note = note(&found, &"ns/x").unwrap();
        assert!(note.message.contains(removed.api_version) && note.message.contains(removed.successor));
    }
}

#[test]
fn the_page_names_every_row() {
    let page = include_str!("../../../../../../docs/removed-apis.md");
    for RemovedApi { api_version, kind, removed_in, successor, .. } in REMOVED_APIS {
        let row = format!("| `{api_version}` | {kind} | {removed_in} | `{successor}` |");
        assert!(page.contains(&row), "docs/removed-apis.md has no {row}");
    }
}

#[test]
fn what_is_served_stays() {
    let object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}});
    assert_eq!(convert(object.clone()), object);
    assert_eq!(note(&object, &"x"), None);
    let psp = json!({"apiVersion": "policy/v1beta1", "kind": "PodSecurityPolicy", "metadata": {"name": "x"}});
    assert_eq!(convert(psp.clone()), psp, "it has no successor");
}

/// Whatever a field is, nothing is lost and nothing panics.
#[rstest]
#[case(json!("text"))]
#[case(json!(null))]
#[case(json!({"selector": 1, "template": "x", "strategy": "y", "updateStrategy": [], "rules": {}, "metrics": 3}))]
#[case(json!({"rules": [1, {"http": {"paths": "x"}}], "metrics": ["a", {"resource": "b"}], "backend": "c"}))]
#[case(json!({"versions": "v1", "validation": "x", "conversion": 1, "names": null}))]
#[case(json!({"versions": [{"schema": {"openAPIV3Schema": 3}}, 4], "validation": {"openAPIV3Schema": []}}))]
fn fields_of_another_type_are_left_to_the_api_server(#[case] spec: Value) {
    for removed in REMOVED_APIS {
        let found = converted(removed.api_version, removed.kind, spec.clone());
        assert_eq!(found["spec"].is_object(), spec.is_object(), "{found}");
    }
    let annotated =
        json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {"annotations": "x"}});
    assert_eq!(convert(annotated)["metadata"]["annotations"], "x");
    let bare = json!({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": 1});
    assert_eq!(convert(bare)["metadata"], 1);
}

#[rstest]
#[case::of_some_pods(json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}), json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}))]
#[case::of_none(json!({"minAvailable": 1, "selector": {}}), json!({"minAvailable": 1}))]
fn a_disruption_budget_selects_the_same_pods(#[case] before: Value, #[case] after: Value) {
    assert_eq!(spec("policy/v1beta1", "PodDisruptionBudget", before), after);
}

#[rstest]
#[case("extensions/v1beta1")]
#[case("networking.k8s.io/v1beta1")]
fn an_ingress_names_its_services_in_a_field(#[case] api_version: &str) {
    let before = json!({
        "backend": {"serviceName": "rest", "servicePort": "http"},
        "tls": [{"hosts": ["a"]}],
        "rules": [{"host": "a", "http": {"paths": [
            {"path": "/", "backend": {"serviceName": "web", "servicePort": 80}},
            {"path": "/x", "pathType": "Exact", "backend": {"resource": {"kind": "Bucket", "name": "b"}}},
        ]}}],
    });
    let after = json!({
        "defaultBackend": {"service": {"name": "rest", "port": {"name": "http"}}},
        "tls": [{"hosts": ["a"]}],
        "rules": [{"host": "a", "http": {"paths": [
            {"path": "/", "pathType": "ImplementationSpecific", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
            {"path": "/x", "pathType": "Exact", "backend": {"resource": {"kind": "Bucket", "name": "b"}}},
        ]}}],
    });
    assert_eq!(spec(api_version, "Ingress", before), after);
}

#[rstest]
#[case::utilization(
    json!({"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 50}}),
    json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}})
)]
#[case::value(
    json!({"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}),
    json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}})
)]
#[case::container(
    json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "targetAverageUtilization": 5}}),
    json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}}})
)]
#[case::pods(
    json!({"type": "Pods", "pods": {"metricName": "qps", "selector": {"matchLabels": {"a": "b"}}, "targetAverageValue": "1k"}}),
    json!({"type": "Pods", "pods": {"metric": {"name": "qps", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "1k"}}})
)]
#[case::object(
    json!({"type": "Object", "object": {"metricName": "qps", "target": {"kind": "Ingress", "name": "i"}, "targetValue": "2k"}}),
    json!({"type": "Object", "object": {"metric": {"name": "qps"}, "describedObject": {"kind": "Ingress", "name": "i"}, "target": {"type": "Value", "value": "2k"}}})
)]
#[case::external(
    json!({"type": "External", "external": {"metricName": "queue", "metricSelector": {"matchLabels": {"q": "1"}}, "targetAverageValue": 30}}),
    json!({"type": "External", "external": {"metric": {"name": "queue", "selector": {"matchLabels": {"q": "1"}}}, "target": {"type": "AverageValue", "averageValue": 30}}})
)]
fn a_metric_has_its_target_in_a_field(#[case] before: Value, #[case] after: Value) {
    let found = spec(
        "autoscaling/v2beta1",
        "HorizontalPodAutoscaler",
        json!({"maxReplicas": 3, "metrics": [before]}),
    );
    assert_eq!(found, json!({"maxReplicas": 3, "metrics": [after]}));
}

const TEMPLATE: &str = r#"{"metadata": {"labels": {"app": "web"}}, "spec": {}}"#;

fn workload(more: Value) -> Value {
    let mut spec = json!({"template": serde_json::from_str::<Value>(TEMPLATE).unwrap()});
    json_patch::merge(&mut spec, &more);
    spec
}

#[rstest]
#[case::deployment(
    "extensions/v1beta1", "Deployment", json!({"rollbackTo": {"revision": 1}}),
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
           "progressDeadlineSeconds": i32::MAX, "revisionHistoryLimit": i32::MAX})
)]
#[case::deployment_that_says_it_all(
    "extensions/v1beta1", "Deployment",
    json!({"strategy": {"type": "Recreate"}, "progressDeadlineSeconds": 5, "revisionHistoryLimit": 3}),
    json!({"strategy": {"type": "Recreate"}, "progressDeadlineSeconds": 5, "revisionHistoryLimit": 3})
)]
#[case::apps_deployment("apps/v1beta1", "Deployment", json!({}), json!({"revisionHistoryLimit": 2}))]
#[case::later_deployment("apps/v1beta2", "Deployment", json!({}), json!({}))]
#[case::daemon_set("extensions/v1beta1", "DaemonSet", json!({"templateGeneration": 3}), json!({"updateStrategy": {"type": "OnDelete"}}))]
#[case::stateful_set("apps/v1beta1", "StatefulSet", json!({"updateStrategy": {"type": "RollingUpdate"}}), json!({"updateStrategy": {"type": "RollingUpdate"}}))]
fn a_workload_keeps_the_defaults_of_its_time(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] before: Value,
    #[case] after: Value,
) {
    let found = spec(api_version, kind, workload(before));
    let selected = json!({"selector": {"matchLabels": {"app": "web"}}});
    let mut after = workload(after);
    json_patch::merge(&mut after, &selected);
    assert_eq!(found, after);
}

#[test]
fn a_selector_that_is_there_stays() {
    let selector = json!({"selector": {"matchLabels": {"app": "other"}}});
    let found = spec("apps/v1beta2", "ReplicaSet", workload(selector.clone()));
    assert_eq!(found["selector"], selector["selector"]);
}
