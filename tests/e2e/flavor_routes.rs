//! Router flavors and the rest of a cluster: the routes that exist, who shares a configuration
//! producer, and `interlock flavor plan NAME`; also where the kinds of Kong and of Gateway API are
//! not served.

use std::time::Duration;

use serde_json::{Value, json};

use crate::flavor::{Met, golden, goldens, meets, says};
use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Client, Cluster, Interlock, Namespace, remedy, shared, wait_until};

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
    let of_gateway_api = ["httproutes", "grpcroutes", "gateways", "gatewayclasses"];
    let of_gateway_api = of_gateway_api.map(|name| format!("gateway-api_{name}"));
    let of_kong = ["kong_dataplanes", "kong_controlplanes"].map(str::to_owned);
    for name in of_gateway_api.iter().chain(&of_kong) {
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

    the_classic_accident(&ns, &user);

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
    one_hop_at_a_time(&ns, &user);
    producers(&ns, &user);
}

/// Three replicas run one flavor, and somebody edits it to the other end of the way.
fn the_classic_accident(ns: &Namespace<'_>, user: &Client) {
    let mut edge = deployment("edge", "edge", &proxy("expressions"));
    edge["spec"]["replicas"] = json!(3);
    user.apply(&edge.to_string());
    wait_until("the gateway runs", CAP, || {
        let edge = user.get("deployment", "edge").ok_or("it is not there")?;
        let seen = edge["status"]["observedGeneration"] == edge["metadata"]["generation"];
        let ready = edge["status"]["availableReplicas"] == 3 && edge["status"]["replicas"] == 3;
        if seen && ready { Ok(()) } else { Err(edge["status"].to_string()) }
    });
    let set = ["set", "env", "deployment/edge", "KONG_ROUTER_FLAVOR=traditional"];
    let out = user.kubectl(&set);
    assert_ne!(out.code, 0, "{out}");
    let mut text = format!("$ kubectl {}\n{}{}\n", set.join(" "), out.stdout, out.stderr);
    // The way that the refusal names, as it names it.
    let named = remedy::commands(&out.stderr);
    let named = named.iter().find(|command| command.starts_with("interlock ")).expect("a way");
    let words: Vec<&str> = named.split_whitespace().skip(1).collect();
    let planned = interlock(user, &words, "");
    assert!(planned.stdout.contains("\nhop 2 of 2: "), "{planned}");
    text += &format!("$ {named}\n{}{}(exit code {})\n", planned.stdout, planned.stderr, planned.code);
    golden("flavor-accident.txt", &text.replace(ns.name(), "NAMESPACE"));
    let there = user.get("deployment", "edge").expect("the gateway");
    assert_eq!(there["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"], "expressions");
    user.kubectl(&["delete", "deployment", "edge"]).ok();
}

/// With routes that every flavor serves, from one end to the other: each hop once it was promoted.
fn one_hop_at_a_time(ns: &Namespace<'_>, user: &Client) {
    let admin = ns.admin();
    let status = ns.path("gateway-operator.konghq.com/v1beta1", "dataplanes", "hops/status");
    // What Kong's operator does with a promotion.
    let promote = |selector: &str| {
        admin.merge_patch(&status, &json!({"status": {"selector": selector}})).ok();
    };
    let hop = |flavor: &str| meets(user, ns.name(), &data_plane("hops", flavor));
    user.apply(&http_route("fields", &json!({"path": {"type": "PathPrefix", "value": "/"}})).to_string());
    user.apply(&data_plane("hops", "expressions").to_string());
    promote("selector-1");
    let title = |text: &str| text.to_owned();
    let mut met = vec![(title("EX to T"), hop("traditional"))];
    met.push((title("EX to TC"), hop(TC)));
    met.push((title("on to T, before the promotion"), hop("traditional")));
    promote("selector-2");
    met.push((title("on to T, after the promotion"), hop("traditional")));
    met.push((title("back to EX, before the promotion"), hop("expressions")));
    promote("selector-3");
    met.push((title("T to EX"), hop("expressions")));
    goldens("flavor-hops.txt", ns.name(), &met);
    user.kubectl(&["delete", "httproute", "fields"]).ok();
}

fn routes(ns: &Namespace<'_>, other: &Namespace<'_>, user: &Client) {
    let (mut met, mut plans) = (Vec::new(), String::new());
    let said = |title: &str, objects: &[&Value], old: &Value, new: &Value, told: String| {
        let objects: Vec<Value> = objects.iter().map(|object| (*object).clone()).collect();
        let (_, check) = says(user, ns.name(), Some(old), Some(new), &objects, &told);
        (title.to_owned(), Met { kubectl: told, check })
    };
    let edge = |flavor: &str| data_plane("edge", flavor);
    user.apply(&edge("expressions").to_string());
    let search = http_route("search", &query());
    user.apply(&search.to_string());
    // A Gateway of Kong's admits it.
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "kong"},
        "spec": {"controllerName": "konghq.com/kic-gateway-controller"},
    });
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": "all", "namespace": ns.name()},
        "spec": {"gatewayClassName": "kong", "listeners": [{
            "name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}},
        }]},
    });
    ns.admin().apply(&class.to_string());
    ns.admin().apply(&gateway.to_string());
    let mut elsewhere = http_route("search", &query());
    elsewhere["metadata"]["namespace"] = json!(other.name());
    elsewhere["spec"]["parentRefs"] = json!([{"name": "all", "namespace": ns.name()}]);
    other.admin().apply(&elsewhere.to_string());

    let both = |told: &str| told.contains("would drop 2 routes");
    let told = await_told(user, &edge(TC), "both routes are counted", both);
    assert!(!told.contains(other.name()), "others are only counted: {told}");
    let title = "EX to TC, with routes that match query parameters";
    met.push(said(title, &[&class, &gateway, &search, &elsewhere], &edge("expressions"), &edge(TC), told));
    plans += &plan(user, ns, "dataplane/edge", "traditional");

    user.kubectl(&["delete", "httproute", "search"]).ok();
    other.admin().kubectl(&["delete", "httproute", "search", "-n", other.name()]).ok();
    let told = await_told(user, &edge(TC), "the routes are gone", |told| told.starts_with("dataplane"));
    let title = "EX to TC, with routes that every flavor serves";
    met.push(said(title, &[], &edge("expressions"), &edge(TC), told));
    let told = await_told(user, &edge("traditional"), "it is told", |_| true);
    met.push(said("EX to T", &[], &edge("expressions"), &edge("traditional"), told));
    let compatible = |flavor: &str| data_plane("compatible", flavor);
    user.apply(&compatible(TC).to_string());
    let told = await_told(user, &compatible("traditional"), "it is told", |_| true);
    met.push(said("TC to T", &[], &compatible(TC), &compatible("traditional"), told));

    let marks = json!({"konghq.com/regex-priority": "1", "konghq.com/snis": "*.example.com"});
    let web = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web", "annotations": marks},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    });
    user.apply(&web.to_string());
    for (title, to) in [
        ("TC to EX, with annotations that are ignored then, and a wildcard SNI", "expressions"),
        ("TC to T, with a wildcard SNI", "traditional"),
    ] {
        let told = await_told(user, &compatible(to), "the annotations are seen", |told| {
            told.contains("konghq.com/snis")
        });
        met.push(said(title, &[&web], &compatible(TC), &compatible(to), told));
    }
    user.kubectl(&["delete", "ingress", "web"]).ok();

    let pattern = json!({"path": {"type": "RegularExpression", "value": "/a(?!b)"}});
    let ahead = http_route("ahead", &pattern);
    let old = |flavor: &str| data_plane("old", flavor);
    user.apply(&old("traditional").to_string());
    user.apply(&ahead.to_string());
    let told = await_told(user, &old(TC), "the pattern is compiled", |told| told.contains("look-around"));
    let title = "T to TC, with a pattern that Rust does not know";
    met.push(said(title, &[&ahead], &old("traditional"), &old(TC), told));
    plans += &plan(user, ns, "dataplane/old", "expressions");
    user.kubectl(&["delete", "httproute", "ahead"]).ok();
    goldens("flavor-routes.txt", ns.name(), &met);
    golden("flavor-plans.txt", &plans.replace(ns.name(), "NAMESPACE"));
}

/// Two gateways that one ingress controller configures by their admin Service, which selects
/// both, and two whose producer is named.
fn producers(ns: &Namespace<'_>, user: &Client) {
    let mut met = Vec::new();
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
    let objects = [controller, service, before.clone(), two];
    let (_, check) = says(user, ns.name(), Some(&before), Some(&one("expressions")), &objects, &told);
    met.push(("one of two that an ingress controller serves".to_owned(), Met { kubectl: told, check }));

    let named = |name: &str, flavor: &str| {
        let mut plane = data_plane(name, flavor);
        plane["metadata"]["annotations"] = json!({"interlock.dev/config-producer": "kong/kic"});
        plane
    };
    let planes = [named("left", TC), named("right", TC)];
    planes.iter().for_each(|plane| user.apply(&plane.to_string()));
    let mut judged = |title: &str, after: &Value, told: String| {
        let (_, check) = says(user, ns.name(), Some(&planes[0]), Some(after), &planes, &told);
        met.push((title.to_owned(), Met { kubectl: told, check }));
    };
    let staged = named("left", "expressions");
    let told = await_told(user, &staged, "the producer is known", |told| told.contains("[RF21]"));
    judged("one of two, staged", &staged, told);
    let mut in_place = staged.clone();
    in_place["spec"]["deployment"].as_object_mut().unwrap().remove("rollout");
    let told = await_told(user, &in_place, "it is told", |told| told.contains("[RF21]"));
    judged("one of two, in place", &in_place, told);
    goldens("flavor-producers.txt", ns.name(), &met);
}
