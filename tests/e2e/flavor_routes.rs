//! Router flavors and the rest of a cluster: the routes that exist, who shares a configuration
//! producer, and `interlock flavor plan NAME`; also where the kinds of Kong and of Gateway API are
//! not served.

use std::time::Duration;

use serde_json::{Value, json};

use crate::flavor::golden;
use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Client, Cluster, Interlock, Namespace, shared, wait_until};

const CAP: Duration = Duration::from_secs(60);
const TC: &str = "traditional_compatible";
const GUARD: &str = "kong-router-flavor";

fn proxy(flavor: &str) -> Value {
    json!({"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]})
}

fn deployment(name: &str, app: &str, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"interlock.dev/guard": GUARD}},
        "spec": {
            "selector": {"matchLabels": {"name": name}},
            "template": {"metadata": {"labels": {"name": name, "app": app}}, "spec": {"containers": [container]}},
        },
    })
}

fn data_plane(name: &str, flavor: &str) -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": name},
        "spec": {"deployment": {
            "replicas": 1,
            "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
            "podTemplateSpec": {"spec": {"containers": [proxy(flavor)]}},
        }},
    })
}

fn http_route(name: &str, matched: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": name},
        "spec": {"rules": [{"matches": [matched]}]},
    })
}

fn query() -> Value {
    json!({"queryParams": [{"name": "q", "value": "x"}]})
}

/// What applying an object would meet, once it is what is awaited.
fn await_told(user: &Client, object: &Value, wanted: &str, met: impl Fn(&str) -> bool) -> String {
    wait_until(wanted, CAP, || {
        let out = user.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &object.to_string());
        let told = format!("{}{}", out.stdout, out.stderr);
        // Definitions that have just come are still being listed.
        let seen = !told.contains("not judged by what is not seen here");
        if seen && met(&told) { Ok(told) } else { Err(told) }
    })
}

/// `interlock check` over the same objects has to say the same.
fn check_says(user: &Client, namespace: &str, objects: &[Value], old: &Value, new: &Value, told: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, objects: &[Value]| {
        let here = |object: &Value| {
            let mut object = object.clone();
            if object["metadata"]["namespace"].is_null() {
                object["metadata"]["namespace"] = json!(namespace);
            }
            object
        };
        let objects: Vec<Value> = objects.iter().map(here).collect();
        let path = folder.path().join(name);
        let text = match objects.as_slice() {
            [one] => one.to_string(),
            all => json!({"apiVersion": "v1", "kind": "List", "items": all}).to_string(),
        };
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (old, new, all) = (
        file("old.json", std::slice::from_ref(old)),
        file("new.json", std::slice::from_ref(new)),
        file("objects.json", objects),
    );
    let arguments = ["check", "-f", &new, "--old", &old, "--objects", &all, "-o", "json"];
    let checked = interlock(user, &arguments, "");
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    let texts = checked["warnings"].as_array().unwrap().iter().chain(checked.get("message"));
    for text in texts.filter_map(Value::as_str) {
        assert!(told.contains(text), "{text}\n--- is not in\n{told}");
    }
}

fn plan(user: &Client, ns: &Namespace<'_>, name: &str, to: &str) -> String {
    let out = interlock(user, &["flavor", "plan", name, "-n", ns.name(), "--to", to, "--outage"], "");
    format!(
        "$ interlock flavor plan {name} --to {to} --outage\n{}{}(exit code {})\n\n",
        out.stdout, out.stderr, out.code
    )
}

/// Kong's and Gateway API's own definitions.
fn definitions(cluster: &Cluster) -> Option<()> {
    let admin = cluster.admin();
    for name in ["gateway-api_httproutes", "gateway-api_grpcroutes", "kong_dataplanes", "kong_controlplanes"]
    {
        let file = shared::find(&format!("crds/{name}.yaml"))?;
        admin.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file.to_string_lossy()]).ok();
    }
    await_definitions(&admin);
    Some(())
}

#[test]
fn what_else_there_is_in_the_cluster_decides() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let (ns, other) = (cluster.namespace("routes"), cluster.namespace("others"));
    let user = ns.user("alice");

    // Without the kinds of Gateway API nothing fails, and that is said.
    user.apply(&deployment("plain", "plain", &proxy(TC)).to_string());
    let text = plan(&user, &ns, "deployment/plain", "expressions");
    assert!(text.contains("(exit code 0)"), "{text}");
    assert!(text.contains("not served by this cluster, so there are none: HTTPRoute, GRPCRoute"), "{text}");
    assert!(text.contains("not judged by what was not seen (outside of namespace"), "{text}");
    user.apply(&deployment("plain", "plain", &proxy("expressions")).to_string());

    if definitions(&cluster).is_none() {
        return;
    }
    routes(&ns, &other, &user);
    producers(&ns, &user);
}

fn routes(ns: &Namespace<'_>, other: &Namespace<'_>, user: &Client) {
    let mut texts = String::new();
    let settled = |text: &str| text.replace(ns.name(), "NAMESPACE");
    let edge = |flavor: &str| data_plane("edge", flavor);
    user.apply(&edge("expressions").to_string());
    let search = http_route("search", &query());
    user.apply(&search.to_string());
    let mut elsewhere = http_route("search", &query());
    elsewhere["metadata"]["namespace"] = json!(other.name());
    other.admin().apply(&elsewhere.to_string());

    let both = |told: &str| told.contains("would drop 2 routes");
    let told = await_told(user, &edge(TC), "both routes are counted", both);
    assert!(!told.contains(other.name()), "others are only counted: {told}");
    texts += &format!("# EX to TC, with routes that match query parameters\n{told}\n");
    check_says(user, ns.name(), &[search, elsewhere], &edge("expressions"), &edge(TC), &told);
    texts += &plan(user, ns, "dataplane/edge", "traditional");

    user.kubectl(&["delete", "httproute", "search"]).ok();
    other.admin().kubectl(&["delete", "httproute", "search", "-n", other.name()]).ok();
    let told = await_told(user, &edge(TC), "the routes are gone", |told| told.starts_with("dataplane"));
    texts += &format!("# EX to TC, with routes that every flavor serves\n{told}\n");
    let told = await_told(user, &edge("traditional"), "it is told", |_| true);
    texts += &format!("# EX to T\n{told}\n");
    user.apply(&data_plane("compatible", TC).to_string());
    let told = await_told(user, &data_plane("compatible", "traditional"), "it is told", |_| true);
    texts += &format!("# TC to T\n{told}\n");

    let pattern = json!({"path": {"type": "RegularExpression", "value": "/a(?!b)"}});
    let ahead = http_route("ahead", &pattern);
    user.apply(&data_plane("old", "traditional").to_string());
    user.apply(&ahead.to_string());
    let told = await_told(user, &data_plane("old", TC), "the pattern is compiled", |told| {
        told.contains("look-around")
    });
    texts += &format!("# T to TC, with a pattern that Rust does not know\n{told}\n");
    check_says(user, ns.name(), &[ahead], &data_plane("old", "traditional"), &data_plane("old", TC), &told);
    texts += &plan(user, ns, "dataplane/old", "expressions");
    golden("flavor-routes.txt", &settled(&texts));
}

/// Two gateways that one ingress controller configures by their admin Service, which selects
/// both, and two whose producer is named.
fn producers(ns: &Namespace<'_>, user: &Client) {
    let mut texts = String::new();
    let controller = deployment(
        "kic",
        "kic",
        &json!({"name": "controller", "image": "kic:3", "args": ["--kong-admin-svc=admin"]}),
    );
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "admin", "labels": {"interlock.dev/guard": GUARD}},
        "spec": {"selector": {"app": "proxy"}, "ports": [{"port": 8444}]},
    });
    let one = |flavor: &str| deployment("one", "proxy", &proxy(flavor));
    let two = deployment("two", "proxy", &proxy(TC));
    let before = one(TC);
    for object in [&controller, &service, &before, &two] {
        user.apply(&object.to_string());
    }
    let told = await_told(user, &one("expressions"), "the producer is known", |told| told.contains("[RF21]"));
    texts += &format!("# one of two that an ingress controller serves\n{told}\n");
    check_says(
        user,
        ns.name(),
        &[controller, service, before.clone(), two],
        &before,
        &one("expressions"),
        &told,
    );

    let named = |name: &str, flavor: &str| {
        let mut plane = data_plane(name, flavor);
        plane["metadata"]["annotations"] = json!({"interlock.dev/config-producer": "kong/kic"});
        plane
    };
    user.apply(&named("left", TC).to_string());
    user.apply(&named("right", TC).to_string());
    let staged = named("left", "expressions");
    let told = await_told(user, &staged, "the producer is known", |told| told.contains("[RF21]"));
    texts += &format!("# one of two, staged\n{told}\n");
    let mut in_place = staged.clone();
    in_place["spec"]["deployment"].as_object_mut().unwrap().remove("rollout");
    let told = await_told(user, &in_place, "it is told", |told| told.contains("[RF21]"));
    texts += &format!("# one of two, in place\n{told}\n");
    golden("flavor-producers.txt", &texts.replace(ns.name(), "NAMESPACE"));
}
