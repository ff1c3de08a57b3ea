//! Services, disruption budgets and autoscalers.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A spec with this ingress Service.
fn with_ingress(ingress: Value) -> Value {
    json!({"network": {"services": {"ingress": ingress}}})
}

#[test]
fn a_live_ingress_service_as_a_whole() {
    let spec = with_ingress(json!({
        "annotations": {"dns": "edge.example.com", "app": "x"}, "labels": {"team": "edge"},
        "trafficDistribution": "PreferClose",
    }));
    similar_asserts::assert_eq!(
        ingress_service(&edge(), &spec, SideState::Live, "s-1").unwrap(),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": "dataplane-ingress-edge",
                "namespace": "kong",
                "annotations": {"dns": "edge.example.com"},
                "labels": {
                    "app": "edge", "team": "edge",
                    "gateway-operator.konghq.com/managed-by": "dataplane",
                    "gateway-operator.konghq.com/dataplane-service-state": "live",
                    "gateway-operator.konghq.com/dataplane-service-type": "ingress",
                },
                "ownerReferences": owner_references(),
            },
            "spec": {
                "type": "LoadBalancer",
                "externalTrafficPolicy": "Cluster",
                "internalTrafficPolicy": "Cluster",
                "trafficDistribution": "PreferClose",
                "ports": [
                    {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8000},
                    {"name": "https", "protocol": "TCP", "port": 443, "targetPort": 8443},
                ],
                "selector": {"app": "edge", "gateway-operator.konghq.com/selector": "s-1"},
            },
        })
    );
}

#[test]
fn a_preview_is_reached_inside_the_cluster_only() {
    let spec = with_ingress(json!({
        "type": "NodePort", "annotations": {"dns": "edge.example.com"}, "labels": {"team": "edge"},
        "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Local", "name": "front",
        "ports": [{"name": "web", "port": 80, "targetPort": 8000, "nodePort": 30080}],
    }));
    let body = ingress_service(&edge(), &spec, SideState::Preview, "s-2").unwrap();
    assert_eq!(body["metadata"]["name"], "front-preview");
    assert_eq!(body["metadata"].get("annotations"), None);
    assert_eq!(body["metadata"]["labels"].get("team"), None);
    assert_eq!(
        body["spec"],
        json!({
            "type": "ClusterIP",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "web", "protocol": "TCP", "port": 80, "targetPort": 8000}],
            "selector": {"app": "edge", "gateway-operator.konghq.com/selector": "s-2"},
        })
    );
}

#[rstest]
#[case::not_said(json!({}), json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster"}))]
#[case::empty(json!({"type": "", "externalTrafficPolicy": ""}), json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster"}))]
#[case::local(
    json!({"type": "NodePort", "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Local"}),
    json!({"type": "NodePort", "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Local"})
)]
#[case::inside(json!({"type": "ClusterIP"}), json!({"type": "ClusterIP", "internalTrafficPolicy": "Cluster"}))]
fn traffic(#[case] ingress: Value, #[case] expected: Value) {
    let body = ingress_service(&edge(), &with_ingress(ingress), SideState::Live, "s-1").unwrap();
    let mut spec = body["spec"].clone();
    spec.as_object_mut().unwrap().retain(|name, _| name != "ports" && name != "selector");
    assert_eq!(spec, expected);
}

#[rstest]
#[case::none(json!([]), json!([[80, "TCP", 8000, "http"], [443, "TCP", 8443, "https"]]))]
#[case::null(Value::Null, json!([[80, "TCP", 8000, "http"], [443, "TCP", 8443, "https"]]))]
#[case::one_needs_no_name(json!([{"port": 80, "targetPort": 8080}]), json!([[80, "TCP", 8080, null]]))]
#[case::several_do(
    json!([{"port": 80}, {"port": 443, "targetPort": "proxy-ssl", "name": "tls"}]),
    json!([[80, "TCP", 8000, "tcp-80"], [443, "TCP", "proxy-ssl", "tls"]])
)]
#[case::no_target(json!([{"port": 80, "targetPort": null}]), json!([[80, "TCP", 8000, null]]))]
#[case::zero_is_none(json!([{"port": 80, "targetPort": 0, "nodePort": 0}]), json!([[80, "TCP", 8000, null]]))]
#[case::digits_are_a_number(json!([{"port": 80, "targetPort": "8080"}]), json!([[80, "TCP", 8080, null]]))]
#[case::the_first_of_two(
    json!([{"port": 80, "targetPort": 1}, {"port": 80, "targetPort": 2}]), json!([[80, "TCP", 1, null]])
)]
#[case::two_protocols(
    json!([{"port": 53, "name": "dns"}, {"port": 53, "protocol": "UDP"}]),
    json!([[53, "TCP", 8000, "dns"], [53, "UDP", 8000, "udp-53"]])
)]
fn ports_of_the_ingress_service(#[case] ports: Value, #[case] expected: Value) {
    let spec = with_ingress(json!({"ports": ports}));
    let body = ingress_service(&edge(), &spec, SideState::Live, "s-1").unwrap();
    let found: Vec<Value> = body["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| json!([port["port"], port["protocol"], port["targetPort"], port["name"]]))
        .collect();
    assert_eq!(json!(found), expected);
    assert!(body["spec"]["ports"].as_array().unwrap().iter().all(|port| port.get("nodePort").is_none()));
}

#[test]
fn a_port_of_the_nodes_is_kept_on_the_live_side() {
    let spec = with_ingress(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}));
    let body = ingress_service(&edge(), &spec, SideState::Live, "s-1").unwrap();
    assert_eq!(body["spec"]["ports"][0]["nodePort"], 30080);
}

#[rstest]
#[case::not_fixed(Value::Null, SideState::Live, "dataplane-ingress-edge")]
#[case::not_fixed_preview(json!(""), SideState::Preview, "dataplane-ingress-edge-preview")]
#[case::fixed(json!("front"), SideState::Live, "front")]
#[case::fixed_preview(json!("front"), SideState::Preview, "front-preview")]
fn names_of_the_ingress_service(#[case] name: Value, #[case] state: SideState, #[case] expected: &str) {
    let spec = with_ingress(json!({"name": name}));
    assert_eq!(ingress_service_name(&edge(), &spec, state).as_deref(), Ok(expected));
    assert_eq!(ingress_service(&edge(), &spec, state, "s").unwrap()["metadata"]["name"], expected);
}

#[test]
fn a_long_fixed_name_still_has_a_preview() {
    let name = "a".repeat(63);
    let spec = with_ingress(json!({"name": name}));
    let of = |state| ingress_service_name(&edge(), &spec, state).unwrap();
    assert_eq!(of(SideState::Live), name);
    assert!(of(SideState::Preview).len() <= 63 && of(SideState::Preview) != name);
}

#[rstest]
#[case::live(SideState::Live, "dataplane-admin-edge", "live")]
#[case::preview(SideState::Preview, "dataplane-admin-edge-preview", "preview")]
fn an_admin_service_as_a_whole(#[case] state: SideState, #[case] name: &str, #[case] label: &str) {
    similar_asserts::assert_eq!(
        admin_service(&edge(), state, "s-1"),
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": name,
                "namespace": "kong",
                "labels": {
                    "app": "edge",
                    "gateway-operator.konghq.com/managed-by": "dataplane",
                    "gateway-operator.konghq.com/dataplane-service-state": label,
                    "gateway-operator.konghq.com/dataplane-service-type": "admin",
                },
                "ownerReferences": owner_references(),
            },
            "spec": {
                "type": "ClusterIP",
                "clusterIP": "None",
                "publishNotReadyAddresses": true,
                "ports": [{"name": "admin", "protocol": "TCP", "port": 8444, "targetPort": 8444}],
                "selector": {"app": "edge", "gateway-operator.konghq.com/selector": "s-1"},
            },
        })
    );
}

#[test]
fn an_annotation_replaces_the_selector_of_all_services() {
    let object = json!({"metadata": {"namespace": "kong", "name": "edge", "uid": "u-1", "annotations": {
        "gateway-operator.konghq.com/service-selector-override": "app=other,tier=front",
    }}});
    let owner = DataPlaneOwner::of(&object, None).unwrap();
    let selector = json!({"app": "other", "tier": "front"});
    let ingress = ingress_service(&owner, &json!({}), SideState::Live, "s-1").unwrap();
    assert_eq!(ingress["spec"]["selector"], selector);
    assert_eq!(admin_service(&owner, SideState::Preview, "s-1")["spec"]["selector"], selector);
    let budget = json!({"resources": {"podDisruptionBudget": {"spec": {"minAvailable": 1}}}});
    let budget = disruption_budget(&owner, &budget, "s-1").unwrap().unwrap();
    assert_eq!(budget["spec"]["selector"]["matchLabels"]["app"], "edge", "it is about the pods themselves");
}

#[test]
fn a_disruption_budget_as_a_whole() {
    let spec = json!({"resources": {"podDisruptionBudget": {"spec": {
        "maxUnavailable": "25%", "minAvailable": null, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"x": "y"},
    }}}});
    similar_asserts::assert_eq!(
        disruption_budget(&edge(), &spec, "s-1").unwrap().unwrap(),
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {
                "name": "edge",
                "namespace": "kong",
                "labels": {
                    "app": "edge",
                    "gateway-operator.konghq.com/managed-by": "dataplane",
                    "gateway-operator.konghq.com/selector": "s-1",
                },
                "ownerReferences": owner_references(),
            },
            "spec": {
                "selector": {"matchLabels": {"app": "edge", "gateway-operator.konghq.com/selector": "s-1"}},
                "maxUnavailable": "25%",
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        })
    );
    assert_eq!(
        disruption_budget(&edge(), &json!({"resources": {"podDisruptionBudget": null}}), "s"),
        Ok(None)
    );
}

#[test]
fn an_autoscaler_as_a_whole() {
    let metrics = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let spec = json!({"deployment": {"scaling": {"horizontal": {"maxReplicas": 9, "metrics": metrics, "unknown": 1}}}});
    similar_asserts::assert_eq!(
        autoscaler(&edge(), &spec, "dataplane-edge-green").unwrap().unwrap(),
        json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {
                "name": "edge",
                "namespace": "kong",
                "labels": {"app": "edge", "gateway-operator.konghq.com/managed-by": "dataplane"},
                "ownerReferences": owner_references(),
            },
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "dataplane-edge-green"},
                "minReplicas": 1,
                "maxReplicas": 9,
                "metrics": metrics,
            },
        })
    );
    assert_eq!(autoscaler(&edge(), &json!({"deployment": {"scaling": {}}}), "x"), Ok(None));
}
