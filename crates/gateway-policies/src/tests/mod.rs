//! Bounds, refused policies and deliveries. Merging and attachment are in `tests/conformance`.

mod difference;
mod fields;
mod limits;
mod objects;
mod policies;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{Index, ObjectKind, PolicyKind, Rules, TargetKind, Violation, rules_under};

/// Limits of routes; the key `_when` is no rule by itself.
pub struct LimitPolicy;

impl PolicyKind for LimitPolicy {
    fn name(&self) -> &str {
        "LimitPolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn targets(&self) -> &[TargetKind] {
        const { &[TargetKind::whole(ObjectKind::Gateway), TargetKind::with_sections(ObjectKind::HttpRoute)] }
    }

    fn strategies(&self) -> &[crate::Strategy] {
        &[crate::Strategy::Atomic]
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        rules_under(block, "limits")
    }

    fn is_rule(&self, key: &str) -> bool {
        key != "_when"
    }
}

pub fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
        "metadata": {"namespace": "shop", "name": name}, "spec": spec,
    })
}

pub fn gateway(listeners: usize) -> Value {
    let listeners: Vec<Value> = (0..listeners)
        .map(|number| json!({"name": format!("l{number:03}"), "port": 1000 + number, "protocol": "HTTP"}))
        .collect();
    object("Gateway", "gw", json!({"gatewayClassName": "eg", "listeners": listeners}))
}

pub fn route(rules: usize) -> Value {
    object("HTTPRoute", "api", json!({"parentRefs": [{"name": "gw"}], "rules": vec![json!({}); rules]}))
}

pub fn policy(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec.get("targetRef").is_none() && spec.get("targetRefs").is_none() {
        spec["targetRef"] = json!({"kind": "HTTPRoute", "name": "api"});
    }
    json!({
        "apiVersion": "example.org/v1", "kind": "LimitPolicy", "spec": spec,
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
    })
}

pub fn index(objects: &[Value]) -> Index {
    let mut index = Index::new([Arc::new(LimitPolicy) as Arc<dyn PolicyKind>]);
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "example.org/ours"},
    });
    for object in [class].iter().chain(objects) {
        index.observe(object).unwrap();
    }
    index
}
