//! The Service path itself: the API server reaches a webhook by its EndpointSlices.

use std::time::Duration;

use serde_json::json;

use crate::support::{service_path, wait_for};

/// Without a ready endpoint a write fails with the API server's own words; so the Service is
/// what is dialled.
#[test]
fn a_webhook_is_dialled_by_the_endpoints_of_its_service() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    let ns = cluster.namespace("hooks");
    let admin = ns.admin();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 9443}]},
    });
    admin.post(&ns.path("v1", "services", ""), &service).ok();
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "hook.testbed.interlock.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"service": {"name": "hook", "namespace": ns.name(), "path": "/x"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name()}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    admin.post(path, &configuration).ok();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}});
    let write = || admin.post(&ns.path("v1", "configmaps", ""), &object).message().to_owned();
    let cap = Duration::from_secs(20);
    wait_for("the webhook is registered", cap, || write().contains("no endpoints available for service"));
    let endpoints = |ready| {
        service_path::write_endpoints(
            &admin,
            ns.name(),
            "hook",
            "https",
            &[(service_path::REPLICAS[0], 9443, ready)],
        );
    };
    endpoints(true);
    wait_for("the endpoint is dialled", cap, || {
        write().contains("dial tcp 10.99.0.11:9443: connect: connection refused")
    });
    endpoints(false);
    wait_for("it is not dialled when unready", cap, || {
        write().contains("no endpoints available for service")
    });
}
