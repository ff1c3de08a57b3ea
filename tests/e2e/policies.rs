//! `interlock policies` reads a cluster with the rights of its user, and says of it what it says of the same files.

use std::time::Duration;

use go_template::yaml;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Cluster, Output, shared, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// Those of the example whose definitions are stock: without Envoy Gateway's.
fn example() -> String {
    let files = ["routes", "policies"].map(|name| {
        let path = format!("{}/examples/policies/cluster/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).expect("an example")
    });
    let documents = files.iter().flat_map(|file| yaml::documents(file).expect("YAML"));
    let stock = documents
        .filter(|object| !object["apiVersion"].as_str().unwrap().starts_with("gateway.envoyproxy.io"));
    json!({"apiVersion": "v1", "kind": "List", "items": stock.collect::<Vec<_>>()}).to_string()
}

pub fn define(admin: &Client) -> Option<()> {
    let of_gateway_api = ["gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants"];
    let of_kuadrant = ["ratelimitpolicies", "authpolicies"];
    let names = of_gateway_api.map(|name| format!("gateway-api_{name}"));
    for name in names.into_iter().chain(of_kuadrant.map(|name| format!("kuadrant_{name}"))) {
        let file = shared::find(&format!("crds/{name}.yaml"))?;
        admin.kubectl(&["apply", "--server-side", "-f", &file.to_string_lossy()]).ok();
    }
    await_definitions(admin);
    Some(())
}

fn json_of(out: &Output) -> Value {
    assert_eq!(out.code, 0, "{out}");
    serde_json::from_str(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// A user who may list these resources of every namespace.
fn lister(cluster: &Cluster, name: &str, rules: &Value) -> Client {
    let admin = cluster.admin();
    let api = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": name}],
    });
    admin.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]}).to_string());
    cluster.user(name, &[])
}

#[test]
fn a_cluster_is_read_as_its_files_are() {
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    let none = interlock(&admin, &["policies", "list"], "");
    assert!(none.code != 0 && none.stderr.contains("the API server serves no Gateways"), "{none}");
    if define(&admin).is_none() {
        return;
    }
    for name in ["infra", "shop"] {
        admin.kubectl(&["create", "namespace", name]).ok();
    }
    let example = example();
    wait_until("the example is applied", CAP, || {
        let out = admin.kubectl_in(&["apply", "-f", "-"], &example);
        if out.code == 0 { Ok(()) } else { Err(out.to_string()) }
    });

    for verb in ["list", "effective", "tree"] {
        let live = json_of(&interlock(&admin, &["policies", verb, "-o", "json"], ""));
        let of_files = json_of(&interlock(&admin, &["policies", verb, "-o", "json", "-f", "-"], &example));
        similar_asserts::assert_eq!(live, of_files, "{verb}");
    }
    let live = json_of(&interlock(&admin, &["policies", "effective", "shop/route-1", "-o", "json"], ""));
    assert_eq!(live["paths"][0]["policies"]["RateLimitPolicy"]["rules"]["hourly"]["source"], "infra/rlp-1");

    for (object, member) in [
        ("policy/infra/rlp-1", "policy"),
        ("httproute/shop/route-3", "route"),
        ("gateway/infra/gw-2", "gateway"),
    ] {
        let live = json_of(&interlock(&admin, &["why", object, "-o", "json"], ""));
        let of_files = json_of(&interlock(&admin, &["why", object, "-o", "json", "-f", "-"], &example));
        similar_asserts::assert_eq!(live[member], of_files[member], "{object}");
        assert!(live[member].is_object() && !live["actedOnBy"].as_array().unwrap().is_empty(), "{live:#}");
    }

    let graph = json_of(&interlock(&admin, &["topology", "--root", "gateway/infra/gw-2", "-o", "json"], ""));
    let has = |from: &str, to: &str| {
        let ends =
            |edge: &Value, end: &str, name: &str| edge[end].as_str().is_some_and(|id| id.ends_with(name));
        graph["edges"].as_array().unwrap().iter().any(|edge| ends(edge, "from", from) && ends(edge, "to", to))
    };
    assert!(has("gw-2#http", "shop/route-3") && has("shop/route-3", "shop/rlp-3"), "{graph:#}");
    assert!(!has("infra/gw-2", "shop/route-3") && !has("gw-2#admin", "shop/route-3"), "{graph:#}");
    let refused = |node: &Value| node["facts"]["refused"] == "Gateway/infra/gw-2#admin: NamespaceNotAllowed";
    assert!(graph["nodes"].as_array().unwrap().iter().any(refused), "{graph:#}");

    // What cannot be listed is unknown, and not absent.
    let gateways = json!([{
        "apiGroups": ["gateway.networking.k8s.io"], "verbs": ["list"],
        "resources": ["gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants"],
    }]);
    let walker = lister(&cluster, "walker", &gateways);
    let seen = wait_until("the rights count", CAP, || {
        let out = interlock(&walker, &["policies", "effective", "shop/route-1", "-o", "json"], "");
        if out.code == 0 { Ok(out) } else { Err(out.to_string()) }
    });
    assert!(seen.stderr.contains("ratelimitpolicies.kuadrant.io"), "{seen}");
    assert_eq!(json_of(&seen)["paths"][0]["policies"]["RateLimitPolicy"]["unknown"], true, "{seen}");
    let stranger = interlock(&cluster.user("stranger", &[]), &["policies", "tree"], "");
    assert!(
        stranger.code != 0 && stranger.stderr.contains("without Gateways no path is known"),
        "{stranger}"
    );
}
