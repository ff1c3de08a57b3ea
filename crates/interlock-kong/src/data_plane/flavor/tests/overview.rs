//! How gateways are shown to people.

use rstest::rstest;
use serde_json::{Value, json};

use super::world::{data_plane, proxy};
use crate::data_plane::flavor::inventory::GatewayInventory;
use crate::data_plane::flavor::overview::{GatewayOverview, trouble};

fn condition(type_: &str, status: &str) -> Value {
    json!({"type": type_, "status": status, "reason": "R", "message": "M".repeat(9000),
           "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 7})
}

fn kong(flavor: &str) -> Value {
    proxy("kong:3.9", Some(flavor))
}

/// A Deployment `kong/edge`, rolled out or not.
fn deployment(flavor: &str, generation: i64, rolled_out: bool) -> Value {
    let observed = if rolled_out { generation } else { generation - 1 };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": "kong", "name": "edge", "generation": generation,
            "labels": {"interlock.dev/guard": "kong-router-flavor"},
        },
        "spec": {"replicas": 1, "template": {"spec": {"containers": [kong(flavor)]}}},
        "status": {"observedGeneration": observed, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1},
    })
}

fn only(object: &Value) -> GatewayOverview {
    let mut inventory = GatewayInventory::default();
    inventory.take(object, "kong");
    inventory.overviews(9).pop().unwrap()
}

#[test]
fn a_gateway_with_one_flavor() {
    let mut plane = data_plane(kong("expressions"), true);
    plane["spec"]["deployment"]["replicas"] = json!(3);
    plane["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    plane["status"] = json!({"readyReplicas": 2});
    let found = only(&plane);
    assert_eq!((found.live.as_str(), &found.next, found.staged), ("expressions", &None, true));
    assert_eq!((found.ready, found.wanted), (Some(2), Some(3)));
    assert_eq!(found.created.as_deref(), Some("2026-01-01T00:00:00Z"));
}

#[test]
fn a_flavor_that_is_rolled_out_is_next() {
    let mut inventory = GatewayInventory::default();
    inventory.take(&deployment("traditional", 1, true), "kong");
    inventory.take(&deployment("traditional_compatible", 2, false), "kong");
    let found = inventory.overviews(9).pop().unwrap();
    let next = found.next.as_deref();
    assert_eq!(
        (found.live.as_str(), next, found.staged),
        ("traditional", Some("traditional_compatible"), false)
    );
}

#[rstest]
#[case::well(&[("Ready", "True")], None)]
#[case::unknown(&[("RouterFlavorConsistent", "Unknown")], None)]
#[case::not_ready(&[("Ready", "False")], Some("Ready"))]
#[case::mixed(&[("Ready", "False"), ("RouterFlavorConsistent", "False")], Some("RouterFlavorConsistent"))]
#[case::stalled(&[("Ready", "False"), ("Stalled", "True")], Some("Stalled"))]
#[case::not_stalled(&[("Stalled", "False")], None)]
#[case::of_others(&[("Progressing", "False")], None)]
fn the_condition_that_reports_a_problem(#[case] conditions: &[(&str, &str)], #[case] expected: Option<&str>) {
    let mut plane = data_plane(kong("expressions"), false);
    let conditions: Vec<Value> = conditions.iter().map(|(type_, status)| condition(type_, status)).collect();
    plane["status"] = json!({"conditions": conditions});
    let mut inventory = GatewayInventory::default();
    inventory.take(&plane, "kong");
    let kept = inventory.gateways().next().unwrap();
    let found = trouble(kept);
    assert_eq!(found.map(|found| found.type_), expected);
    assert!(found.is_none_or(|found| found.message.len() == 1024), "messages are bounded");
}

#[test]
fn a_gateway_in_trouble_comes_before_the_others() {
    let mut inventory = GatewayInventory::default();
    for name in ["a", "b", "c"] {
        let mut plane = data_plane(kong("expressions"), false);
        plane["metadata"]["name"] = json!(name);
        if name == "c" {
            plane["status"] = json!({"conditions": [condition("Ready", "False")]});
        }
        inventory.take(&plane, "kong");
    }
    let names: Vec<String> =
        inventory.overviews(2).into_iter().map(|found| found.subject.name.name).collect();
    assert_eq!(names, ["c", "a"]);
}
