//! Our own definition of DataPlanes, on a control plane of its own: the others have Kong's.

use serde_json::{Value, json};

use super::data_plane;
use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Client, Cluster, Interlock, Namespace};

const API: &str = "gateway-operator.konghq.com/v1beta1";

fn plane(name: &str, patch: Value) -> Value {
    let mut plane = data_plane(name, &json!({"name": "proxy", "image": "kong:3.9"}), false);
    json_patch::merge(&mut plane["spec"], &patch);
    plane
}

fn ingress(ingress: Value) -> Value {
    json!({"network": {"services": {"ingress": ingress}}})
}

fn containers(containers: Value) -> Value {
    json!({"deployment": {"podTemplateSpec": {"spec": {"containers": containers}}}})
}

/// Ports of the Service, and one variable of a container that stands second.
fn with_ports(variable: &str, value: &str, ports: &Value) -> Value {
    let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": variable, "value": value}]});
    let mut patch = containers(json!([{"name": "sidecar", "image": "x"}, proxy]));
    json_patch::merge(&mut patch, &ingress(json!({"ports": ports})));
    patch
}

/// What is refused: by the schema in Kong's words, and by the webhook where a schema cannot tell.
fn refusals() -> Vec<(&'static str, Value)> {
    let budget = json!({"minAvailable": 1, "maxUnavailable": "50%"});
    let ports: Vec<Value> = (1..=65).map(|port| json!({"port": port})).collect();
    let extension = |more: Value| {
        let mut extension = json!({"group": "konnect.konghq.com", "kind": "KonnectExtension", "name": "x"});
        json_patch::merge(&mut extension, &more);
        json!({"extensions": [extension]})
    };
    let strategy =
        |blue_green: Value| json!({"deployment": {"rollout": {"strategy": {"blueGreen": blue_green}}}});
    let postgres = json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_DATABASE", "value": "postgres"}]});
    vec![
        (
            "Using both replicas and scaling fields is not allowed.",
            json!({"deployment": {"scaling": {"horizontal": {"maxReplicas": 3}}}}),
        ),
        (
            "Cannot set NodePort when service type is not NodePort or LoadBalancer",
            ingress(json!({"type": "ClusterIP", "ports": [{"port": 80, "nodePort": 30080}]})),
        ),
        (
            "Cannot set ExternalTrafficPolicy for ClusterIP service.",
            ingress(json!({"type": "ClusterIP", "externalTrafficPolicy": "Local"})),
        ),
        ("Unsupported value: \"ExternalName\"", ingress(json!({"type": "ExternalName"}))),
        ("must have at most 64 items", ingress(json!({"ports": ports}))),
        (
            "You can specify only one of maxUnavailable and minAvailable in a single PodDisruptionBudgetSpec.",
            json!({"resources": {"podDisruptionBudget": {"spec": budget}}}),
        ),
        (
            "You can specify only one of maxUnavailable and minAvailable in a single PodDisruptionBudgetSpec.",
            json!({"resources": {"podDisruptionBudget": {"spec": {}}}}),
        ),
        ("Extension not allowed for DataPlane", extension(json!({"group": "example.com"}))),
        (
            "Cross namespace references not allowed for extension references",
            extension(json!({"namespace": "other"})),
        ),
        (
            "Unsupported value: \"Never\": supported values: \"BreakBeforePromotion\", \"AutomaticPromotion\"",
            strategy(json!({"promotion": {"strategy": "Never"}})),
        ),
        (
            "supported values: \"ScaleDownOnPromotionScaleUpOnRollout\"",
            strategy(json!({"resources": {"plan": {"deployment": "DeleteOnPromotionRecreateOnRollout"}}})),
        ),
        (
            "Each port from spec.network.services.ingress.ports has to have an accompanying port in KONG_PORT_MAPS env",
            with_ports("KONG_PORT_MAPS", "80:8000", &json!([{"port": 443, "targetPort": 8443}])),
        ),
        (
            "Each port from spec.network.services.ingress.ports has to have an accompanying port in KONG_PROXY_LISTEN \
             or KONG_STREAM_LISTEN env",
            with_ports(
                "KONG_PROXY_LISTEN",
                "0.0.0.0:8000",
                &json!([{"port": 443, "targetPort": "proxy-ssl"}]),
            ),
        ),
        ("DataPlane requires an image to be set on proxy container", json!({"deployment": null})),
        (
            "DataPlane requires an image to be set on proxy container",
            containers(json!([{"name": "sidecar", "image": "x"}])),
        ),
        (
            "DataPlane supports only db mode 'off'",
            containers(json!([{"name": "sidecar", "image": "x"}, postgres])),
        ),
    ]
}

/// Fields that the schema does not name are kept as they are, and no field is unknown.
fn fields_are_kept(user: &Client) {
    let odd = json!({
        "deployment": {"hardened": "enabled", "podTemplateSpec": {"spec": {"priorityClassName": "x", "odd": {"a": [1, null]}}}},
        "pluginsToInstall": [{"name": "p"}],
        "network": {"konnectCertificate": {"issuer": {"name": "i"}}, "services": {"ingress": {"ipFamilies": ["IPv4"]}}},
    });
    let object = plane("odd", odd);
    user.kubectl_in(&["apply", "--server-side", "--validate=strict", "-f", "-"], &object.to_string()).ok();
    let stored = user.get("dataplane", "odd").expect("it");
    let mut wanted = object["spec"].clone();
    wanted["network"]["services"]["ingress"]["type"] = json!("LoadBalancer");
    similar_asserts::assert_eq!(stored["spec"], wanted);
}

fn a_promotion_is_not_disturbed(ns: &Namespace<'_>, admin: &Client, user: &Client) {
    let path = ns.path(API, "dataplanes", "edge");
    let condition = |reason: &str| {
        json!({"status": {"rollout": {"conditions": [{
            "type": "RolledOut", "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2024-01-01T00:00:00Z",
        }]}}})
    };
    admin.merge_patch(&format!("{path}/status"), &condition("PromotionInProgress")).ok();
    let edit = json!({"spec": {"deployment": {"podTemplateSpec": {"spec": {"priorityClassName": "x"}}}}});
    let said = user.merge_patch(&path, &edit).refused(422);
    let text = "DataPlane spec cannot be updated when promotion is in progress";
    assert!(said.to_string().contains(text), "{said}");
    user.merge_patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).ok();
    admin.merge_patch(&format!("{path}/status"), &condition("WaitingForChange")).ok();
    user.merge_patch(&path, &edit).ok();
}

/// Autoscalers and `kubectl scale` find the live pods by what the subresource says.
fn scale_knows_the_pods(ns: &Namespace<'_>, admin: &Client, user: &Client) {
    let path = ns.path(API, "dataplanes", "edge");
    let selector = "app=edge,gateway-operator.konghq.com/selector=7f9d0c4e-1111-4222-8333-444455556666";
    let status = json!({"status": {
        "selector": "7f9d0c4e-1111-4222-8333-444455556666", "podSelector": selector, "replicas": 3, "readyReplicas": 3,
    }});
    admin.merge_patch(&format!("{path}/status"), &status).ok();
    user.kubectl(&["scale", "dataplane", "edge", "--replicas=5"]).ok();
    let scale = user.read(&format!("{path}/scale")).ok();
    assert_eq!(scale["spec"]["replicas"], 5);
    assert_eq!(scale["status"], json!({"replicas": 3, "selector": selector}));
}

#[test]
fn it_says_what_kongs_says() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    let ours = interlock(&admin, &["render", "kong-crds"], "").ok();
    admin.kubectl_in(&["apply", "--server-side", "--validate=strict", "-f", "-"], &ours).ok();
    await_definitions(&admin);
    let ns = cluster.namespace("kong");
    let (user, admin) = (ns.user("alice"), ns.admin());
    for (message, patch) in refusals() {
        let out = user.kubectl_in(&["apply", "-f", "-"], &plane("wrong", patch).to_string());
        assert!(out.code != 0 && out.stderr.contains(message), "{message}\n--- is not in\n{out}");
    }
    user.apply(&plane("edge", json!({})).to_string());
    fields_are_kept(&user);
    a_promotion_is_not_disturbed(&ns, &admin, &user);
    scale_knows_the_pods(&ns, &admin, &user);
    let printed = user.kubectl(&["get", "kodp"]).ok();
    let head: Vec<&str> = printed.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["NAME", "READY", "FLAVOR", "PHASE", "AGE"]);
    assert!(
        user.kubectl(&["get", "kong", "-o", "name"])
            .ok()
            .contains("dataplane.gateway-operator.konghq.com/edge")
    );
}
