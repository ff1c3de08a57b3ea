//! AuthPolicies.

use rstest::rstest;
use serde_json::{Value, json};

use super::cluster::{Cluster, auth_policy, gateway, limits, policy, route, settings_of};

/// Authentication in ways of these names.
fn ways(names: &[&str]) -> Value {
    let way = |name: &&str| ((*name).to_owned(), json!({"jwt": {"issuerUrl": "https://issuer.example"}}));
    json!({"rules": {"authentication": names.iter().map(way).collect::<serde_json::Map<_, _>>()}})
}

/// Two routes of a Gateway, and the policies.
fn guarded(policies: Vec<Value>) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.put(settings_of(json!({"authServers": [{"host": "auth.system"}]})));
    cluster.put(gateway("gw-1"));
    cluster.put(route("route-1", &["gw-1"]));
    cluster.put(route("route-2", &["gw-1"]));
    policies.into_iter().for_each(|policy| cluster.put(policy));
    cluster.settle();
    cluster
}

const GUARDS: &str = "EnvoyPatchPolicy interlock-auth-gw-1-0";
const ROUTE_1: &str = "shop/gw-1/http httproute/shop/route-1/rule/0/match/";
const ROUTE_2: &str = "shop/gw-1/http httproute/shop/route-2/rule/0/match/";

fn lines(lines: &[&str]) -> Vec<String> {
    let whole = |line: &&str| line.replace("ROUTE-1", ROUTE_1).replace("ROUTE-2", ROUTE_2);
    let mut lines: Vec<String> = lines.iter().map(whole).collect();
    lines.sort();
    lines
}

/// A proxy waits as long as the entry of the auth server says.
#[test]
fn a_proxy_waits_for_its_auth_server_as_long_as_the_settings_say() {
    let mut cluster = guarded(vec![auth_policy("all", "Gateway/gw-1", ways(&["all"]))]);
    let waits = |cluster: &Cluster, time: &str| {
        cluster.outputs()[GUARDS].to_string().contains(&format!(r#""timeout":"{time}""#))
    };
    assert!(waits(&cluster, "0.2s"), "{:#}", cluster.outputs()[GUARDS]);
    let patient = json!({"host": "auth.system", "timeoutMilliseconds": 1500});
    cluster.put(settings_of(json!({"authServers": [patient]})));
    cluster.settle();
    assert!(waits(&cluster, "1.5s") && !waits(&cluster, "0.2s"), "{:#}", cluster.outputs()[GUARDS]);
}

/// What is done for each route, for routes that the map does not have, and for requests without a route.
#[rstest]
#[case::of_the_gateway(
    vec![auth_policy("all", "Gateway/gw-1", ways(&["all"]))],
    &["ROUTE-1 ask all", "ROUTE-2 ask all", "shop/gw-1/http * refuse", "shop/gw-1/http - open"],
)]
#[case::a_route_replaces_defaults(
    vec![auth_policy("all", "Gateway/gw-1", ways(&["all"])), auth_policy("own", "HTTPRoute/route-2", ways(&["own"]))],
    &["ROUTE-1 ask all", "ROUTE-2 ask own", "shop/gw-1/http * refuse", "shop/gw-1/http - open"],
)]
#[case::overrides_and_a_route(
    vec![
        auth_policy("all", "Gateway/gw-1", json!({"overrides": {"strategy": "merge", "rules": ways(&["all"])["rules"]}})),
        auth_policy("own", "HTTPRoute/route-2", ways(&["own"])),
    ],
    &["ROUTE-1 ask all", "ROUTE-2 ask all own", "shop/gw-1/http * refuse", "shop/gw-1/http - open"],
)]
#[case::of_a_route_alone(
    vec![auth_policy("own", "HTTPRoute/route-2", ways(&["own"]))],
    &[
        "ROUTE-1 open", "ROUTE-2 ask own", "shop/gw-1/http - open", "shop/gw-1/http grpcroute/shop/ refuse",
        "shop/gw-1/http httproute/shop/ refuse",
    ],
)]
#[case::that_was_never_valid(
    vec![auth_policy("own", "HTTPRoute/route-2", json!({"rules": {"authentication": []}}))],
    &[
        "ROUTE-1 open", "ROUTE-2 refuse", "shop/gw-1/http - open", "shop/gw-1/http grpcroute/shop/ refuse",
        "shop/gw-1/http httproute/shop/ refuse",
    ],
)]
fn each_route_is_guarded_by_its_policies(#[case] policies: Vec<Value>, #[case] wanted: &[&str]) {
    let cluster = guarded(policies);
    let mut found = cluster.guarded(GUARDS);
    found.sort();
    assert_eq!(found, lines(wanted));
    let filters: Vec<Value> = cluster.outputs()[GUARDS]["spec"]["jsonPatches"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|own| own["type"].as_str().unwrap().ends_with("Listener"))
        .map(|own| own["operation"]["value"]["name"].clone())
        .collect();
    assert_eq!(filters, ["interlock.auth.route", "interlock.auth"]);
}

/// A policy of the Gateway guards it from its first route on.
#[test]
fn a_gateway_without_routes_is_guarded() {
    let mut cluster = Cluster::new();
    cluster.put(settings_of(json!({"authServers": [{"host": "auth.system"}]})));
    cluster.put(gateway("gw-1"));
    cluster.settle();
    assert!(cluster.outputs().is_empty());
    cluster.put(auth_policy("all", "Gateway/gw-1", ways(&["all"])));
    cluster.settle();
    let patches = cluster.outputs()[GUARDS]["spec"]["jsonPatches"].clone();
    let guard = &patches[2]["operation"]["value"];
    assert_eq!(guard["name"], "interlock.auth", "{patches:#}");
    assert_eq!(guard["typed_config"]["matcher"]["on_no_match"]["action"]["name"], "refuse");
    cluster.delete("AuthPolicy all");
    cluster.settle();
    assert!(cluster.outputs().is_empty());
}

/// A request is refused until the auth server decides by its AuthConfig, and again where it does not any more.
#[test]
fn nothing_is_asked_that_nothing_decides() {
    let mut cluster = guarded(Vec::new());
    cluster.unready = Some("CachingError");
    cluster.put(auth_policy("all", "Gateway/gw-1", ways(&["all"])));
    cluster.settle();
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_1} refuse")));
    let said = cluster.condition_of("AuthPolicy all", "Enforced");
    assert!(said.starts_with("False Unknown") && said.contains(": CachingError]"), "{said}");
    assert!(said.contains("[AuthConfig shop/interlock-auth-"), "{said}");
    cluster.say_of_all(None);
    cluster.settle();
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_1} ask all")));
    assert_eq!(
        cluster.condition_of("AuthPolicy all", "Enforced"),
        "True Enforced AuthPolicy has been successfully enforced"
    );
    // It goes on with the version that it reads anew.
    cluster.say_of_all(Some("Reconciling"));
    cluster.settle();
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_1} ask all")));
    cluster.say_of_all(Some("HostsNotLinked"));
    cluster.settle();
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_1} refuse")));
}

/// An edit changes the AuthConfig and no proxy; what people do to it is put right; and it goes after the last that asks.
#[test]
fn an_auth_config_follows_its_policies() {
    let mut cluster = guarded(vec![auth_policy("all", "Gateway/gw-1", ways(&["all"]))]);
    let name = cluster.auth_configs()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let name = format!("AuthConfig {name}");
    let before = cluster.outputs();
    cluster.written.clear();
    cluster
        .edit("AuthPolicy all", |own| own["spec"]["rules"]["authentication"]["all"]["priority"] = 1.into());
    cluster.settle();
    assert!(cluster.written.contains(&name) && !cluster.written.contains(GUARDS), "{:?}", cluster.written);
    assert_ne!(cluster.outputs()[&name], before[&name]);
    let before = cluster.outputs();
    let edits: [fn(&mut Value); 4] = [
        |own| own["spec"]["authentication"]["any"] = json!({"anonymous": {}}),
        |own| own["spec"]["authentication"]["all"] = json!({"anonymous": {}}),
        |own| own["spec"]["authentication"]["all"]["when"] = json!([{"predicate": "false"}]),
        |own| own["spec"]["when"] = json!([{"predicate": "false"}]),
    ];
    for edit in edits {
        cluster.edit(&name, edit);
        cluster.settle();
        assert_eq!(cluster.outputs(), before);
    }
    // What the definition fills in stays.
    cluster.edit(&name, |own| own["spec"]["authentication"]["all"]["metrics"] = false.into());
    cluster.written.clear();
    cluster.settle();
    assert!(cluster.written.is_empty(), "{:?}", cluster.written);
    cluster.edit(&name, |own| own["spec"]["authentication"]["all"]["metrics"] = true.into());
    cluster.settle();
    let before = cluster.outputs();
    cluster.delete(&name);
    cluster.settle();
    assert_eq!(cluster.outputs(), before);
    cluster.delete("AuthPolicy all");
    cluster.settle();
    assert!(cluster.outputs().is_empty(), "{:?}", cluster.outputs());
}

/// Names of patterns are those of their own policy, and predicates of a block stay with its rules.
#[test]
fn an_auth_config_has_the_rules_as_they_were_written() {
    let mut spec = ways(&["all"]);
    spec["when"] = json!([{"predicate": "request.method != 'OPTIONS'"}]);
    spec["patterns"] =
        json!({"local": {"allOf": [{"selector": "source.ip", "operator": "eq", "value": "10.0.0.1"}]}});
    spec["rules"]["authorization"] = json!({"inside": {
        "patternMatching": {"patterns": [{"patternRef": "local"}, {"predicate": "true"}]},
        "when": [{"any": [{"patternRef": "local"}]}],
    }});
    spec["rules"]["response"] = json!({
        "unauthorized": {"code": 404},
        "success": {"filters": {"identity": {"json": {"properties": {"userid": {"selector": "auth.identity.sub"}}}}}},
    });
    let cluster = guarded(vec![auth_policy("all", "Gateway/gw-1", spec)]);
    let found = &cluster.auth_configs()[0]["spec"];
    let local = json!({"all": [{"selector": "source.ip", "operator": "eq", "value": "10.0.0.1"}]});
    let when = json!({"predicate": "(request.method != 'OPTIONS'\n) ? true : false"});
    let decided = "(request.method != 'OPTIONS'\n) ? true : false";
    let holds = format!("({decided})");
    let wanted = json!({
        "hosts": found["hosts"],
        "authentication": {
            "all": {"jwt": {"issuerUrl": "https://issuer.example"}, "when": [when]},
            "interlock-unguarded": {"anonymous": {}, "when": [{"predicate": format!("!({holds})")}]},
        },
        "authorization": {
            "inside": {
                "patternMatching": {"patterns": [local, {"predicate": "(true\n) ? true : false"}]},
                "when": [when, {"any": [local]}],
            },
            "interlock-decided-0": {
                "patternMatching": {"patterns": [{"predicate": format!("({decided}) || !({decided})")}]},
                "priority": 0,
            },
        },
        "response": {
            "unauthorized": {"code": 404},
            "success": {"dynamicMetadata": {"identity": {
                "json": {"properties": {"userid": {"selector": "auth.identity.sub"}}}, "when": [when],
            }}},
        },
    });
    assert_eq!(*found, wanted, "{found:#}");
}

#[rstest]
#[case::a_pattern_that_is_absent(
    json!({"rules": {"authorization": {"a": {"patternMatching": {"patterns": [{"patternRef": "none"}]}}}}}),
    "False Unsupported authorization.a is not carried out, and its routes let no request in: patternRef \"none\" is none of \
     the patterns of its policy, shop/own; define it there",
)]
#[case::more_than_fits(
    json!({"rules": {"metadata": {"a": {"http": {"url": "x".repeat(70_000)}}}}}),
    "False Unsupported rules is not carried out, and its routes let no request in: the rules of one path have more than 64 \
     KiB; write fewer",
)]
fn what_is_not_carried_out_refuses_and_is_said(#[case] spec: Value, #[case] says: &str) {
    let cluster = guarded(vec![auth_policy("own", "HTTPRoute/route-2", spec)]);
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_2} refuse")));
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_1} open")));
    assert_eq!(cluster.condition_of("AuthPolicy own", "Enforced"), says);
}

/// A Gateway has one of both servers: the policies of the other kind say what is missing.
#[test]
fn what_has_no_server_is_said() {
    let mut cluster = guarded(vec![
        auth_policy("all", "Gateway/gw-1", ways(&["all"])),
        policy("rlp", "HTTPRoute/route-1", limits(&["own"])),
    ]);
    assert!(cluster.condition_of("AuthPolicy all", "Enforced").starts_with("True"));
    let said = cluster.condition("rlp", "Enforced");
    assert!(
        said.contains("no Limitador counts for Gateway/shop/gw-1; name one in spec.policies.limitadors"),
        "{said}"
    );
    cluster.put(settings_of(
        json!({"limitadors": [{"namespace": "l", "configMap": "limits", "host": "l.system"}]}),
    ));
    cluster.settle();
    assert!(cluster.condition("rlp", "Enforced").starts_with("True"));
    let said = cluster.condition_of("AuthPolicy all", "Enforced");
    assert!(
        said.contains("no auth server decides for Gateway/shop/gw-1; name one in spec.policies.authServers"),
        "{said}"
    );
    // What is guarded is not opened by a setting that goes.
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_2} ask all")));
    cluster.delete("AuthPolicy all");
    cluster.settle();
    assert!(cluster.auth_configs().is_empty());
    assert!(!cluster.outputs().contains_key(GUARDS));
}

/// What holds the limits up does not leave routes unguarded.
#[test]
fn routes_are_guarded_while_a_limitador_is_awaited() {
    let mut cluster = guarded(vec![policy("rlp", "HTTPRoute/route-1", limits(&["own"]))]);
    cluster.put(settings_of(json!({
        "authServers": [{"host": "auth.system"}], "limitadors": [{"namespace": "shop", "limitador": "none"}],
    })));
    cluster.put(auth_policy("all", "Gateway/gw-1", ways(&["all"])));
    cluster.settle();
    assert!(cluster.guarded(GUARDS).contains(&format!("{ROUTE_1} ask all")));
    assert!(cluster.condition_of("AuthPolicy all", "Enforced").starts_with("True"));
    let said = cluster.condition("rlp", "Enforced");
    assert!(said.contains("[Limitador shop/none]"), "{said}");
}

/// An AuthConfig that the API server refuses closes the routes of its policy, and holds nothing else up.
#[test]
fn an_auth_config_that_cannot_be_written_closes_its_routes_alone() {
    let mut cluster = guarded(vec![auth_policy("own", "HTTPRoute/route-1", ways(&["own"]))]);
    cluster.denied = Some("AuthConfig");
    cluster.put(auth_policy("second", "HTTPRoute/route-2", ways(&["second"])));
    cluster.settle();
    let found = cluster.guarded(GUARDS);
    for line in [format!("{ROUTE_1} ask own"), format!("{ROUTE_2} refuse")] {
        assert!(found.contains(&line), "{found:?}");
    }
    assert!(cluster.condition_of("AuthPolicy own", "Enforced").starts_with("True"));
    cluster.wake("AuthPolicy", "second");
    let said = cluster.condition_of("AuthPolicy second", "Enforced");
    assert!(said.contains("which cannot be written (exceeded quota: none)"), "{said}");
}

/// A policy that comes before its route guards it from its first request on.
#[test]
fn the_namespace_of_a_policy_without_its_route_is_closed() {
    let mut cluster = guarded(vec![auth_policy("own", "HTTPRoute/later", ways(&["own"]))]);
    let refuses = |kind: &str| format!("shop/gw-1/http {kind}/shop/ refuse");
    let found = cluster.guarded(GUARDS);
    assert!(found.contains(&refuses("httproute")) && found.contains(&refuses("grpcroute")), "{found:?}");
    assert!(found.contains(&format!("{ROUTE_1} open")), "{found:?}");
    cluster.put(route("later", &["gw-1"]));
    cluster.settle();
    let later = "shop/gw-1/http httproute/shop/later/rule/0/match/ ask own".to_owned();
    assert!(cluster.guarded(GUARDS).contains(&later));
    cluster.delete("HTTPRoute later");
    cluster.delete("AuthPolicy own");
    cluster.settle();
    assert!(!cluster.outputs().contains_key(GUARDS));
}

/// Where listeners of a port share a host, it is the one's that names it; each listener may become the first of its port.
#[test]
fn a_host_is_the_listeners_that_names_it() {
    let mut cluster = Cluster::new();
    cluster.put(settings_of(json!({"authServers": [{"host": "auth.system"}]})));
    let mut two = gateway("gw-1");
    two["spec"]["listeners"] = json!([
        {"name": "a-wide", "port": 80, "protocol": "HTTP", "hostname": "*.example.com"},
        {"name": "b-exact", "port": 80, "protocol": "HTTP", "hostname": "a.example.com"},
    ]);
    cluster.put(two);
    let mut shared = route("route-1", &["gw-1"]);
    shared["spec"]["hostnames"] = json!(["a.example.com", "b.example.com"]);
    cluster.put(shared);
    cluster.put(auth_policy("exact", "Gateway/gw-1#b-exact", ways(&["exact"])));
    cluster.settle();
    let found = cluster.guarded(GUARDS);
    let line =
        "shop/gw-1/a-wide httproute/shop/route-1/rule/0/match/ /a_example_com ask exact /b_example_com open";
    assert!(found.contains(&line.to_owned()), "{found:?}");
    let standby = &cluster.outputs()["EnvoyPatchPolicy interlock-auth-gw-1-standby"]["spec"]["jsonPatches"];
    let names: Vec<&Value> = standby.as_array().unwrap().iter().map(|own| &own["name"]).collect();
    assert_eq!(names, ["shop/gw-1/b-exact", "shop/gw-1/b-exact"]);
}
