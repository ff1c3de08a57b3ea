//! What others add to the Kong of a child. An apply takes back what others change, and keeps what they add: a variable
//! that is added by hand would change what Kong does, its router flavor for one.

use serde_json::{Value, json};

use crate::api::kong::PROXY;
use crate::api::object::{ObjectKey, meta_str};
use crate::effect::Effect;

/// Prefix of the variables that Kong reads.
const PREFIX: &str = "KONG_";

/// A variable of Kong, or a source of variables, that the body of a child does not have.
pub fn variable(body: &Value, found: &Value) -> Option<String> {
    let (wanted, found) = (kong(body)?, kong(found)?);
    let known: Vec<&Value> = list(wanted, "env").map(|entry| &entry["name"]).collect();
    let mut added = list(found, "env").filter(|entry| is_kongs(entry) && !known.contains(&&entry["name"]));
    if let Some(entry) = added.next() {
        return entry["name"].as_str().map(|name| format!("the variable {name}"));
    }
    let sources: Vec<&Value> = list(wanted, "envFrom").collect();
    let adds = list(found, "envFrom").any(|source| !sources.contains(&source));
    adds.then(|| "variables by envFrom".to_owned())
}

/// The write that takes it away: a patch of the containers. It also gives up whose the fields are, so that the apply
/// that follows owns them all again.
pub fn removal(body: &Value, found: &Value) -> Option<Effect> {
    let wanted = kong(body)?;
    let known: Vec<&Value> = list(wanted, "env").map(|entry| &entry["name"]).collect();
    let mut containers = found.pointer(CONTAINERS)?.as_array()?.clone();
    for container in containers.iter_mut().filter(|container| container["name"] == PROXY) {
        let kept = list(container, "env").filter(|entry| !is_kongs(entry) || known.contains(&&entry["name"]));
        container["env"] = kept.cloned().collect();
        container["envFrom"] = wanted["envFrom"].clone();
    }
    Some(Effect::Patch {
        key: ObjectKey::of(found)?,
        resource_version: meta_str(found, "resourceVersion")?.to_owned(),
        patch: json!({
            "metadata": {"managedFields": [{}]},
            "spec": {"template": {"spec": {"containers": containers}}},
        }),
    })
}

const CONTAINERS: &str = "/spec/template/spec/containers";

fn kong(deployment: &Value) -> Option<&Value> {
    deployment.pointer(CONTAINERS)?.as_array()?.iter().find(|container| container["name"] == PROXY)
}

fn list<'v>(container: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    container[name].as_array().into_iter().flatten()
}

fn is_kongs(entry: &Value) -> bool {
    entry["name"].as_str().is_some_and(|name| name.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn deployment(proxy: Value) -> Value {
        let mut container = json!({"name": "proxy", "env": [{"name": "KONG_A", "value": "a"}]});
        json_patch::merge(&mut container, &proxy);
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "ns", "name": "d", "resourceVersion": "7"},
            "spec": {"template": {"spec": {"containers": [{"name": "other", "env": [{"name": "KONG_X"}]}, container]}}},
        })
    }

    #[rstest]
    #[case::nothing(json!({}), None)]
    #[case::of_another_kind(json!({"env": [{"name": "KONG_A", "value": "a"}, {"name": "OTEL", "value": "x"}]}), None)]
    #[case::flavor(
        json!({"env": [{"name": "KONG_A", "value": "a"}, {"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}]}),
        Some("the variable KONG_ROUTER_FLAVOR")
    )]
    #[case::source(json!({"envFrom": [{"configMapRef": {"name": "x"}}]}), Some("variables by envFrom"))]
    fn what_was_added_is_taken_away(#[case] proxy: Value, #[case] expected: Option<&str>) {
        let (body, found) = (deployment(json!({})), deployment(proxy));
        assert_eq!(variable(&body, &found).as_deref(), expected);
        if expected.is_some() {
            let Some(Effect::Patch { patch, .. }) = removal(&body, &found) else { panic!("a patch") };
            let mut after = found;
            json_patch::merge(&mut after, &patch);
            assert_eq!(variable(&body, &after), None);
            assert_eq!(after["spec"]["template"]["spec"]["containers"][0]["name"], "other");
        }
    }
}
