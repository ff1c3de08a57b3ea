//! Gateways and policies are reconciled until nothing is left to do, against a map of objects.

mod ancestors;
mod auth;
mod cluster;
mod merged;
mod proxied;

use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::{Value, json};

use self::cluster::{Cluster, gateway, limits, policy, route, settings, settings_of};
use super::limitador;

/// The Gateways, routes and policies of the example that the graph was made for.
fn example() -> Cluster {
    let mut cluster = Cluster::new();
    cluster
        .put(settings(json!([{"namespace": "system", "configMap": "limits", "host": "limitador.system"}])));
    cluster.put(gateway("gw-1"));
    cluster.put(gateway("gw-2"));
    cluster.put(route("route-1", &["gw-1"]));
    cluster.put(route("route-2", &["gw-1"]));
    cluster.put(route("route-3", &["gw-1", "gw-2"]));
    cluster.put(route("route-4", &["gw-2"]));
    cluster.put(policy("rlp-1", "Gateway/gw-1", limits(&["all"])));
    for n in 2..=4 {
        cluster.put(policy(&format!("rlp-{n}"), &format!("HTTPRoute/route-{n}"), limits(&["own"])));
    }
    cluster.settle();
    cluster
}

const PATCH_1: &str = "EnvoyPatchPolicy interlock-limits-gw-1-0";
const PATCH_2: &str = "EnvoyPatchPolicy interlock-limits-gw-2-0";
const LIMITS: &str = "ConfigMap limits";

fn status(name: &str) -> String {
    format!("RateLimitPolicy {name}")
}

#[test]
fn each_route_has_the_limits_of_its_policies() {
    let cluster = example();
    assert_eq!(
        cluster.affected("gw-1"),
        "Object affected by RateLimitPolicy [shop/rlp-1 shop/rlp-2 shop/rlp-3]"
    );
    assert_eq!(cluster.affected("gw-2"), "Object affected by RateLimitPolicy [shop/rlp-3 shop/rlp-4]");
    let routes = |patch: &str| cluster.limited(patch);
    assert_eq!(
        routes(PATCH_1),
        [
            "shop/gw-1/http httproute/shop/route-1/rule/0/match/ all",
            "shop/gw-1/http httproute/shop/route-2/rule/0/match/ own",
            "shop/gw-1/http httproute/shop/route-3/rule/0/match/ own",
        ]
    );
    assert_eq!(
        routes(PATCH_2),
        [
            "shop/gw-2/http httproute/shop/route-3/rule/0/match/ own",
            "shop/gw-2/http httproute/shop/route-4/rule/0/match/ own",
        ]
    );
    let counted: Vec<String> = cluster.counted("ConfigMap limits");
    assert_eq!(
        counted,
        [
            "shop/gw-1/httproute/shop/route-1 all 5/60",
            "shop/gw-1/httproute/shop/route-2 own 5/60",
            "shop/gw-1/httproute/shop/route-3 own 5/60",
            "shop/gw-2/httproute/shop/route-3 own 5/60",
            "shop/gw-2/httproute/shop/route-4 own 5/60",
        ]
    );
    assert_eq!(
        cluster.condition("rlp-1", "Enforced"),
        "True Enforced RateLimitPolicy has been partially enforced"
    );
    assert_eq!(
        cluster.condition("rlp-2", "Enforced"),
        "True Enforced RateLimitPolicy has been successfully enforced"
    );
}

/// Each event, and the outputs that it has written.
#[rstest]
#[case::a_policy_is_changed(
    |c: &mut Cluster| c.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"]))),
    &[LIMITS, PATCH_1, "RateLimitPolicy rlp-2"],
)]
#[case::a_policy_of_a_route_of_two_gateways(
    |c: &mut Cluster| c.put(policy("rlp-3", "HTTPRoute/route-3", limits(&["other"]))),
    &[LIMITS, PATCH_1, PATCH_2, "RateLimitPolicy rlp-3"],
)]
#[case::a_policy_is_deleted(
    |c: &mut Cluster| c.delete("RateLimitPolicy rlp-4"),
    &[LIMITS, PATCH_2, "Gateway gw-2"],
)]
#[case::the_policy_of_a_gateway_is_deleted(
    |c: &mut Cluster| c.delete("RateLimitPolicy rlp-1"),
    &[LIMITS, PATCH_1, "Gateway gw-1"],
)]
#[case::a_policy_without_a_target(
    |c: &mut Cluster| c.put(policy("rlp-9", "HTTPRoute/none", limits(&["own"]))),
    &["RateLimitPolicy rlp-9"],
)]
#[case::a_route_is_added(
    |c: &mut Cluster| c.put(route("route-5", &["gw-1"])),
    &[LIMITS, PATCH_1],
)]
#[case::a_route_without_a_policy_is_added(
    |c: &mut Cluster| c.put(route("route-5", &["gw-2"])),
    &[],
)]
#[case::a_route_moves(
    |c: &mut Cluster| c.put(route("route-4", &["gw-1"])),
    &[LIMITS, PATCH_1, PATCH_2, "Gateway gw-1", "Gateway gw-2", "RateLimitPolicy rlp-1", "RateLimitPolicy rlp-4"],
)]
#[case::a_route_is_deleted(
    |c: &mut Cluster| c.delete("HTTPRoute route-1"),
    &[LIMITS, PATCH_1, "Gateway gw-1", "RateLimitPolicy rlp-1"],
)]
#[case::a_patch_is_edited(
    |c: &mut Cluster| c.edit(PATCH_1, |object| object["spec"]["jsonPatches"] = json!([])),
    &[PATCH_1],
)]
#[case::a_patch_is_deleted(|c: &mut Cluster| c.delete(PATCH_1), &[PATCH_1])]
#[case::the_limits_are_edited(
    |c: &mut Cluster| c.edit(LIMITS, |object| object["data"]["limits.yaml"] = json!("[]")),
    &[LIMITS],
)]
#[case::the_limits_are_deleted(|c: &mut Cluster| c.delete(LIMITS), &[LIMITS])]
#[case::a_status_is_edited(
    |c: &mut Cluster| c.edit("RateLimitPolicy rlp-1", |object| object["status"]["conditions"] = json!([])),
    &["RateLimitPolicy rlp-1"],
)]
#[case::the_same_again(|c: &mut Cluster| c.put(route("route-1", &["gw-1"])), &[])]
fn an_event_writes_what_it_affects(#[case] event: fn(&mut Cluster), #[case] written: &[&str]) {
    let mut cluster = example();
    cluster.written.clear();
    event(&mut cluster);
    cluster.settle();
    assert_eq!(cluster.written.iter().map(String::as_str).collect::<Vec<_>>(), written);
    let before = cluster.outputs();
    let mut anew = Cluster::of(cluster.inputs());
    anew.settle();
    assert_eq!(anew.outputs(), before, "what a new process makes of the same objects");
}

/// What no policy needs any more goes, and the limits stay as an empty file.
#[test]
fn the_last_policy_takes_everything_along() {
    let mut cluster = example();
    for n in 1..=4 {
        cluster.delete(&status(&format!("rlp-{n}")));
    }
    cluster.settle();
    assert!(
        !cluster.outputs().keys().any(|name| name.starts_with("EnvoyPatchPolicy")),
        "{:?}",
        cluster.outputs()
    );
    assert!(cluster.counted(LIMITS).is_empty());
}

/// While a kind is not read, nothing is written.
#[test]
fn outputs_of_what_cannot_be_read_stay() {
    let mut cluster = example();
    let before = cluster.outputs();
    cluster.unread = Some("HTTPRoute");
    for n in 1..=4 {
        cluster.forget(&format!("HTTPRoute route-{n}"));
    }
    cluster.settle();
    assert_eq!(cluster.outputs(), before);
    // What is in force stays so; a change of it is not.
    cluster.wake("RateLimitPolicy", "rlp-2");
    assert!(cluster.condition("rlp-2", "Enforced").starts_with("True"));
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"])));
    cluster.put(policy("rlp-9", "HTTPRoute/route-2", limits(&["other"])));
    cluster.settle();
    // What was decided of a version stays decided, in another process too.
    let before = cluster.condition("rlp-4", "Enforced");
    cluster.wake("RateLimitPolicy", "rlp-4");
    assert_eq!(cluster.condition("rlp-4", "Enforced"), before);
    for name in ["rlp-2", "rlp-9"] {
        let said = cluster.condition(name, "Enforced");
        assert!(
            said.starts_with("False Unknown") && said.contains("objects of the kind HTTPRoute"),
            "{said}"
        );
    }
}

#[test]
fn kuadrants_own_operator_goes_first() {
    let mut cluster = example();
    cluster.put(json!({
        "apiVersion": "kuadrant.io/v1beta1", "kind": "Kuadrant",
        "metadata": {"namespace": "kuadrant-system", "name": "kuadrant"},
    }));
    cluster.written.clear();
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"])));
    cluster.settle();
    assert!(cluster.written.is_empty(), "{:?}", cluster.written);
    cluster.delete("Kuadrant kuadrant");
    cluster.settle();
    assert!(cluster.written.contains(PATCH_1), "{:?}", cluster.written);
}

/// What cannot be carried out is said, and the other limits of the policy are.
#[rstest]
#[case::of_kuadrant(json!([{"predicate": "request.path.lowerAscii() == '/a'"}]), json!([]), "lowerAscii")]
#[case::of_authentication(json!([]), json!([{"expression": "auth.identity.userid"}]), "auth.identity has no value")]
#[case::broken(json!([{"predicate": "request.host == "}]), json!([]), "does not parse")]
fn an_expression_that_envoy_lacks_is_left_out(
    #[case] when: Value,
    #[case] counters: Value,
    #[case] says: &str,
) {
    let mut cluster = example();
    let mut spec = limits(&["own", "wrong"]);
    spec["limits"]["wrong"]["when"] = when;
    spec["limits"]["wrong"]["counters"] = counters;
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", spec));
    cluster.settle();
    let route_2 = "shop/gw-1/http httproute/shop/route-2/rule/0/match/ own".to_owned();
    assert!(cluster.limited(PATCH_1).contains(&route_2), "{:?}", cluster.limited(PATCH_1));
    let condition = cluster.condition("rlp-2", "Enforced");
    assert!(
        condition.starts_with("False Unsupported limit wrong") && condition.contains(says),
        "{condition}"
    );
}

#[rstest]
#[case::no_limitador(
    |c: &mut Cluster| c.put(settings(json!([]))),
    "False Unknown RateLimitPolicy has encountered some issues: no Limitador counts for Gateway/shop/gw-1; name one in \
     spec.policies.limitadors of Interlock default",
)]
#[case::of_another_controller(
    |c: &mut Cluster| c.put(cluster::class("istio.io/gateway-controller")),
    "False Unknown RateLimitPolicy has encountered some issues: Gateway/shop/gw-1 is not of a GatewayClass of Envoy \
     Gateway (gateway.envoyproxy.io/gatewayclass-controller), and only those are carried out",
)]
#[case::refused_by_envoy_gateway(
    |c: &mut Cluster| {
        c.refuses = true;
        c.put(policy("rlp-1", "Gateway/gw-1", limits(&["all", "more"])));
    },
    "False Unknown RateLimitPolicy has encountered some issues: EnvoyPatchPolicy shop/interlock-limits-gw-1-0: Disabled: \
     EnvoyPatchPolicy is disabled",
)]
fn what_keeps_a_policy_from_being_carried_out_is_in_its_conditions(
    #[case] event: fn(&mut Cluster),
    #[case] says: &str,
) {
    let mut cluster = example();
    event(&mut cluster);
    cluster.settle();
    assert_eq!(cluster.condition("rlp-1", "Enforced"), says);
    assert_eq!(cluster.condition("rlp-1", "Accepted"), "True Accepted RateLimitPolicy has been accepted");
}

/// Envoy Gateway leaves out a listener that is not programmed, and names the port after the next one.
#[test]
fn a_listener_that_is_not_programmed_names_no_port() {
    let mut cluster = example();
    cluster.edit("Gateway gw-1", |object| {
        let https = |name: &str| json!({"name": name, "port": 443, "protocol": "HTTPS", "hostname": format!("{name}.test")});
        object["spec"]["listeners"] = json!([https("one"), https("two")]);
    });
    cluster.settle();
    let listeners = |cluster: &Cluster| {
        let operations = cluster.outputs()[PATCH_1]["spec"]["jsonPatches"].clone();
        let of_listener = |own: &&Value| own["type"].as_str().unwrap().ends_with("Listener");
        let all = operations.as_array().unwrap();
        all.iter().filter(of_listener).map(|own| own["name"].to_string()).collect::<BTreeSet<_>>()
    };
    let only = |name: &str| BTreeSet::from([format!("\"shop/gw-1/{name}\"")]);
    assert_eq!(listeners(&cluster), only("one"));
    let say = |status: &'static str| {
        move |object: &mut Value| {
            let condition = json!({"type": "Programmed", "status": status});
            object["status"]["listeners"] = json!([{"name": "one", "conditions": [condition]}]);
        }
    };
    cluster.edit("Gateway gw-1", say("False"));
    cluster.settle();
    assert_eq!(listeners(&cluster), only("two"));
    assert!(cluster.limited(PATCH_1).iter().all(|own| own.starts_with("shop/gw-1/two ")));
    cluster.edit("Gateway gw-1", say("True"));
    cluster.settle();
    assert_eq!(listeners(&cluster), only("one"));
}

/// What the API server refuses is said by the policies, also of a route that came while all was in force.
#[rstest]
#[case::patches("EnvoyPatchPolicy", "EnvoyPatchPolicy shop/interlock-limits-gw-1-0")]
#[case::limits("ConfigMap", "ConfigMap system/limits")]
fn what_is_refused_is_in_the_conditions(#[case] kind: &'static str, #[case] named: &str) {
    let mut cluster = example();
    cluster.settle();
    assert!(cluster.condition("rlp-2", "Enforced").starts_with("True"));
    cluster.denied = Some(kind);
    cluster.put(policy("rlp-5", "HTTPRoute/route-1", limits(&["other"])));
    cluster.settle();
    for name in ["rlp-2", "rlp-5"] {
        cluster.wake("RateLimitPolicy", name);
        let said = cluster.condition(name, "Enforced");
        assert!(said.starts_with("False Unknown") && said.contains(named), "{said}");
        assert!(said.contains("cannot be written (exceeded quota: none)"), "{said}");
    }
    cluster.denied = None;
    cluster.wake("Gateway", "gw-1");
    for name in ["rlp-2", "rlp-5"] {
        cluster.wake("RateLimitPolicy", name);
        assert!(cluster.condition(name, "Enforced").starts_with("True"), "{name}");
    }
}

/// Envoy asks for no limits of requests that it redirects: the policies say so, and nothing is written for them.
#[test]
fn what_is_redirected_is_said_not_to_be_limited() {
    let mut cluster = example();
    let redirect = |name: &str| {
        let mut object = route(name, &["gw-1"]);
        object["spec"]["rules"][0]["filters"] =
            json!([{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]);
        object
    };
    let enforced = |cluster: &Cluster, name: &str| cluster.condition(name, "Enforced");
    let whole = enforced(&cluster, "rlp-1");

    // All that a policy has.
    cluster.put(redirect("route-2"));
    cluster.settle();
    assert_eq!(
        enforced(&cluster, "rlp-2"),
        "False Unsupported no request is limited: HTTPRoute/shop/route-2#rule-1 redirects, which Envoy does without \
         asking; target rules with backends"
    );
    assert!(cluster.limited(PATCH_1).iter().all(|own| !own.contains("/route-2/")));
    assert!(cluster.counted(LIMITS).iter().all(|own| !own.contains("/route-2 ")));
    assert_eq!(enforced(&cluster, "rlp-1"), whole);
    assert_eq!(cluster.affected("gw-1"), "Object affected by RateLimitPolicy [shop/rlp-1 shop/rlp-3]");

    // One of several; its output stays as it was.
    cluster.written.clear();
    cluster.put(redirect("route-9"));
    cluster.settle();
    let said = format!("{whole}; requests that HTTPRoute/shop/route-9#rule-1 redirects are not limited");
    assert_eq!(enforced(&cluster, "rlp-1"), said);
    assert_eq!(cluster.written, BTreeSet::from(["RateLimitPolicy rlp-1".to_owned()]));
    cluster.delete("HTTPRoute route-9");
    cluster.settle();
    assert_eq!(enforced(&cluster, "rlp-1"), whole);
    cluster.put(route("route-2", &["gw-1"]));
    cluster.settle();
    assert!(enforced(&cluster, "rlp-2").starts_with("True Enforced"));

    // What cannot be carried out anyway says that, whatever the route does.
    let mut lacks = limits(&["lacks"]);
    lacks["limits"]["lacks"]["when"] = json!([{"predicate": "request.path.lowerAscii() == '/a'"}]);
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", lacks));
    for object in [route("route-2", &["gw-1"]), redirect("route-2"), route("route-2", &["gw-1"])] {
        cluster.put(object);
        cluster.settle();
        let said = enforced(&cluster, "rlp-2");
        assert!(said.starts_with("False Unsupported limit lacks is not carried out: "), "{said}");
    }
}

/// An object of the kind Limitador says where it is reached, and gets the limits.
#[test]
fn a_limitador_gets_its_limits() {
    let mut cluster = example();
    cluster.put(json!({
        "apiVersion": "limitador.kuadrant.io/v1alpha1", "kind": "Limitador",
        "metadata": {"namespace": "system", "name": "own"}, "spec": {"replicas": 2},
        "status": {"service": {"host": "own.system.svc.cluster.local", "ports": {"http": 8080, "grpc": 8081}}},
    }));
    let gateways = json!([{"namespace": "shop", "name": "gw-2"}]);
    cluster.put(settings(json!([
        {"namespace": "system", "configMap": "limits", "host": "limitador.system"},
        {"namespace": "system", "limitador": "own", "gateways": gateways},
    ])));
    cluster.settle();
    assert_eq!(cluster.counted("Limitador own").len(), 2);
    assert_eq!(cluster.counted(LIMITS).len(), 3);
    assert!(cluster.outputs()[PATCH_2].to_string().contains("own.system.svc.cluster.local"));
    assert_eq!(cluster.outputs()["Limitador own"]["spec"]["replicas"], 2);
}

/// A route on two listeners of one port, of which one has a policy: the host tells them apart.
#[test]
fn listeners_of_one_port_are_told_apart_by_their_hosts() {
    let mut cluster = example();
    let mut object = gateway("gw-1");
    object["spec"]["listeners"] = json!([
        {"name": "http", "port": 80, "protocol": "HTTP", "hostname": "a.example.org"},
        {"name": "other", "port": 80, "protocol": "HTTP", "hostname": "b.example.org"},
    ]);
    cluster.put(object);
    cluster.put(policy("rlp-1", "Gateway/gw-1#other", limits(&["all"])));
    cluster.settle();
    assert_eq!(
        cluster.limited(PATCH_1)[0],
        "shop/gw-1/http httproute/shop/route-1/rule/0/match/ /b_example_org all"
    );
}

/// A name cannot be chosen so that it has the identifier of another policy's limit.
#[test]
fn texts_of_users_are_no_keys() {
    let mut cluster = example();
    let mut spec = limits(&["a\u{7f}\"] == '1' || 'x' == 'x"]);
    let only = spec["limits"].as_object_mut().unwrap().values_mut().next().unwrap();
    only["counters"] = json!([{"expression": "request.headers['x-\"user']"}]);
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", spec));
    cluster.settle();
    let patch = cluster.outputs()[PATCH_1].clone();
    let keys = cluster::keys_of(&patch, "httproute/shop/route-2/rule/0/match/");
    let is_generated = |key: &String| key.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    assert!(keys.len() == 2 && keys.iter().all(is_generated), "{keys:?}");
    let file = cluster.outputs()[LIMITS]["data"]["limits.yaml"].as_str().unwrap().to_owned();
    assert!(file.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{file:?}");
}

/// The policies of a route that are too large leave those of its Gateway in force.
#[test]
fn what_is_too_large_leaves_the_limits_of_the_gateway() {
    let mut cluster = example();
    let overrides = json!({"overrides": {"strategy": "merge", "limits": limits(&["all"])["limits"]}});
    cluster.put(policy("rlp-1", "Gateway/gw-1", overrides));
    let names: Vec<String> = (0..1000).map(|n| format!("a-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&names)));
    cluster.settle();
    let of_route = |route: &str| {
        let limited = cluster.limited(PATCH_1);
        limited.into_iter().find(|own| own.contains(route)).unwrap()
    };
    assert!(of_route("/route-2/").split(' ').any(|limit| limit == "all"), "{}", of_route("/route-2/"));
    assert_eq!(of_route("/route-1/").split(' ').next_back(), Some("all"));
    let condition = cluster.condition("rlp-2", "Enforced");
    assert!(condition.contains("have more than 64 KiB; write fewer limits"), "{condition}");
}

/// Settings that cannot be honoured, or that are deleted, take nothing away.
#[rstest]
#[case::two_ways(|c: &mut Cluster| c.put(settings(json!([
    {"namespace": "system", "configMap": "limits", "limitador": "own", "host": "limitador.system"},
]))))]
#[case::deleted(|c: &mut Cluster| c.delete("Interlock default"))]
fn settings_that_are_wrong_change_nothing(#[case] event: fn(&mut Cluster)) {
    let mut cluster = example();
    let before = cluster.outputs();
    event(&mut cluster);
    cluster.settle();
    assert_eq!(cluster.outputs(), before);
}

/// One listener with HTTP/3 opens the port for all of them; its name in the proxy is that of the first, or by its port.
#[rstest]
#[case::by_the_first_listener(
    false,
    &["shop/gw-1/p", "shop/gw-1/a-quic", "shop/gw-1/a"],
    &["shop/gw-1/a", "shop/gw-1/b", "shop/gw-1/c", "shop/gw-1/p"],
)]
#[case::by_the_port(
    true,
    &["tcp-80", "udp-443", "tcp-443"],
    &["http-80", "shop/gw-1/a", "shop/gw-1/b", "shop/gw-1/c"],
)]
fn the_listener_of_http_3_has_the_filters_too(
    #[case] by_port: bool,
    #[case] listeners: &[&str],
    #[case] configurations: &[&str],
) {
    let mut cluster = example();
    let limitadors = json!([{"namespace": "system", "configMap": "limits", "host": "limitador.system"}]);
    cluster.put(settings_of(json!({"limitadors": limitadors, "xdsNameSchemeV2": by_port})));
    let mut object = gateway("gw-1");
    object["spec"]["listeners"] = json!([
        {"name": "a", "port": 443, "protocol": "HTTPS", "hostname": "a.example.org"},
        {"name": "b", "port": 443, "protocol": "HTTPS", "hostname": "b.example.org"},
        {"name": "c", "port": 10443, "protocol": "HTTPS", "hostname": "c.example.org"},
        {"name": "p", "port": 80, "protocol": "HTTP"},
        {"name": "q", "port": 10080, "protocol": "HTTP", "hostname": "q.example.org"},
    ]);
    cluster.put(object);
    let target =
        json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw-1", "sectionName": "b"});
    cluster.put(json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "ClientTrafficPolicy",
        "metadata": {"namespace": "shop", "name": "quic"}, "spec": {"targetRefs": [target], "http3": {}},
    }));
    cluster.settle();
    let operations = cluster.outputs()[PATCH_1]["spec"]["jsonPatches"].clone();
    let of = |kind: &str| -> Vec<String> {
        let all = operations.as_array().unwrap().iter();
        let of_kind = all.filter(|own| own["type"].as_str().unwrap().ends_with(kind));
        let mut names: Vec<String> = of_kind.map(|own| own["name"].as_str().unwrap().to_owned()).collect();
        names.dedup();
        names
    };
    assert_eq!(of("v3.Listener"), listeners);
    assert_eq!(of("v3.RouteConfiguration"), configurations);
}

/// Of ListenerSets the older one comes first, as in the proxy.
#[test]
fn listener_sets_come_by_age() {
    let mut cluster = example();
    let mut object = gateway("gw-1");
    object["spec"]["listeners"] = json!([{"name": "other", "port": 81, "protocol": "HTTP"}]);
    object["spec"]["allowedListeners"] = json!({"namespaces": {"from": "Same"}});
    cluster.put(object);
    for (name, age) in [("zz-old", 1), ("aa-new", 2)] {
        let listener =
            json!({"name": "l", "port": 80, "protocol": "HTTP", "hostname": format!("{name}.example.org")});
        cluster.put(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ListenerSet",
            "metadata": {"namespace": "shop", "name": name, "creationTimestamp": format!("2026-01-01T00:00:0{age}Z")},
            "spec": {"parentRef": {"name": "gw-1"}, "listeners": [listener]},
        }));
    }
    let mut object = route("route-1", &["gw-1"]);
    object["spec"]["parentRefs"] = json!([{"kind": "ListenerSet", "name": "aa-new"}]);
    cluster.put(object);
    cluster.settle();
    let limited = cluster.limited(PATCH_1);
    assert!(
        limited.iter().any(|own| own.starts_with("shop/gw-1/shop/zz-old/l httproute/shop/route-1/")),
        "{limited:?}"
    );
}

/// A kind that is not read any more says nothing.
#[test]
fn what_is_forgotten_holds_nothing_up() {
    let mut cluster = example();
    cluster.put(json!({
        "apiVersion": "kuadrant.io/v1beta1", "kind": "Kuadrant",
        "metadata": {"namespace": "kuadrant-system", "name": "kuadrant"},
    }));
    cluster.forget_kind("Kuadrant");
    cluster.written.clear();
    cluster.put(policy("rlp-2", "HTTPRoute/route-2", limits(&["other"])));
    cluster.settle();
    assert!(cluster.written.contains(PATCH_1), "{:?}", cluster.written);
}

/// The limits of many routes that are too many for a Limitador leave those of the Gateway in force, and say so.
#[test]
fn what_is_too_large_for_a_limitador_leaves_the_limits_of_the_gateway() {
    let mut cluster = example();
    let overrides = json!({"overrides": {"strategy": "merge", "limits": limits(&["all"])["limits"]}});
    cluster.put(policy("rlp-1", "Gateway/gw-1", overrides));
    let names: Vec<String> = (0..80).map(|n| format!("a-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for n in 0..90 {
        cluster.put(route(&format!("more-{n}"), &["gw-1"]));
        cluster.put(policy(&format!("more-{n}"), &format!("HTTPRoute/more-{n}"), limits(&names)));
    }
    cluster.settle();
    let counted = cluster.counted(LIMITS);
    assert_eq!(counted.iter().filter(|own| own.contains("/more-") && own.ends_with(" all 5/60")).count(), 90);
    let of_routes = counted.iter().filter(|own| own.contains(" a_")).count();
    assert!((3000..90 * 80).contains(&of_routes), "{of_routes}");
    let condition = cluster.condition("more-1", "Enforced");
    assert!(condition.contains("more limits than its share of ConfigMap system/limits"), "{condition}");
    assert!(
        cluster.condition("rlp-1", "Enforced").starts_with("True"),
        "{}",
        cluster.condition("rlp-1", "Enforced")
    );
}

/// Routes of one namespace multiply neither the entries of a Gateway's limits nor what the namespace is allowed by them.
#[test]
fn many_routes_of_a_namespace_count_together() {
    let mut cluster = example();
    let add = |cluster: &mut Cluster, count: usize| {
        for n in 0..count {
            cluster.put(route(&format!("more-{n}"), &["gw-1"]));
        }
        cluster.settle();
        cluster.counted(LIMITS).into_iter().filter(|own| own.starts_with("shop/gw-1/")).collect::<Vec<_>>()
    };
    let most = limitador::ROUTES;
    // Three are of the example.
    let apart = add(&mut cluster, most - 3);
    assert_eq!(apart.iter().filter(|own| own.ends_with(" all 5/60")).count(), most - 2, "two have their own");
    let together = add(&mut cluster, most - 2);
    let own = ["shop/gw-1/shop all 5/60", "shop/gw-1/shop own 5/60", "shop/gw-1/shop own 5/60"];
    assert_eq!(together, own);
}

/// A map that is too large for one object goes on in the next one.
#[test]
fn many_routes_are_spread_over_objects() {
    let mut cluster = example();
    let names: Vec<String> = (0..70).map(|n| format!("a-{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    cluster.put(policy("rlp-1", "Gateway/gw-1", limits(&names)));
    for n in 0..60 {
        cluster.put(route(&format!("more-{n}"), &["gw-1"]));
    }
    cluster.settle();
    let outputs = cluster.outputs();
    let patches: Vec<&Value> =
        outputs.iter().filter(|(name, _)| name.contains("gw-1")).map(|(_, object)| object).collect();
    assert!(patches.len() > 1, "{}", patches.len());
    assert!(patches.iter().all(|own| own.to_string().len() < 1_200_000));
    let paths: Vec<&str> = patches
        .iter()
        .filter_map(|own| own["spec"]["jsonPatches"].as_array()?.last()?["operation"]["path"].as_str())
        .collect();
    assert_eq!(paths[0], "/typed_per_filter_config/interlock.limits");
    assert_eq!(paths[1], "/typed_per_filter_config/interlock.limits/matcher/on_no_match");
    let limited: usize =
        outputs.keys().filter(|name| name.contains("gw-1")).map(|own| cluster.limited(own).len()).sum();
    assert_eq!(limited, 63);
}
