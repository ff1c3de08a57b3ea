//! The text of one refusal of each rule about DataPlanes, as a golden file; refusals of the rules about router flavors are
//! in `tests/data/kubectl`, as kubectl prints them.

use std::collections::BTreeSet;

use interlock_core::admission::WebhookEndpoint;
use interlock_core::admission::WebhookEndpoint::Validate;
use interlock_core::api::rule::RuleGroup;
use interlock_core::testing::Said;
use serde_json::{Value, json};

use super::{data_plane, rollout};

/// A DataPlane as both webhooks see it.
fn written(object: &Value, old: &Value) -> Said {
    let mutated = data_plane::ask(WebhookEndpoint::Mutate, object, old);
    data_plane::ask(Validate, &mutated.object, old)
}

fn about_data_planes() -> Vec<Said> {
    let plane = |patch: Value| {
        let mut object = data_plane::plane("expressions", false);
        json_patch::merge(&mut object["spec"], &patch);
        written(&object, &Value::Null)
    };
    let proxy = |env: Value| {
        let proxy = json!({"name": "proxy", "image": "kong:3.9", "env": env});
        plane(json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [proxy]}}}}))
    };
    let ports = json!({"network": {"services": {"ingress": {"ports": [{"name": "a", "port": 80, "targetPort": 8443}]}}}});
    let mut listens = data_plane::plane("expressions", false);
    json_patch::merge(&mut listens["spec"], &ports);
    listens["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][1]["env"] =
        json!([{"name": "KONG_PROXY_LISTEN", "value": "0.0.0.0:8000"}]);
    let mut named = data_plane::plane("expressions", false);
    named["metadata"]["name"] = json!("edge".repeat(16));
    let (sidecar, proxy_only) = (
        json!({"name": "logs", "image": "fluent-bit:3.1", "readinessProbe": {"periodSeconds": 1}}),
        json!({"name": "proxy", "image": "kong:3.9"}),
    );
    vec![
        written(&named, &Value::Null),
        plane(json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [sidecar, proxy_only]}}}})),
        plane(
            json!({"deployment": {"replicas": null, "scaling": {"horizontal": {"minReplicas": 5, "maxReplicas": 2}}}}),
        ),
        plane(json!({"network": {"services": {"ingress": {"name": "edge.kong"}}}})),
        plane(json!({"network": {"services": {"ingress": {"ports": [
            {"name": "http", "port": 80, "targetPort": 8000}, {"name": "http", "port": 81, "targetPort": 8000},
        ]}}}})),
        plane(json!({"deployment": {"podTemplateSpec": {"spec": {"containers": [{"name": "proxy"}]}}}})),
        proxy(json!([{"name": "KONG_DATABASE", "value": "postgres"}])),
        written(&listens, &Value::Null),
        rollout::beside_an_override(),
        rollout::unstaged(),
    ]
}

#[test]
fn one_refusal_of_each_rule_reads_like_this() {
    let mut named = BTreeSet::new();
    let mut text = String::new();
    for said in &about_data_planes() {
        assert!(!said.allowed(), "{}", said.response);
        named.insert(said.rule());
        text += &format!("{}\n\n", said.message());
    }
    // Only a policy refuses by this.
    named.insert("dataplane-live-child");
    // These only warn.
    named.extend(["dataplane-promotion", "dataplane-history-limit", "dataplane-not-carried-out"]);
    let of_data_planes = crate::data_plane::DATA_PLANE.rules.iter();
    let missing: Vec<&str> = of_data_planes
        .filter(|rule| rule.group() != RuleGroup::Flavors)
        .map(|rule| rule.id())
        .filter(|id| !named.contains(id))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "{text}");
    insta::assert_snapshot!("refusals", text);
}
