//! What others add to a child. An apply takes back what others change, and keeps what they add: a variable that is added
//! by hand would change what Kong does, its router flavor for one, and a port whose number is changed by hand is another
//! port to the API server, beside ours and with the same name, which it refuses.

use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::Effect;
use serde_json::{Value, json};

use crate::api::{PROXY, proxy};

/// Prefix of the variables that Kong reads.
const PREFIX: &str = "KONG_";

/// A variable of Kong, or a source of variables, that the body of a child does not have.
pub fn variable(body: &Value, found: &Value) -> Option<String> {
    let (wanted, found) = (proxy(&body["spec"]["template"])?, proxy(&found["spec"]["template"])?);
    let known: Vec<&Value> = list(wanted, "env").map(|entry| &entry["name"]).collect();
    let mut added = list(found, "env").filter(|entry| is_kongs(entry) && !known.contains(&&entry["name"]));
    if let Some(entry) = added.next() {
        return entry["name"].as_str().map(|name| format!("the variable {name}"));
    }
    let sources: Vec<&Value> = list(wanted, "envFrom").collect();
    let adds = list(found, "envFrom").any(|source| !sources.contains(&source));
    adds.then(|| "variables by envFrom".to_owned())
}

/// A port of a Service that the body does not have and another field manager owns.
pub fn port(body: &Value, found: &Value) -> Option<String> {
    if body["kind"] != "Service" {
        return None;
    }
    let wanted: Vec<_> = ports(body).map(port_key).collect();
    let mut added = ports(found).map(port_key).filter(|port| !wanted.contains(port));
    let (port, protocol) = added.find(|port| is_owned_by_another(found, port))?;
    Some(format!("port {port}/{protocol}"))
}

/// What the API server merges the ports of a Service by.
type PortKey<'v> = (i64, &'v str);

fn ports(service: &Value) -> impl Iterator<Item = &Value> {
    service["spec"]["ports"].as_array().into_iter().flatten()
}

fn port_key(port: &Value) -> PortKey<'_> {
    (port["port"].as_i64().unwrap_or_default(), port["protocol"].as_str().unwrap_or("TCP"))
}

fn is_owned_by_another(service: &Value, (port, protocol): &PortKey<'_>) -> bool {
    let key = format!("k:{}", json!({"port": port, "protocol": protocol}));
    let entries = service["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut others = entries.filter(|entry| entry["manager"] != meta::APPLY_MANAGER);
    others.any(|entry| !entry["fieldsV1"]["f:spec"]["f:ports"][key.as_str()].is_null())
}

/// The write that takes it away: a patch of the list that it is in. It also gives up whose the fields are, so that the
/// apply that follows owns them all again.
pub fn removal(body: &Value, found: &Value) -> Option<Effect> {
    if body["kind"] == "Service" {
        return ports_removal(body, found);
    }
    let wanted = proxy(&body["spec"]["template"])?;
    let known: Vec<&Value> = list(wanted, "env").map(|entry| &entry["name"]).collect();
    let mut containers = found["spec"]["template"]["spec"]["containers"].as_array()?.clone();
    for container in containers.iter_mut().filter(|container| container["name"] == PROXY) {
        let kept = list(container, "env").filter(|entry| !is_kongs(entry) || known.contains(&&entry["name"]));
        container["env"] = kept.cloned().collect();
        container["envFrom"] = wanted["envFrom"].clone();
    }
    let patch = json!({
        "metadata": {"managedFields": [{}]},
        "spec": {"template": {"spec": {"containers": containers}}},
    });
    Effect::patch_of(ObjectKey::of(found)?, found, patch)
}

/// Our ports alone, each with the node port that it has.
fn ports_removal(body: &Value, found: &Value) -> Option<Effect> {
    let mut wanted = body["spec"]["ports"].clone();
    for port in wanted.as_array_mut()?.iter_mut().filter(|port| port["nodePort"].is_null()) {
        let same = ports(found).find(|found| port_key(found) == port_key(port));
        let same = same.or_else(|| ports(found).find(|found| found["name"] == port["name"]));
        if let Some(node_port) = same.map(|same| &same["nodePort"]).filter(|port| !port.is_null()) {
            port["nodePort"] = node_port.clone();
        }
    }
    let patch = json!({"metadata": {"managedFields": [{}]}, "spec": {"ports": wanted}});
    Effect::patch_of(ObjectKey::of(found)?, found, patch)
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

    fn service(ports: Value, owned: &[(i64, &str)]) -> Value {
        let owner = |(port, manager): &(i64, &str)| {
            let key = format!("k:{{\"port\":{port},\"protocol\":\"TCP\"}}");
            json!({"manager": manager, "fieldsV1": {"f:spec": {"f:ports": {key: {"f:name": {}}}}}})
        };
        let owners: Vec<Value> = owned.iter().map(owner).collect();
        let metadata =
            json!({"namespace": "ns", "name": "s", "resourceVersion": "7", "managedFields": owners});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}})
    }

    #[rstest]
    #[case::as_wanted(json!([{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30001}]), &[(80, "kubectl")], None)]
    #[case::changed_by_hand(json!([{"name": "http", "port": 81, "protocol": "TCP", "nodePort": 30001}]), &[(81, "kubectl")], Some("port 81/TCP"))]
    #[case::ours_of_another_spec(json!([{"name": "http", "port": 81, "protocol": "TCP"}]), &[(81, meta::APPLY_MANAGER)], None)]
    #[case::shared(json!([{"name": "http", "port": 81}]), &[(81, meta::APPLY_MANAGER), (81, "kubectl")], Some("port 81/TCP"))]
    fn a_port_of_others_is_taken_away(
        #[case] found: Value,
        #[case] owned: &[(i64, &str)],
        #[case] expected: Option<&str>,
    ) {
        let body = service(json!([{"name": "http", "port": 80, "targetPort": 8000}]), &[]);
        let found = service(found, owned);
        assert_eq!(port(&body, &found).as_deref(), expected);
        if expected.is_some() {
            let Some(Effect::Patch { patch, .. }) = removal(&body, &found) else { panic!("a patch") };
            let mut after = found.clone();
            json_patch::merge(&mut after, &patch);
            assert_eq!(port(&body, &after), None);
            assert_eq!(after["spec"]["ports"][0]["nodePort"], found["spec"]["ports"][0]["nodePort"]);
        }
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
