//! Policies with their real fields on one Gateway, one route and two rules: what acts on which rule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gateway_policies::PolicyId;
use go_template::yaml;
use rstest::rstest;
use serde_json::{Value, json};

use interlock_core::kinds::capabilities::ATTACHMENTS;

use super::{PolicyKinds, PolicyRow, PolicySurvey, UnlistedKind, aged, applied, path_kinds};

const KUADRANT: &str = "kuadrant.io/v1";
const ENVOY: &str = "gateway.envoyproxy.io/v1alpha1";

fn topology() -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": kind,
            "metadata": {"namespace": "shop", "name": name, "labels": {"team": name}}, "spec": spec,
        })
    };
    let rules = json!([{"name": "read", "backendRefs": [{"name": "db", "port": 80}]}, {"name": "write"}]);
    vec![
        object(
            "Gateway",
            "gw",
            json!({"gatewayClassName": "eg", "listeners": [
                {"name": "http", "port": 80, "protocol": "HTTP"}, {"name": "alt", "port": 81, "protocol": "HTTP"},
            ]}),
        ),
        object("HTTPRoute", "api", json!({"parentRefs": [{"name": "gw"}], "rules": rules})),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": "db"},
            "spec": {"ports": [{"name": "web", "port": 80}]},
        }),
    ]
}

/// A policy of a target such as `Gateway/gw#http`; later ones are younger.
fn policy(api_version: &str, kind: &str, age: usize, name: &str, target: &str, spec: Value) -> Value {
    let (object, section) =
        target.split_once('#').map_or((target, None), |(object, section)| (object, Some(section)));
    let (target_kind, target_name) = object.split_once('/').unwrap();
    let group = if target_kind == "Service" { "" } else { "gateway.networking.k8s.io" };
    let mut reference = json!({"group": group, "kind": target_kind, "name": target_name});
    if let Some(section) = section {
        reference["sectionName"] = section.into();
    }
    let mut spec = spec;
    match api_version {
        KUADRANT => spec["targetRef"] = reference,
        _ => spec["targetRefs"] = json!([reference]),
    }
    json!({
        "apiVersion": api_version, "kind": kind, "spec": spec,
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z")},
    })
}

fn survey(policies: &[Value]) -> PolicySurvey {
    let objects: Vec<Value> = topology().into_iter().chain(policies.iter().cloned()).collect();
    let mut kinds = PolicyKinds::known();
    kinds.add_definitions(&objects);
    PolicySurvey::of(kinds, &objects, Vec::new(), true)
}

/// `KEY=POLICY` for each rule on the path over the listener `http` to a rule, and `-KEY=POLICY` for a replaced one.
fn acting(survey: &PolicySurvey, kind: &str, rule: usize) -> Vec<String> {
    let is_path = |path: &&std::sync::Arc<gateway_policies::Path>| {
        path.rule_index == rule && path.listener.section.as_deref() == Some("http")
    };
    let path = survey.index().paths().find(is_path).unwrap();
    let acting = survey.acting(path);
    let Some(effective) = acting.get(kind) else { return Vec::new() };
    let rules = effective.rules.iter().map(|(key, rule)| format!("{key}={}", rule.source.name));
    let replaced = effective.replaced.iter().map(|own| format!("-{}={}", own.rule, own.policy.name));
    rules.chain(replaced).collect()
}

fn row(survey: &PolicySurvey, name: &str) -> PolicyRow {
    survey.rows().0.into_iter().find(|row| &*row.id.name == name).unwrap()
}

fn by(row: &PolicyRow) -> Vec<&str> {
    row.by.iter().map(|id| &*id.name).collect()
}

fn limits(names: &[&str]) -> Value {
    let limit =
        json!({"rates": [{"limit": 5, "window": "1m"}], "when": [{"predicate": "request.method == 'GET'"}]});
    json!({"limits": names.iter().map(|name| ((*name).to_owned(), limit.clone())).collect::<BTreeMap<_, _>>()})
}

fn block(role: &str, strategy: &str, rules: Value) -> Value {
    let mut rules = rules;
    rules["strategy"] = strategy.into();
    json!({ role: rules })
}

fn auth(names: &[&str]) -> Value {
    let mut spec = json!({"rules": {}});
    for name in names {
        let (phase, name) = name.split_once('.').unwrap();
        match phase {
            "patterns" => {
                spec["patterns"][name] =
                    json!({"allOf": [{"selector": "request.path", "operator": "eq", "value": "/"}]})
            }
            "authentication" => spec["rules"][phase][name] = json!({"anonymous": {}}),
            "headers" => {
                spec["rules"]["response"]["success"]["headers"][name] = json!({"plain": {"value": "x"}})
            }
            "response" => spec["rules"]["response"][name] = json!({"code": 403}),
            _ => spec["rules"][phase][name] = json!({"opa": {"rego": "allow = true"}}),
        }
    }
    spec
}

/// Two RateLimitPolicies, of the Gateway and of the route's rule `write`.
fn rate_limit_cases() -> Vec<(&'static str, Value, Value, &'static [&'static str])> {
    let (upper, lower) = (limits(&["a", "b"]), limits(&["b", "c"]));
    vec![
        ("bare", upper.clone(), lower.clone(), &["b=lower", "c=lower", "-a=upper", "-b=upper"]),
        (
            "defaults",
            block("defaults", "atomic", upper.clone()),
            lower.clone(),
            &["b=lower", "c=lower", "-a=upper", "-b=upper"],
        ),
        (
            "defaults merge",
            block("defaults", "merge", upper.clone()),
            lower.clone(),
            &["a=upper", "b=lower", "c=lower", "-b=upper"],
        ),
        (
            "overrides",
            block("overrides", "atomic", upper.clone()),
            lower.clone(),
            &["a=upper", "b=upper", "-b=lower", "-c=lower"],
        ),
        (
            "overrides merge",
            block("overrides", "merge", upper),
            lower,
            &["a=upper", "b=upper", "c=lower", "-b=lower"],
        ),
    ]
}

#[test]
fn rate_limits_merge_by_name() {
    for (case, upper, lower, expected) in rate_limit_cases() {
        let policies = [
            policy(KUADRANT, "RateLimitPolicy", 0, "upper", "Gateway/gw", upper.clone()),
            policy(KUADRANT, "RateLimitPolicy", 1, "lower", "HTTPRoute/api#write", lower),
        ];
        let survey = survey(&policies);
        assert_eq!(acting(&survey, "RateLimitPolicy", 1), expected, "{case}");
        let alone = acting(&survey, "RateLimitPolicy", 0);
        assert_eq!(alone, ["a=upper", "b=upper"], "{case}: no policy of the rule");
    }
}

/// Of a listener, a predicate of its block stays with its limits.
#[test]
fn predicates_stay_in_the_policy_that_wrote_them() {
    let mut upper = limits(&["a"]);
    upper["when"] = json!([{"predicate": "true"}]);
    let mut lower = limits(&["b"]);
    lower["when"] = json!([{"predicate": "false"}]);
    let policies = [
        policy(
            KUADRANT,
            "RateLimitPolicy",
            0,
            "upper",
            "Gateway/gw#http",
            block("overrides", "merge", upper),
        ),
        policy(KUADRANT, "RateLimitPolicy", 1, "lower", "HTTPRoute/api", block("defaults", "merge", lower)),
    ];
    let survey = survey(&policies);
    let paths = survey.index().paths();
    let path = paths.into_iter().find(|path| path.listener.section.as_deref() == Some("http")).unwrap();
    let effective = survey.acting(path).remove("RateLimitPolicy").unwrap();
    let when = |key: &str| effective.rules[key].value["when"].clone();
    let own = json!({"predicate": "request.method == 'GET'"});
    assert_eq!(when("a"), json!([{"predicate": "true"}, own]));
    assert_eq!(when("b"), json!([{"predicate": "false"}, own]));
}

#[rstest]
#[case::atomic(
    auth(&["authentication.jwt", "authorization.opa"]), auth(&["authentication.key", "patterns.p"]),
    &["authentication.key=lower", "patterns.p=lower", "-authentication.jwt=upper", "-authorization.opa=upper"]
)]
#[case::patterns_alone_guard_nothing(
    auth(&["authentication.jwt"]), json!({"patterns": {"p": {"allOf": [{"selector": "request.path", "operator": "eq", "value": "/"}]}}}),
    &["authentication.jwt=upper"]
)]
#[case::merged(
    block("defaults", "merge", auth(&["authentication.jwt", "headers.x", "response.unauthorized", "patterns.p"])),
    auth(&["authentication.jwt", "response.unauthenticated"]),
    &[
        "authentication.jwt=lower", "patterns.p=upper", "response.success.headers.x=upper",
        "response.unauthenticated=lower", "response.unauthorized=upper", "-authentication.jwt=upper",
    ]
)]
#[case::overrides(
    block("overrides", "merge", auth(&["authorization.opa", "metadata.m", "callbacks.c"])),
    auth(&["authorization.opa", "authorization.other"]),
    &[
        "authorization.opa=upper", "authorization.other=lower", "callbacks.c=upper", "metadata.m=upper",
        "-authorization.opa=lower",
    ]
)]
fn auth_merges_by_phase_and_name(#[case] upper: Value, #[case] lower: Value, #[case] expected: &[&str]) {
    let policies = [
        policy(KUADRANT, "AuthPolicy", 0, "upper", "Gateway/gw", upper),
        policy(KUADRANT, "AuthPolicy", 1, "lower", "HTTPRoute/api", lower),
    ];
    assert_eq!(acting(&survey(&policies), "AuthPolicy", 0), expected);
}

#[rstest]
#[case::no_limit(KUADRANT, "RateLimitPolicy", "Gateway/gw", json!({"limits": {}}), "spec: has no rule")]
#[case::a_limit_is_text(KUADRANT, "RateLimitPolicy", "Gateway/gw", json!({"limits": {"a": "5/m"}}), "spec.limits.a: ")]
#[case::two_blocks(
    KUADRANT, "RateLimitPolicy", "Gateway/gw",
    json!({"defaults": limits(&["a"]), "overrides": limits(&["a"])}), "spec: has more than one"
)]
#[case::a_rate_is_text(
    KUADRANT, "RateLimitPolicy", "Gateway/gw",
    json!({"limits": {"a": {"rates": [{"limit": "5", "window": "1m"}]}}}), "spec.limits.a.rates: "
)]
#[case::no_map(KUADRANT, "AuthPolicy", "Gateway/gw", json!({"rules": []}), "spec.rules: has to be an object")]
#[case::no_rules(
    KUADRANT, "AuthPolicy", "HTTPRoute/api",
    json!({"overrides": {"rules": {"response": {"success": {"headers": "x"}}}}}),
    "spec.overrides.rules.response.success.headers: has to be a map"
)]
#[case::target(KUADRANT, "TLSPolicy", "HTTPRoute/api", json!({}), "spec.targetRef: TLSPolicy cannot target")]
#[case::of_envoy(ENVOY, "ClientTrafficPolicy", "HTTPRoute/api", json!({}), "it can target Gateway, ListenerSet")]
fn what_can_never_act_is_invalid(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] target: &str,
    #[case] spec: Value,
    #[case] message: &str,
) {
    let row = row(&survey(&[policy(api_version, kind, 0, "bad", target, spec)]), "bad");
    assert_eq!((row.accepted.status, row.accepted.reason), ("False", "Invalid"));
    assert!(row.accepted.message.contains(message), "{}", row.accepted.message);
}

/// Of Envoy Gateway: the more specific policy replaces the upper ones whole, or merges with the nearest of a Gateway.
#[rstest]
#[case::replaced(
    json!({"cors": {}}), &["cors=rule", "-cors=gateway", "-jwt=gateway", "-cors=route"], &["route", "rule"]
)]
#[case::replaced_by_an_empty_one(
    json!({}), &["spec=rule", "-cors=gateway", "-jwt=gateway", "-cors=route"], &["route", "rule"]
)]
#[case::merged(
    json!({"cors": {}, "mergeType": "StrategicMerge"}), &["cors=rule", "jwt=gateway", "-cors=route"], &["route"]
)]
fn the_more_specific_replaces(#[case] spec: Value, #[case] expected: &[&str], #[case] replaced_by: &[&str]) {
    let gateway = json!({"cors": {"maxAge": "5m"}, "jwt": {"providers": []}});
    let policies = [
        policy(ENVOY, "SecurityPolicy", 0, "gateway", "Gateway/gw", gateway),
        policy(ENVOY, "SecurityPolicy", 1, "route", "HTTPRoute/api", json!({"cors": {}})),
        policy(ENVOY, "SecurityPolicy", 2, "rule", "HTTPRoute/api#read", spec),
    ];
    let survey = survey(&policies);
    assert_eq!(acting(&survey, "SecurityPolicy", 0), expected);
    assert_eq!(acting(&survey, "SecurityPolicy", 1), ["cors=route", "-cors=gateway", "-jwt=gateway"]);
    assert_eq!(by(&row(&survey, "gateway")), replaced_by);
}

#[test]
fn a_merged_field_has_the_values_of_both() {
    let policies = [
        policy(
            ENVOY,
            "SecurityPolicy",
            0,
            "upper",
            "Gateway/gw",
            json!({"cors": {"maxAge": "5m", "allowOrigins": ["a"]}}),
        ),
        policy(
            ENVOY,
            "SecurityPolicy",
            1,
            "own",
            "HTTPRoute/api",
            json!({"mergeType": "JSONMerge", "cors": {"allowOrigins": ["b"]}}),
        ),
    ];
    let survey = survey(&policies);
    let path = survey.index().paths().next().unwrap();
    let effective = survey.acting(path).remove("SecurityPolicy").unwrap();
    assert_eq!(*effective.rules["cors"].value, json!({"maxAge": "5m", "allowOrigins": ["b"]}));
}

/// Of two policies on one target the older acts; a section has its own.
#[rstest]
#[case(KUADRANT, "TLSPolicy", json!({"issuerRef": {"name": "ca", "kind": "ClusterIssuer"}}))]
#[case(KUADRANT, "DNSPolicy", json!({"providerRefs": [{"name": "aws"}]}))]
#[case(ENVOY, "ClientTrafficPolicy", json!({"timeout": {}}))]
#[case(ENVOY, "BackendTrafficPolicy", json!({"timeout": {}}))]
#[case(ENVOY, "EnvoyExtensionPolicy", json!({"lua": []}))]
fn the_older_of_one_target_wins(#[case] api_version: &str, #[case] kind: &str, #[case] spec: Value) {
    let policies = [
        policy(api_version, kind, 1, "younger", "Gateway/gw", spec.clone()),
        policy(api_version, kind, 0, "older", "Gateway/gw", spec.clone()),
        policy(api_version, kind, 2, "listener", "Gateway/gw#alt", spec),
    ];
    let survey = survey(&policies);
    let sources = acting(&survey, kind, 0);
    assert!(!sources.is_empty() && sources.iter().all(|rule| rule.ends_with("=older")), "{sources:?}");
    let loser = row(&survey, "younger");
    assert_eq!((loser.accepted.reason, by(&loser)), ("Conflicted", vec!["older"]));
    assert_eq!(by(&row(&survey, "older")), ["listener"], "on the paths over the listener alt");
}

/// Policies that act side by side have no winner.
#[rstest]
#[case(ENVOY, "EnvoyPatchPolicy", "Gateway/gw")]
#[case("security.istio.io/v1", "AuthorizationPolicy", "Gateway/gw")]
#[case("networking.istio.io/v1alpha3", "EnvoyFilter", "GatewayClass/eg")]
fn all_of_one_target_act(#[case] api_version: &str, #[case] kind: &str, #[case] target: &str) {
    let both = ["one", "two"].map(|name| policy(api_version, kind, 0, name, target, json!({"priority": 1})));
    let survey = survey(&both);
    assert_eq!(acting(&survey, kind, 0), ["shop/one=one", "shop/two=two"]);
    let two = row(&survey, "two");
    assert_eq!((two.accepted.status, by(&two)), ("True", vec![]));
}

/// A port of a Service has its own policy.
#[test]
fn policies_of_backends_act_on_their_rules() {
    let api = "gateway.networking.k8s.io/v1";
    let tls = json!({"validation": {"hostname": "db", "wellKnownCACertificates": "System"}});
    let policies = [
        policy(api, "BackendTLSPolicy", 0, "service", "Service/db", tls.clone()),
        policy(api, "BackendTLSPolicy", 1, "port", "Service/db#web", tls),
    ];
    let all = survey(&policies);
    assert_eq!(acting(&all, "BackendTLSPolicy", 0), ["shop/port=port"]);
    assert_eq!(acting(&all, "BackendTLSPolicy", 1), Vec::<String>::new());
    assert_eq!(acting(&survey(&policies[..1]), "BackendTLSPolicy", 0), ["shop/service=service"]);
    assert_eq!(all.rows().1["Service/shop/db#web"]["BackendTLSPolicy"].len(), 1);
}

/// A definition with the label makes a kind; `Direct` and `Inherited` in either case.
#[rstest]
#[case("Inherited", &["color=route", "-color=gateway"])]
#[case("inherited", &["color=route", "-color=gateway"])]
#[case("direct", &["shop/gateway=gateway", "shop/route=route"])]
#[case("Direct", &["shop/gateway=gateway", "shop/route=route"])]
#[case("true", &[])]
fn a_label_makes_a_kind(#[case] label: &str, #[case] expected: &[&str]) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "paints.example.org", "labels": {"gateway.networking.k8s.io/policy": label}},
        "spec": {"group": "example.org", "names": {"kind": "PaintPolicy", "plural": "paints"}},
    });
    let paint = |age, name, target, spec| policy("example.org/v1", "PaintPolicy", age, name, target, spec);
    let survey = survey(&[
        definition,
        paint(0, "gateway", "Gateway/gw", json!({"defaults": {"color": "red"}})),
        paint(1, "route", "HTTPRoute/api", json!({"color": "blue"})),
    ]);
    assert_eq!(acting(&survey, "PaintPolicy", 0), expected);
    assert_eq!(
        survey.unknown_kinds().len(),
        usize::from(expected.is_empty()),
        "{:?}",
        survey.unknown_kinds()
    );
}

/// Two groups may have a kind of one name.
#[test]
fn kinds_of_one_name_are_apart() {
    let mut kinds = PolicyKinds::known();
    assert!(kinds.add_labelled("example.org", "SecurityPolicy", "Direct"));
    assert_eq!(kinds.name_of("example.org", "SecurityPolicy"), Some("SecurityPolicy.example.org"));
    assert_eq!(kinds.name_of("gateway.envoyproxy.io", "SecurityPolicy"), Some("SecurityPolicy"));
}

#[test]
fn targets_by_label_and_targets_elsewhere() {
    let selector = |team: &str| {
        let mut own = policy(ENVOY, "BackendTrafficPolicy", 0, team, "HTTPRoute/x", json!({"timeout": {}}));
        own["spec"]["targetRefs"].take();
        let labels = json!({"team": team});
        own["spec"]["targetSelectors"] = json!([{"kind": "HTTPRoute", "matchLabels": labels}]);
        own
    };
    let istio = "security.istio.io/v1";
    let mut elsewhere = policy(istio, "AuthorizationPolicy", 0, "entry", "HTTPRoute/x", json!({}));
    elsewhere["spec"]["targetRefs"] =
        json!([{"group": "networking.istio.io", "kind": "ServiceEntry", "name": "e"}]);
    let mut pods = elsewhere.clone();
    pods["metadata"]["name"] = "pods".into();
    pods["spec"] = json!({"selector": {"matchLabels": {"app": "x"}}});
    let survey = survey(&[selector("api"), selector("none"), elsewhere, pods]);
    assert_eq!(acting(&survey, "BackendTrafficPolicy", 0), ["timeout=api"]);
    let found = |name| {
        let row = row(&survey, name);
        (row.accepted.status, row.accepted.reason, row.targets.join(" "))
    };
    assert_eq!(found("none"), ("False", "TargetNotFound", String::new()));
    assert_eq!(found("entry"), ("Unknown", "TargetUnknown", "ServiceEntry/e".to_owned()));
    assert_eq!(survey.rows().0.len(), 3, "a policy of pods is none of the Gateway API");
}

/// A target of a policy by its fields alone.
fn of_targets(kind: &str, fields: Value) -> Value {
    let mut own = policy(ENVOY, kind, 0, "own", "HTTPRoute/x", json!({"timeout": {}}));
    own["spec"].as_object_mut().unwrap().remove("targetRefs");
    own["spec"].as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    own
}

/// More routes than a policy can name.
fn many_routes() -> Vec<Value> {
    let route = |number: usize| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"namespace": "shop", "name": format!("r{number:02}"), "labels": {"team": "many"}},
            "spec": {"parentRefs": [{"name": "gw"}], "rules": [{}]},
        })
    };
    (0..20).map(route).collect()
}

#[rstest]
#[case::labels(json!({"matchLabels": {"team": "api"}}), 1)]
#[case::all_of_the_kind(json!({}), 21)]
#[case::more_than_a_policy_names(json!({"matchLabels": {"team": "many"}}), 20)]
#[case::one_of(json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["api", "gw"]}]}), 1)]
#[case::none_of(json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["many"]}]}), 1)]
#[case::both(
    json!({"matchLabels": {"team": "many"}, "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}), 0
)]
#[case::no_such_operator(json!({"matchExpressions": [{"key": "team", "operator": "Like"}]}), 0)]
fn selectors_are_followed(#[case] fields: Value, #[case] targets: usize) {
    let mut selector = fields;
    selector["kind"] = "HTTPRoute".into();
    let own = of_targets("BackendTrafficPolicy", json!({"targetSelectors": [selector]}));
    let row = row(&survey(&many_routes().into_iter().chain([own]).collect::<Vec<_>>()), "own");
    let status = if targets == 0 { "False" } else { "True" };
    assert_eq!((row.targets.len(), row.accepted.status), (targets, status), "{}", row.accepted.message);
}

#[rstest]
#[case::none(json!({}), "False", 0, "names no target")]
#[case::other_namespaces(
    json!({"targetSelectors": [{"kind": "HTTPRoute", "namespaces": {"from": "All"}}]}), "True", 1,
    "targets of other namespaces"
)]
#[case::one_that_it_cannot_have(
    json!({"targetRefs": [{"kind": "HTTPRoute", "name": "api"}, {"kind": "GatewayClass", "name": "eg"}]}), "True", 2,
    "GatewayClass/eg is no target"
)]
#[case::two_fields(
    json!({"targetRef": {"kind": "HTTPRoute", "name": "api"}, "targetRefs": [{"kind": "Gateway", "name": "gw"}]}),
    "True", 2, "has targetRef and targetRefs"
)]
fn odd_targets(#[case] fields: Value, #[case] status: &str, #[case] targets: usize, #[case] text: &str) {
    let row = row(&survey(&[of_targets("SecurityPolicy", fields)]), "own");
    assert_eq!((row.accepted.status, row.targets.len()), (status, targets), "{}", row.accepted.message);
    let said = format!("{} {}", row.accepted.message, row.warnings.join(" "));
    assert!(said.contains(text), "{said}");
}

/// A list of rules with names is merged by them, other lists are replaced.
#[rstest]
#[case("JSONMerge", &["two"], &["spdy/3.1"])]
#[case("StrategicMerge", &["two", "one"], &["spdy/3.1", "websocket"])]
fn lists_are_merged_by_their_key(#[case] how: &str, #[case] rules: &[&str], #[case] upgrades: &[&str]) {
    let spec = |rule: &str, upgrade: &str| {
        json!({
            "rateLimit": {"local": {"rules": [{"name": rule, "limit": {"requests": 1}}]}},
            "httpUpgrade": [{"type": upgrade}], "retry": {"retryOn": {"triggers": [rule]}},
        })
    };
    let mut own = spec("two", "spdy/3.1");
    own["mergeType"] = how.into();
    let survey = survey(&[
        policy(ENVOY, "BackendTrafficPolicy", 0, "upper", "Gateway/gw", spec("one", "websocket")),
        policy(ENVOY, "BackendTrafficPolicy", 1, "own", "HTTPRoute/api", own),
    ]);
    let effective =
        survey.acting(survey.index().paths().next().unwrap()).remove("BackendTrafficPolicy").unwrap();
    let names = |list: &Value, key: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&effective.rules["rateLimit"].value["local"]["rules"], "name"), rules);
    assert_eq!(names(&effective.rules["httpUpgrade"].value, "type"), upgrades);
    assert_eq!(effective.rules["retry"].value["retryOn"]["triggers"], json!(["two"]));
}

#[test]
fn a_policy_of_a_gateway_and_of_its_listener_does_not_replace_itself() {
    let targets = json!({"targetRefs": [
        {"kind": "Gateway", "name": "gw"}, {"kind": "Gateway", "name": "gw", "sectionName": "http"},
    ]});
    let survey = survey(&[of_targets("SecurityPolicy", targets)]);
    assert_eq!(acting(&survey, "SecurityPolicy", 0), ["timeout=own"]);
    assert!(by(&row(&survey, "own")).is_empty());
}

/// Older policies that come later do not change what acts.
#[test]
fn the_order_of_the_objects_does_not_matter() {
    let policies: Vec<Value> = (0..50)
        .map(|age| {
            policy(ENVOY, "SecurityPolicy", age, &format!("p{age:02}"), "HTTPRoute/api", json!({"cors": {}}))
        })
        .collect();
    let backwards: Vec<Value> = policies.iter().rev().cloned().collect();
    for policies in [policies, backwards] {
        let survey = survey(&policies);
        assert_eq!(acting(&survey, "SecurityPolicy", 0), ["cors=p00"]);
        assert_eq!(by(&row(&survey, "p49")), ["p00"]);
    }
}

#[test]
fn a_policy_that_does_not_decode_is_invalid() {
    let mut own = policy(KUADRANT, "RateLimitPolicy", 0, "own", "Gateway/gw", limits(&["a"]));
    own["metadata"]["creationTimestamp"] = "yesterday".into();
    let survey = survey(&[own]);
    let row = row(&survey, "own");
    assert_eq!((row.accepted.status, row.accepted.reason), ("False", "Invalid"));
    assert!(row.accepted.message.contains("cannot be decoded"), "{}", row.accepted.message);
    assert_eq!(survey.faults().len(), 1);
}

#[test]
fn limits_of_tokens_merge_by_name() {
    let policies = [
        policy(
            KUADRANT,
            "TokenRateLimitPolicy",
            0,
            "upper",
            "Gateway/gw",
            block("defaults", "merge", limits(&["a", "b"])),
        ),
        policy(KUADRANT, "TokenRateLimitPolicy", 1, "lower", "HTTPRoute/api", limits(&["b"])),
    ];
    assert_eq!(acting(&survey(&policies), "TokenRateLimitPolicy", 0), ["a=upper", "b=lower", "-b=upper"]);
}

/// Selectors that match nothing may match what could not be seen.
#[rstest]
#[case::all_seen(None, json!({}), "False")]
#[case::its_namespace_seen(Some("shop"), json!({}), "False")]
#[case::another_namespace_seen(Some("other"), json!({}), "Unknown")]
#[case::of_other_namespaces(None, json!({"namespaces": {"from": "All"}}), "Unknown")]
fn selectors_that_match_nothing(#[case] listed: Option<&str>, #[case] fields: Value, #[case] status: &str) {
    let mut selector = fields;
    selector["kind"] = "GRPCRoute".into();
    let mut objects = topology();
    objects.push(of_targets("SecurityPolicy", json!({"targetSelectors": [selector]})));
    let of_namespace = |namespace: &str| UnlistedKind {
        kind: "GRPCRoute".to_owned(),
        listed_namespace: Some(namespace.to_owned()),
    };
    let unlisted = listed.map(of_namespace).into_iter().collect();
    let survey = PolicySurvey::of(PolicyKinds::known(), &objects, unlisted, true);
    assert_eq!(row(&survey, "own").accepted.status, status);
}

/// What could not be listed is not absent.
#[rstest]
#[case::nothing_of_the_kind(None, "Unknown", "ParentUnknown")]
#[case::another_namespace(Some("other"), "Unknown", "ParentUnknown")]
#[case::its_namespace(Some("shop"), "False", "ParentNotFound")]
fn what_was_not_seen_may_exist(#[case] listed: Option<&str>, #[case] status: &str, #[case] reason: &str) {
    let unlisted =
        |kind: &str| UnlistedKind { kind: kind.to_owned(), listed_namespace: listed.map(str::to_owned) };
    let mut objects = topology();
    objects.push(policy(KUADRANT, "RateLimitPolicy", 0, "own", "HTTPRoute/gone", limits(&["a"])));
    objects[1]["spec"]["parentRefs"] = json!([{"name": "gone"}]);
    let unlisted = vec![unlisted("HTTPRoute"), unlisted("Gateway")];
    let survey = PolicySurvey::of(PolicyKinds::known(), &objects, unlisted, true);
    assert_eq!(row(&survey, "own").accepted.status, status);
    let (_, links) = survey.index().routes().next().unwrap();
    assert_eq!(survey.reason(&links.refused[0]).0, reason);
}

#[test]
fn statuses_are_what_the_object_says() {
    let mut own = policy(KUADRANT, "RateLimitPolicy", 0, "own", "Gateway/gw", limits(&["a"]));
    own["status"] = json!({
        "conditions": [{"type": "Enforced", "status": "True", "reason": "Enforced",
            "message": "RateLimitPolicy has been partially enforced"}],
        "ancestors": [
            {"ancestorRef": {"kind": "Gateway", "name": "gw"}, "conditions": [
                {"type": "Programmed", "status": "True", "reason": "PartiallyProgrammed"}]},
            {"ancestorRef": {"kind": "HTTPRoute", "namespace": "a", "name": "b", "sectionName": "c"}, "conditions": [
                {"type": "Programmed", "status": "False", "reason": "Overridden"}]},
            {"ancestorRef": {"kind": "Gateway", "name": "other"}, "conditions": [{"type": "Accepted"}]},
        ],
    });
    let row = row(&survey(&[own]), "own");
    let enforced = row.enforced.unwrap();
    assert_eq!((enforced.status.as_str(), enforced.reason.as_str()), ("True", "Enforced"));
    let programmed: Vec<(&str, &str)> =
        row.programmed.iter().map(|(ancestor, own)| (ancestor.as_str(), own.reason.as_str())).collect();
    assert_eq!(programmed, [("HTTPRoute/a/b#c", "Overridden"), ("shop/gw", "PartiallyProgrammed")]);
}

/// A policy that is never created is the youngest, and an update keeps its age.
#[test]
fn an_update_keeps_age_and_status() {
    let old = policy(KUADRANT, "RateLimitPolicy", 7, "own", "Gateway/gw", limits(&["a"]));
    let mut before = old.clone();
    before["status"] = json!({"conditions": []});
    let mut new = old.clone();
    new["spec"]["limits"] = limits(&["b"])["limits"].take();
    new["metadata"] = json!({"namespace": "shop", "name": "own"});
    let mut other = new.clone();
    other["metadata"]["name"] = "two".into();
    let after = applied(vec![before], vec![new, other]);
    let age = |object: &Value| object["metadata"]["creationTimestamp"].clone();
    assert_eq!(after.len(), 2);
    assert_eq!(age(&after[1]), Value::Null);
    assert_eq!((age(&after[0]), after[0]["status"].is_object()), (age(&old), true));
    assert!(after[0]["spec"]["limits"]["b"].is_object());
}

/// What is there without an age is older than what is new, and younger than what has one.
#[test]
fn what_is_new_is_the_youngest() {
    let of = |name: &str| policy(ENVOY, "SecurityPolicy", 0, name, "HTTPRoute/api", json!({"cors": {}}));
    let unborn = |name: &str| {
        let mut own = of(name);
        own["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
        own
    };
    let winner = |before: Vec<Value>, new: Vec<Value>| {
        acting(&survey(&applied(aged(before), new)), "SecurityPolicy", 0).join(" ")
    };
    assert_eq!(winner(vec![unborn("z")], vec![of("a")]), "cors=z");
    assert_eq!(winner(vec![unborn("a"), of("z")], vec![of("b")]), "cors=z");
}

/// The name is all that a deletion needs.
#[test]
fn what_is_deleted_is_gone() {
    let old = policy(KUADRANT, "RateLimitPolicy", 0, "own", "Gateway/gw", limits(&["a"]));
    let mut gone = old.clone();
    gone.as_object_mut().unwrap().remove("spec");
    gone["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();
    assert_eq!(applied(vec![old], vec![gone.clone()]), Vec::<Value>::new());
    assert_eq!(applied(vec![], vec![gone]), Vec::<Value>::new());
}

#[test]
fn affected_targets_and_replacing_policies() {
    let policies = [
        policy(KUADRANT, "RateLimitPolicy", 0, "upper", "Gateway/gw#http", limits(&["a"])),
        policy(KUADRANT, "RateLimitPolicy", 1, "lower", "HTTPRoute/api#read", limits(&["b"])),
    ];
    let survey = survey(&policies);
    let (_, affected) = survey.rows();
    let found: Vec<(&str, Vec<&str>)> = affected
        .iter()
        .map(|(target, kinds)| {
            (target.as_str(), kinds["RateLimitPolicy"].iter().map(String::as_str).collect())
        })
        .collect();
    let both = vec!["shop/lower", "shop/upper"];
    assert_eq!(
        found,
        [
            ("Gateway/shop/gw", both.clone()),
            ("Gateway/shop/gw#alt", vec!["shop/lower"]),
            ("Gateway/shop/gw#http", both.clone()),
            ("HTTPRoute/shop/api@shop/gw", both),
        ]
    );
    assert_eq!(by(&row(&survey, "upper")), ["lower"]);
    let id = PolicyId { kind: "RateLimitPolicy".into(), namespace: "shop".into(), name: "upper".into() };
    assert_eq!(survey.acceptance(&id).unwrap().status, "True");
}

/// What decides about paths is watched, and listed by the command line: Services are read by the latter alone.
#[test]
fn the_kinds_that_decide_about_paths_are_the_same_everywhere() {
    let all = [crate::KINDS, crate::OF_ATTACHMENTS, super::KINDS, interlock_core::kinds::KINDS].concat();
    let is_read = |watch: &interlock_core::kinds::descriptor::Watch| {
        std::iter::once(&watch.capability).chain(watch.also).any(|own| own.name == ATTACHMENTS.name)
    };
    let watched = all.iter().filter(|kind| kind.watch.as_ref().is_some_and(is_read));
    let known = PolicyKinds::known();
    let watched: BTreeSet<(&str, &str)> = watched
        .map(|kind| (kind.resource.group, kind.resource.kind))
        .filter(|(group, kind)| known.name_of(group, kind).is_none())
        .collect();
    let listed: BTreeSet<(&str, &str)> = path_kinds().filter(|own| *own != ("", "Service")).collect();
    assert_eq!(watched, listed);
}

/// What a merge leaves of the upper policy is said: nothing, all of a field, or a part of it.
#[test]
fn a_merged_policy_acts_with_what_is_left_of_it() {
    let upper =
        json!({"cors": {"maxAge": "5m"}, "jwt": {"providers": []}, "basicAuth": {"users": {"name": "a"}}});
    let own = json!({"mergeType": "JSONMerge", "cors": {"allowOrigins": ["b"]}, "basicAuth": {"users": {"name": "b"}}});
    let survey = survey(&[
        policy(ENVOY, "SecurityPolicy", 0, "upper", "Gateway/gw", upper),
        policy(ENVOY, "SecurityPolicy", 1, "own", "HTTPRoute/api", own),
    ]);
    assert_eq!(
        acting(&survey, "SecurityPolicy", 0),
        ["basicAuth=own", "cors=own", "jwt=upper", "-basicAuth=upper"]
    );
    let effective = survey.acting(survey.index().paths().next().unwrap()).remove("SecurityPolicy").unwrap();
    let with = |rule: &str| effective.rules[rule].with.as_ref().map(|own| own.name.to_string());
    assert_eq!((with("cors").as_deref(), with("basicAuth"), with("jwt")), (Some("upper"), None, None));
    assert_eq!(effective.to_json()["rules"]["cors"]["with"], "shop/upper");
    assert_eq!(by(&row(&survey, "upper")), ["own"]);
}

/// Limits that count nothing, and conditions that never hold, are in force and do nothing.
#[rstest]
#[case::a_window(json!({"limits": {"a": {"rates": [{"limit": 1, "window": "500ms"}]}}}), true,
    "spec.limits.a.rates[0].window: 500ms: a window is shorter")]
#[case::one_of_two(json!({"limits": {"a": {"rates": [{"limit": 1, "window": "1s"}, {"limit": 1, "window": "0s"}]}}}), false,
    "spec.limits.a.rates[1].window: 0s: a window is shorter")]
#[case::a_predicate(
    json!({"defaults": {"limits": {"a": {"when": [{"predicate": "request.methd == 'GET'"}]}}}}), true,
    "spec.defaults.limits.a.when[0].predicate: neither Envoy"
)]
#[case::of_its_block(
    json!({"overrides": {"when": [{"predicate": "1"}], "limits": {"a": {}}}}), true,
    "spec.overrides.when[0].predicate: is an int"
)]
#[case::a_counter(json!({"limits": {"a": {"counters": [{"expression": "limit.b"}]}}}), true,
    "spec.limits.a.counters[0].expression: limit.b: a counter has a name")]
#[case::ignored(json!({"when": [{"predicate": "1"}], "defaults": {"limits": {"a": {}}}}), false, "")]
#[case::of_another_rule(
    json!({"limits": {"a": {}, "a.rates[0]": {"when": [{"predicate": "1"}]}}}), false, ""
)]
fn a_rule_may_never_act(#[case] spec: Value, #[case] is_whole: bool, #[case] why: &str) {
    let survey = survey(&[policy(KUADRANT, "RateLimitPolicy", 0, "own", "Gateway/gw", spec)]);
    let id = PolicyId { kind: "RateLimitPolicy".into(), namespace: "shop".into(), name: "own".into() };
    let inert = survey.inert(&id, "a").unwrap_or_default();
    assert_eq!(inert.is_whole, is_whole, "{:?}", inert.why);
    assert_eq!(inert.why.len(), usize::from(!why.is_empty()), "{:?}", inert.why);
    assert!(inert.why.iter().all(|own| own.starts_with(why)), "{:?}", inert.why);
}

#[test]
fn an_authentication_rule_may_never_act() {
    let mut spec = auth(&["authentication.jwt", "authorization.opa"]);
    spec["rules"]["authentication"]["jwt"]["when"] = json!([{"predicate": "request.methd == 'GET'"}]);
    let survey = survey(&[policy(KUADRANT, "AuthPolicy", 0, "own", "Gateway/gw", spec)]);
    let id = PolicyId { kind: "AuthPolicy".into(), namespace: "shop".into(), name: "own".into() };
    assert!(survey.inert(&id, "authentication.jwt").unwrap().is_whole);
    assert_eq!(survey.inert(&id, "authorization.opa"), None);
}

/// Envoy Gateway knows a rule by its name alone.
#[rstest]
#[case::envoy_gateway(ENVOY, "SecurityPolicy", json!({"cors": {}}), "TargetNotFound", &[])]
#[case::kuadrant(KUADRANT, "RateLimitPolicy", limits(&["a"]), "Accepted", &["a=own"])]
fn a_position_is_a_target_of_some(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] spec: Value,
    #[case] reason: &str,
    #[case] expected: &[&str],
) {
    let mut route = topology().swap_remove(1);
    route["spec"]["rules"] = json!([{}]);
    let survey = survey(&[route, policy(api_version, kind, 0, "own", "HTTPRoute/api#rule-1", spec)]);
    assert_eq!(row(&survey, "own").accepted.reason, reason);
    assert_eq!(acting(&survey, kind, 0), expected);
}

/// A connection has no token and no headers.
#[test]
fn of_connections_addresses_alone_are_guarded() {
    let mut objects = topology();
    objects[1]["kind"] = "TCPRoute".into();
    objects[0]["spec"]["listeners"][0]["protocol"] = "TCP".into();
    let spec = json!({"jwt": {"providers": []}, "authorization": {"defaultAction": "Deny"}});
    objects.push(policy(ENVOY, "SecurityPolicy", 0, "guard", "Gateway/gw", spec));
    let survey = PolicySurvey::of(PolicyKinds::known(), &objects, Vec::new(), true);
    assert_eq!(acting(&survey, "SecurityPolicy", 0), ["authorization=guard"]);
}

/// Selectors of other namespaces are not followed, so what acts on what they may select is not known.
#[rstest]
#[case::of_another_namespace("infra", "HTTPRoute", true)]
#[case::of_its_own("shop", "HTTPRoute", false)]
#[case::another_kind("infra", "GRPCRoute", false)]
fn what_a_selector_may_select_is_not_known(
    #[case] namespace: &str,
    #[case] kind: &str,
    #[case] is_unknown: bool,
) {
    let selector = json!({"targetSelectors": [{"kind": kind, "namespaces": {"from": "All"}}]});
    let mut own = of_targets("SecurityPolicy", selector);
    own["metadata"]["namespace"] = namespace.into();
    let survey = survey(&[own]);
    let path = survey.index().paths().next().unwrap();
    let unknown: Vec<_> = survey.unknown_on(path).map(|(kind, _)| kind).collect();
    assert_eq!(unknown, if is_unknown { vec!["SecurityPolicy"] } else { vec![] });
}

/// What the tables above take for policies, the API server takes too.
#[test]
#[allow(clippy::disallowed_methods, reason = "the definitions lie outside of the crate")]
fn the_objects_are_valid_by_the_stock_definitions() {
    let folder = std::env::var_os("INTERLOCK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let mut checked = Vec::new();
    for (case, upper, lower, _) in rate_limit_cases() {
        for (target, spec) in [("Gateway/gw", upper), ("HTTPRoute/api#write", lower)] {
            checked.push((case, policy(KUADRANT, "RateLimitPolicy", 0, "x", target, spec)));
        }
    }
    let rules = auth(&[
        "authentication.jwt",
        "authorization.opa",
        "headers.x",
        "response.unauthorized",
        "patterns.p",
    ]);
    for spec in [rules.clone(), block("overrides", "merge", rules)] {
        checked.push(("auth", policy(KUADRANT, "AuthPolicy", 0, "x", "Gateway/gw", spec)));
    }
    let issuer = json!({"issuerRef": {"name": "ca", "kind": "ClusterIssuer"}});
    checked.push(("tls", policy(KUADRANT, "TLSPolicy", 0, "x", "Gateway/gw", issuer)));
    let provider = json!({"providerRefs": [{"name": "aws"}]});
    checked.push(("dns", policy(KUADRANT, "DNSPolicy", 0, "x", "Gateway/gw", provider)));
    checked.extend(
        topology().into_iter().filter(|object| object["kind"] != "Service").map(|own| ("topology", own)),
    );
    for (case, object) in checked {
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        let group = if object["apiVersion"] == KUADRANT { "kuadrant" } else { "gateway-api" };
        let plural =
            if kind.ends_with('y') { kind.replace("policy", "policies") } else { format!("{kind}s") };
        let file = folder.join(format!("crds/{group}_{plural}.yaml"));
        let Ok(text) = std::fs::read_to_string(&file) else {
            println!("skipped: {} is not there", file.display());
            continue;
        };
        let definition = yaml::documents(&text).unwrap().swap_remove(0);
        let definition = crd_schema::Definition::read(&definition).unwrap();
        let version = definition.versions.iter().find(|own| own.name == "v1").unwrap();
        let mut decoded = object.clone();
        let found = [version.decode(&mut decoded), version.validate(&definition, &decoded, None)];
        for found in found {
            assert!(found.is_valid(), "{case}: {:?} of {object}", found.errors);
        }
    }
}
