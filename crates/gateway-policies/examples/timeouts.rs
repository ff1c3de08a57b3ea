//! A kind of one's own: request timeouts of routes, which a Gateway can set a default for.
//!
//! `cargo run -p gateway-policies --example timeouts` prints the timeout of each path and the conditions.

use std::sync::Arc;

use gateway_policies::{
    Delivery, Index, ObjectKind, Policy, PolicyKind, Rules, TargetKind, Violation, conditions, rules_under,
};
use serde_json::{Map, Value, json};

/// `spec.timeouts`, or the same under `defaults` or `overrides`, has durations in seconds by name.
struct TimeoutPolicy;

const TARGETS: [TargetKind; 2] =
    [TargetKind::with_sections(ObjectKind::Gateway), TargetKind::with_sections(ObjectKind::HttpRoute)];

impl PolicyKind for TimeoutPolicy {
    fn name(&self) -> &str {
        "TimeoutPolicy"
    }

    fn group(&self) -> &str {
        "example.org"
    }

    fn targets(&self) -> &[TargetKind] {
        &TARGETS
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        rules_under(block, "timeouts")
    }

    fn validate(&self, policy: &Policy) -> Vec<Violation> {
        let rules = policy.block.iter().flat_map(|block| &block.rules);
        let wrong = rules.filter(|(_, seconds)| seconds.as_u64().is_none_or(|seconds| seconds == 0));
        wrong.map(|(name, _)| Violation::new(format!("timeouts.{name}"), "has to be above 0")).collect()
    }
}

fn policy(name: &str, target_kind: &str, target: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["targetRef"] = json!({"group": "gateway.networking.k8s.io", "kind": target_kind, "name": target});
    json!({
        "apiVersion": "example.org/v1", "kind": "TimeoutPolicy", "spec": spec,
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
    })
}

fn objects() -> Vec<Value> {
    let api = "gateway.networking.k8s.io/v1";
    let route = |name: &str| {
        json!({
            "apiVersion": api, "kind": "HTTPRoute", "metadata": {"namespace": "shop", "name": name},
            "spec": {"parentRefs": [{"name": "public"}], "rules": [{"name": "all"}]},
        })
    };
    vec![
        json!({
            "apiVersion": api, "kind": "GatewayClass", "metadata": {"name": "eg"},
            "spec": {"controllerName": "example.org/gateways"},
        }),
        json!({
            "apiVersion": api, "kind": "Gateway", "metadata": {"namespace": "shop", "name": "public"},
            "spec": {"gatewayClassName": "eg", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
        }),
        route("cart"),
        route("search"),
        policy(
            "usual",
            "Gateway",
            "public",
            json!({"defaults": {"strategy": "merge", "timeouts": {"request": 10, "connect": 1}}}),
        ),
        policy("slow-search", "HTTPRoute", "search", json!({"timeouts": {"request": 60}})),
        policy("lost", "HTTPRoute", "checkout", json!({"timeouts": {"request": 5}})),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut index = Index::new([Arc::new(TimeoutPolicy) as Arc<dyn PolicyKind>]);
    for object in objects() {
        index.observe(&object)?;
    }
    for path in index.paths() {
        println!("{path}");
        for (name, rule) in index.effective("TimeoutPolicy", path).into_iter().flat_map(|own| &own.rules) {
            println!("  {name}: {} s, from {}", rule.value, rule.source.qualified_name());
        }
    }
    for policy in index.policies() {
        let state = index.state(&policy.id).ok_or("every policy has a state")?;
        for condition in conditions(state, &|_| Delivery::Delivered) {
            println!("{}: {}={}: {}", policy.id, condition.kind, condition.is_true, condition.message);
        }
    }
    Ok(())
}
