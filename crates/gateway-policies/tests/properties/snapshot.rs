//! Everything that an index says, as JSON.

use std::collections::BTreeMap;

use gateway_policies::{BackendState, EffectivePolicy, Index, OutputKey, Scope, TargetState};
use serde_json::{Value, json};

pub fn outputs(index: &Index) -> BTreeMap<OutputKey, EffectivePolicy> {
    index.outputs().map(|(key, effective)| (key.clone(), effective.clone())).collect()
}

pub fn snapshot(index: &Index) -> Value {
    let mut paths = serde_json::Map::new();
    let mut refused = Vec::new();
    let mut backends = Vec::new();
    for (route, links) in index.routes() {
        for path in index.paths_of(route) {
            let attached = links.attached.iter().find(|own| own.listener == path.listener).unwrap();
            paths.insert(format!("{path} @{}", path.rule_index), json!(attached.hostnames));
        }
        for own in &links.refused {
            refused.push(format!("{route} {} {}", own.parent, own.reason));
        }
        for own in &links.backends {
            let node = own.node.as_ref().map(ToString::to_string).unwrap_or_default();
            let state = match own.state {
                BackendState::Resolved => "Resolved",
                BackendState::NotPermitted => "NotPermitted",
                BackendState::ServiceNotFound => "ServiceNotFound",
                BackendState::PortNotFound => "PortNotFound",
                BackendState::UnknownKind => "UnknownKind",
            };
            backends.push(format!("{} {node} {state}", own.rule));
        }
    }
    refused.sort();
    backends.sort();
    let outputs: serde_json::Map<String, Value> =
        index.outputs().map(|(key, effective)| (output_name(key), effective.to_json())).collect();
    let states: serde_json::Map<String, Value> =
        index.policies().map(|policy| (policy.id.to_string(), state(index, &policy.id))).collect();
    json!({"paths": paths, "refused": refused, "backends": backends, "outputs": outputs, "states": states})
}

fn output_name(key: &OutputKey) -> String {
    match &key.scope {
        Scope::Path(path) => format!("{} on {path} @{}", key.kind, path.rule_index),
        Scope::Target(target) => format!("{} on {target}", key.kind),
    }
}

fn state(index: &Index, id: &gateway_policies::PolicyId) -> Value {
    let state = index.state(id).unwrap();
    let targets = state.targets.iter().map(|(target, own)| {
        let own = match own {
            TargetState::Attached => "Attached".to_owned(),
            TargetState::NotFound => "NotFound".to_owned(),
            TargetState::Conflicted(by) => format!("Conflicted by {by}"),
            TargetState::OverLimit => "OverLimit".to_owned(),
        };
        (target.to_string(), json!(own))
    });
    let ancestors = state.ancestors.iter().map(|(ancestor, own)| {
        let by: Vec<String> = own.replaced_by.iter().map(ToString::to_string).collect();
        (ancestor.to_string(), json!({"live": own.is_live, "replaced": own.is_replaced, "by": by}))
    });
    json!({
        "targets": targets.collect::<serde_json::Map<_, _>>(),
        "ancestors": ancestors.collect::<serde_json::Map<_, _>>(),
    })
}
