//! A kind that a capability reads, and that a package makes at another version.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::world::{DEFINITIONS, World, definition};
use crate::support::{Client, instances, wait_until};

/// What nobody needs any more is watched on for a minute.
const CAP: Duration = Duration::from_secs(240);

/// TLSRoutes as Gateway API serves them: the same objects at two versions.
fn two_versions() -> Value {
    let mut routes = definition("tlsroutes");
    let versions = routes["spec"]["versions"].as_array_mut().expect("versions");
    let mut older = versions[0].clone();
    (older["name"], older["storage"]) = (json!("v1alpha2"), json!(false));
    versions.push(older);
    routes
}

fn wild_route(name: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "TLSRoute", "metadata": { "name": name },
        "spec": { "hostnames": [format!("*.{name}.example.com")] },
    })
}

/// Makes a route at the older version, and an EnvoyFilter.
fn package() -> Value {
    let step = json!({"name": "all", "tasks": ["all"]});
    let route = "apiVersion: gateway.networking.k8s.io/v1alpha2\nkind: TLSRoute\nmetadata:\n  name: made\nspec:\n  \
                 hostnames: [\"*.made.example.com\"]\n";
    let filter =
        "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata:\n  name: made\nspec: {}\n";
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": { "name": "routes-0.1.0" },
        "spec": {
            "operator": { "kind": "Operator", "name": "routes" }, "version": "0.1.0",
            "tasks": [{"name": "all", "kind": "Apply", "spec": {"resources": ["route.yaml", "filter.yaml"]}}],
            "plans": {"deploy": {"strategy": "serial", "phases": [
                {"name": "all", "strategy": "serial", "steps": [step]},
            ]}},
            "templates": {"route.yaml": route, "filter.yaml": filter},
        },
    })
}

fn gateway(flavor: &str) -> Value {
    let env = json!([{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "edge", "labels": {"interlock.dev/guard": "kong-router-flavor"}},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "edge"}},
            "template": {
                "metadata": {"labels": {"app": "edge"}},
                "spec": {"containers": [{"name": "proxy", "image": "kong:3.9", "env": env}]},
            },
        },
    })
}

/// Waits until a flavor that serves no wildcard is refused because of a route.
#[track_caller]
fn await_refusal(user: &Client, route: &str) {
    wait_until(&format!("a flavor is refused because of {route}"), CAP, || {
        let new = gateway("traditional").to_string();
        let out = user.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &new);
        let refused = out.code != 0 && out.stderr.contains("does not take wildcard SNIs");
        if refused && out.stderr.contains(&format!("/{route} ")) { Ok(()) } else { Err(out.to_string()) }
    });
}

#[test]
fn what_a_package_makes_and_gives_up_stays_known_to_a_capability() {
    let world = World::new();
    let ns = world.cluster.namespace("shared-kind");
    let admin = ns.admin();
    world.install("envoyfilters");
    world.grant_filters();
    world.post_soon(DEFINITIONS, &two_versions());
    world.post_soon(&ns.path("gateway.networking.k8s.io/v1", "tlsroutes", ""), &wild_route("wild"));
    admin.apply(&gateway("traditional_compatible").to_string());
    await_refusal(&admin, "wild");

    world.post_soon(&ns.path(meta::KUDO_API_VERSION, "operatorversions", ""), &package());
    let reference = json!({"operatorVersion": {"name": "routes-0.1.0"}});
    let instance = json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance", "metadata": {"name": "demo"}, "spec": reference,
    });
    world.post_soon(&ns.path(meta::KUDO_API_VERSION, "instances", ""), &instance);
    instances::await_run(&admin, "demo", "deploy", "");
    await_refusal(&admin, "made");

    admin.kubectl(&["delete", "instance", "demo", "--timeout=60s"]).ok();
    admin.kubectl(&["delete", "operatorversion", "routes-0.1.0", "--timeout=60s"]).ok();
    wait_until("what only the package needed is forgotten", CAP, || {
        let log = world.interlock.log();
        let told = |line: &str| {
            line.contains("closed the watch of a kind without requesters") && line.contains("EnvoyFilter")
        };
        if log.lines().any(told) { Ok(()) } else { Err(log) }
    });
    await_refusal(&admin, "wild");
    world.assert_same_process();
}
