//! A child that only a person can help.

use serde_json::json;

use super::*;

#[test]
fn a_node_port_that_another_service_has_is_waited_for() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("node-port");
    let holder = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "holder"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]},
    });
    let made = ns.admin().post(&ns.path("v1", "services", ""), &holder).ok();
    let node_port = made["spec"]["ports"][0]["nodePort"].clone();

    let mut spec = spec();
    spec["network"]["services"]["ingress"] = json!({
        "type": "NodePort",
        "ports": [{"name": "http", "port": 80, "targetPort": 8000, "nodePort": node_port}],
    });
    let plane = Plane::create(&ns, "edge", &spec);
    let said = "provided port is already allocated";
    plane.await_stalled("AlreadyAllocated", said);
    plane.await_child("deployments", &plane.deployment());
    plane.await_child("services", "dataplane-admin-edge");
    plane.await_one_event("AlreadyAllocated", said);

    ns.admin().delete(&ns.path("v1", "services", "holder")).ok();
    plane.await_well();
    let ingress = plane.await_child("services", &plane.ingress());
    assert_eq!(ingress["spec"]["ports"][0]["nodePort"], node_port);
    plane.await_one_event("AlreadyAllocated", said);
}
