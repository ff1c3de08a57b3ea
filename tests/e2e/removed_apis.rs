//! Packages that were written for versions of Kubernetes' APIs that are no longer served.

use interlock_core::api::meta;
use interlock_kudo::engine::removed_apis;
use interlock_kudo::engine::removed_apis::REMOVED_APIS;
use serde_json::{Value, json};

use crate::existing::delete_with_dependents;
use crate::support::Interlock;
use crate::support::ground::Ground;

const PACKAGE: &str = include_str!("removed_apis/operatorversion.yaml");
/// An APIService without its server would be one that every client meets.
const LEFT_OUT: &str = "APIService";

/// Every kind of the package, as the API server serves it: what `kubectl get` calls it.
const KINDS: &str = "deployments,statefulsets,daemonsets,replicasets,cronjobs,leases,poddisruptionbudgets,\
                     horizontalpodautoscalers.v2.autoscaling,ingresses,networkpolicies,roles,rolebindings,\
                     clusterroles,clusterrolebindings,ingressclasses,runtimeclasses,priorityclasses,\
                     storageclasses,customresourcedefinitions";

/// What each object was written as, by kind.
fn converted(ground: &Ground<'_>) -> Vec<(String, Value)> {
    let list = ground.ns.admin().kubectl(&["get", KINDS, "-o", "json", "-n", ground.ns.name()]).ok();
    let list: Value = serde_json::from_str(&list).expect("a list");
    let objects = list["items"].as_array().cloned().unwrap_or_default();
    let ours = |object: &Value| {
        let annotations = &object["metadata"]["annotations"];
        let of = object["metadata"]["labels"]["kudo.dev/instance"] == "demo";
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let here = object["metadata"]["namespace"].is_string() || name.contains(ground.ns.name());
        (of && here).then(|| annotations[meta::CONVERTED_FROM].as_str().unwrap_or_default().to_owned())
    };
    objects.iter().filter_map(|object| Some((ours(object)?, object.clone()))).collect()
}

#[test]
fn a_package_of_removed_versions_is_carried_out() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "old", PACKAGE);
    ground.create("demo", "old-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let found = converted(&ground);
    for removed in REMOVED_APIS.iter().filter(|removed| removed.kind != LEFT_OUT) {
        let is = |(from, object): &&(String, Value)| {
            *from == removed.api_version
                && object["kind"] == removed.kind
                && object["apiVersion"] == removed.successor
        };
        assert!(found.iter().any(|one| is(&one)), "{} {} is missing", removed.api_version, removed.kind);
    }
    let spec = |kind: &str, name: &str| {
        let of = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        found.iter().map(|(_, object)| object).find(of).expect(name)["spec"].clone()
    };
    assert_eq!(spec("PodDisruptionBudget", "budget-of-none")["selector"], Value::Null, "it selects no pods");
    assert_eq!(spec("DaemonSet", "extensions-daemonset")["updateStrategy"]["type"], "OnDelete");
    let port = "/rules/0/http/paths/0/backend/service/port";
    assert_eq!(spec("Ingress", "extensions-ingress").pointer(port), Some(&json!({"number": 80})));
    let metrics = spec("HorizontalPodAutoscaler", "autoscaler-v2beta1");
    assert_eq!(metrics["metrics"].as_array().map(Vec::len), Some(5));

    let events = ground.user.read(&ground.ns.path("events.k8s.io/v1", "events", "")).ok();
    let told = events["items"].as_array().cloned().unwrap_or_default();
    let told = told.iter().filter(|event| event["reason"] == removed_apis::CONVERTED);
    let notes: Vec<&str> = told.filter_map(|event| event["note"].as_str()).collect();
    let budget = notes.iter().find(|note| note.contains("/budget ")).expect("an Event of the budget");
    assert!(budget.contains("policy/v1beta1") && budget.contains("Kubernetes 1.25 removed"), "{budget}");

    a_definition_still_asks_what_it_asked(&ground);
    delete_with_dependents(&ground, "demo");
    let definition = format!("customresourcedefinition/things.{}.example.io", ground.ns.name());
    ground.ns.admin().kubectl(&["delete", &definition]).ok();
}

/// Its schema became structural, and asks what it asked.
fn a_definition_still_asks_what_it_asked(ground: &Ground<'_>) {
    let thing = |spec: Value| {
        let api_version = format!("{}.example.io/v1", ground.ns.name());
        let object =
            json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
        let path = ground.ns.path(&api_version, "things", "") + "?dryRun=All";
        ground.ns.admin().post(&path, &object)
    };
    let kept = thing(json!({"size": "small", "port": "http", "more": {"x": 1}})).ok();
    assert_eq!(kept["spec"]["more"]["x"], 1, "v1beta1 keeps what no schema names");
    thing(json!({"size": "small", "port": 80})).ok();
    let said = thing(json!({"size": "medium"})).message().to_owned();
    assert!(said.contains("spec.size: Unsupported value"), "{said}");
    let said = thing(json!({})).message().to_owned();
    assert!(said.contains("spec.size: Required value"), "{said}");
}

/// Schemas as they were written before v1 asked for structural ones: the API server takes what each becomes.
#[test]
fn the_api_server_takes_every_converted_schema() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let schemas: Vec<Value> =
        serde_json::from_str(include_str!("../data/schemas-v1beta1.json")).expect("schemas");
    assert!(schemas.len() >= 30, "{}", schemas.len());
    for (i, schema) in schemas.iter().enumerate() {
        for preserve in [true, false] {
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("things.old{i}.example.io")},
                "spec": {
                    "group": format!("old{i}.example.io"), "version": "v1", "scope": "Namespaced",
                    "names": {"kind": "Thing", "plural": "things"}, "preserveUnknownFields": preserve,
                    "validation": {"openAPIV3Schema": {"properties": {"spec": schema}}},
                },
            });
            let converted = removed_apis::convert(definition);
            let path =
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=Strict";
            let answer = admin.post(path, &converted);
            assert_eq!(answer.code, 201, "{schema:#}\n{converted:#}\n{answer}");
        }
    }
}
