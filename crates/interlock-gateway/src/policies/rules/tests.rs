//! Writes as reviews on a graph of Gateways, routes and policies: what is refused, and what is said.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use interlock_core::admission::lister::CacheState;
use interlock_core::admission::{Config, Freeze, WebhookEndpoint};
use interlock_core::api::interlock::{RuleSetting, Rules};
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::kinds::{self, Kind, Kinds};
use interlock_core::testing::{Cached, Said, ask};
use rstest::rstest;
use serde_json::{Value, json};

const API: &str = "gateway.networking.k8s.io/v1";
const KUADRANT: &str = "kuadrant.io/v1";
const ENVOY: &str = "gateway.envoyproxy.io/v1alpha1";

fn all() -> Kinds {
    static ALL: LazyLock<Vec<&'static Kind>> = LazyLock::new(|| {
        [crate::KINDS, crate::OF_ATTACHMENTS, crate::policies::KINDS, kinds::KINDS].concat()
    });
    &ALL
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "spec": spec,
        "metadata": {"namespace": "shop", "name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
    })
}

fn class() -> Value {
    json!({"apiVersion": API, "kind": "GatewayClass", "metadata": {"name": "eg"}, "spec": {"controllerName": "x.io/y"}})
}

fn gateway(name: &str, hostname: &str) -> Value {
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP", "hostname": hostname});
    object(API, "Gateway", name, json!({"gatewayClassName": "eg", "listeners": [listener]}))
}

fn route(name: &str, rules: &[&str]) -> Value {
    let rules: Vec<Value> =
        rules.iter().map(|name| if name.is_empty() { json!({}) } else { json!({"name": name}) }).collect();
    let spec = json!({"parentRefs": [{"name": "gw"}], "hostnames": ["a.org"], "rules": rules});
    object(API, "HTTPRoute", name, spec)
}

fn target(kind: &str, name: &str) -> Value {
    let (name, section) = name.split_once('#').unwrap_or((name, ""));
    let mut target = json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": name});
    if !section.is_empty() {
        target["sectionName"] = section.into();
    }
    target
}

fn limits(names: &[&str]) -> Value {
    let limit = json!({"rates": [{"limit": 1, "window": "1m"}]});
    let limits = names.iter().map(|name| ((*name).to_owned(), limit.clone())).collect();
    json!({"limits": Value::Object(limits)})
}

fn limit_policy(name: &str, kind: &str, target_name: &str, mut spec: Value) -> Value {
    spec["targetRef"] = target(kind, target_name);
    object(KUADRANT, "RateLimitPolicy", name, spec)
}

fn security_policy(name: &str, kind: &str, target_name: &str) -> Value {
    object(ENVOY, "SecurityPolicy", name, json!({"targetRefs": [target(kind, target_name)], "cors": {}}))
}

/// A Gateway with a route of two rules, of which the first has a name.
fn topology() -> Vec<Value> {
    vec![class(), gateway("gw", "a.org"), route("api", &["read", ""])]
}

fn lister(objects: &[Value]) -> StaticLister {
    let mut lister = StaticLister::of(all());
    objects.iter().for_each(|object| lister.add(object, "default").unwrap());
    lister
}

fn review(new: &Value, old: &Value) -> Value {
    let present = if new.is_null() { old } else { new };
    let (group, version) = present["apiVersion"].as_str().unwrap().rsplit_once('/').unwrap();
    let operation = match (new.is_null(), old.is_null()) {
        (true, _) => "DELETE",
        (false, true) => "CREATE",
        (false, false) => "UPDATE",
    };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "kind": {"group": group, "version": version, "kind": present["kind"]},
            "namespace": present["metadata"]["namespace"], "name": present["metadata"]["name"],
            "operation": operation, "userInfo": {"username": "ann"}, "object": new, "oldObject": old,
        },
    })
}

fn say(lister: &StaticLister, new: &Value, old: &Value) -> Said {
    let config = Config { controller_user: String::new(), freeze: Freeze::Strict, docs: None };
    let view = Cached(lister, CacheState::Synced);
    ask(all(), &view, &config, WebhookEndpoint::Validate, &review(new, old))
}

/// Creates, updates or deletes an object over others.
fn written(objects: &[Value], new: &Value) -> Said {
    let lister = lister(objects);
    let is_same = |other: &&Value| {
        let identity = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
        identity(other) == identity(new)
    };
    say(&lister, new, objects.iter().find(is_same).unwrap_or(&Value::Null))
}

fn one_limit(limit: Value) -> Value {
    json!({"limits": {"a": limit}})
}

#[rstest]
#[case::window(one_limit(json!({"rates": [{"limit": 1, "window": "500ms"}]})), "policy-window",
    "spec.limits.a.rates[0].window: 500ms")]
#[case::window_of_parts(one_limit(json!({"rates": [{"limit": 1, "window": "1s"}, {"limit": 1, "window": "900ms99ms"}]})),
    "policy-window", "spec.limits.a.rates[1].window: 900ms99ms")]
#[case::no_window(json!({"defaults": one_limit(json!({"rates": [{"limit": 1, "window": "0h"}]}))}), "policy-window",
    "spec.defaults.limits.a.rates[0].window: 0h")]
#[case::identifier(json!({"overrides": one_limit(json!({
    "rates": [{"limit": 1, "window": "1s"}], "counters": [{"expression": "limit.a__1da6e70a"}]}))}), "policy-counter",
    "spec.overrides.limits.a.counters[0].expression: limit.a__1da6e70a")]
#[case::addend(one_limit(json!({"counters": [{"expression": "request.host"}, {"expression": " ratelimit.hits_addend "}]})),
    "policy-counter", "spec.limits.a.counters[1].expression: ratelimit.hits_addend")]
#[case::tokens(one_limit(json!({"counters": [{"expression": "tokenlimit.x"}]})), "policy-counter", "tokenlimit.x")]
#[case::domain(one_limit(json!({"counters": [{"expression": "ratelimit.domain"}]})), "policy-counter", "ratelimit.domain")]
#[case::two_blocks(json!({"limits": limits(&["a"])["limits"], "overrides": limits(&["b"])}), "policy-blocks",
    "spec: limits, overrides")]
#[case::no_limit(json!({"limits": {}}), "policy-blocks", "spec: no rule")]
#[case::no_limit_in_a_block(json!({"overrides": {"strategy": "merge"}}), "policy-blocks", "spec.overrides: no rule")]
#[case::expression(one_limit(json!({"when": [{"predicate": "request.methd == 'GET'"}], "rates": [{"limit": 1, "window": "1s"}]})),
    "policy-expression", "spec.limits.a.when[0].predicate: ")]
#[case::counter(one_limit(json!({"counters": [{"expression": "request.hoost"}]})), "policy-expression",
    "spec.limits.a.counters[0].expression: ")]
#[case::target(json!({"limits": limits(&["a"])["limits"], "target": {"group": "", "kind": "Service", "name": "db"}}),
    "policy-target", "spec.targetRef: Service/db")]
fn what_can_never_act_is_refused(#[case] mut spec: Value, #[case] rule: &str, #[case] field: &str) {
    let other = spec.as_object_mut().unwrap().remove("target");
    let mut policy = limit_policy("p", "Gateway", "gw", spec);
    if let Some(other) = other {
        policy["spec"]["targetRef"] = other;
    }
    written(&topology(), &policy).assert_refused(rule, field);

    // What is there already is not in the way of another change.
    let mut other = policy.clone();
    other["spec"]["when"] = json!([]);
    let said = say(&lister(&topology()), &other, &policy);
    said.assert_allowed();
    assert!(said.warnings().iter().any(|own| own.contains("[policy-effect]")), "{:?}", said.warnings());
}

#[rstest]
#[case::a_second("1s")]
#[case::more("61s")]
#[case::parts("1h30m")]
#[case::as_the_schema_refuses("1d")]
fn other_windows_pass(#[case] window: &str) {
    let spec = one_limit(
        json!({"rates": [{"limit": 1, "window": window}], "counters": [{"expression": "request.host"}]}),
    );
    let said = written(&topology(), &limit_policy("p", "Gateway", "gw", spec));
    said.assert_allowed();
    assert_eq!(said.warnings(), <[&str; 0]>::default());
}

fn on_gateway(block: &str, names: &[&str]) -> Value {
    limit_policy("upper", "Gateway", "gw", json!({block: limits(names)}))
}

const PATH: &str =
    "GatewayClass/eg > Gateway/shop/gw > Gateway/shop/gw#http > HTTPRoute/shop/api > HTTPRoute/shop/api";

#[rstest]
#[case::limits_that_refuse(vec![], limit_policy("p", "Gateway", "gw", one_limit(json!({"rates": [
    {"limit": 0, "window": "1s"}, {"limit": -1, "window": "1m"}, {"limit": 1, "window": "60s"},
    {"limit": 1, "window": "2500ms"}]}))), &[
    "spec.limits.a.rates[0].limit: 0 refuses every request",
    "spec.limits.a.rates[1].limit: -1 refuses every request, as 0 does",
    "spec.limits.a.rates[2].window: 60s is the window of rates[1] too; the stricter of the two counts",
    "spec.limits.a.rates[3].window: 2500ms counts as 2s, as windows have whole seconds",
])]
#[case::predicates_beside_a_block(vec![], limit_policy("p", "Gateway", "gw",
    json!({"when": [{"predicate": "true"}], "defaults": limits(&["a"])})), &[
    "spec.when: is ignored beside defaults; move it to spec.defaults.when",
])]
#[case::position(vec![], limit_policy("p", "HTTPRoute", "api#rule-2", limits(&["a"])), &[
    "spec.targetRef.sectionName: HTTPRoute/shop/api#rule-2 is a position, which moves with the rules; name the rule",
])]
#[case::absent_section(vec![], limit_policy("p", "HTTPRoute", "api#write", limits(&["a"])), &[
    "RateLimitPolicy/shop/p: target HTTPRoute/shop/api#write was not found",
])]
#[case::unread_kind(vec![], limit_policy("p", "GRPCRoute", "api", limits(&["a"])), &[])]
#[case::overridden(vec![on_gateway("overrides", &["a"])], limit_policy("p", "HTTPRoute", "api", limits(&["a", "b"])), &[
    "RateLimitPolicy/shop/p is overridden by [shop/upper] on all its 2 paths",
])]
#[case::replaces(vec![on_gateway("defaults", &["a", "b"])], limit_policy("p", "HTTPRoute", "api#read", limits(&["c"])), &[
    "shop/p replaces rules [a b] of RateLimitPolicy/shop/upper on 1 path",
])]
#[case::conflict(vec![security_policy("old", "Gateway", "gw")], security_policy("young", "Gateway", "gw"), &[
    "SecurityPolicy/shop/young is conflicted by shop/old: Gateway/shop/gw has an older policy",
])]
#[case::whole(vec![security_policy("guard", "Gateway", "gw")], security_policy("own", "HTTPRoute", "api#read"), &[
    "shop/own replaces SecurityPolicy/shop/guard whole on 1 path",
])]
#[case::whole_below(vec![security_policy("own", "HTTPRoute", "api")], security_policy("guard", "Gateway", "gw"), &[
    "shop/own replaces SecurityPolicy/shop/guard whole on 2 paths",
])]
#[case::merged(vec![security_policy("guard", "Gateway", "gw")], {
    let mut policy = security_policy("own", "HTTPRoute", "api");
    policy["spec"]["mergeType"] = json!("StrategicMerge");
    policy
}, &[])]
#[case::side_by_side(
    vec![object(ENVOY, "EnvoyPatchPolicy", "old", json!({"targetRef": target("Gateway", "gw")}))],
    object(ENVOY, "EnvoyPatchPolicy", "young", json!({"targetRef": target("Gateway", "gw")})), &[],
)]
#[case::no_listener(vec![], {
    let mut route = route("other", &["x"]);
    route["spec"]["hostnames"] = json!(["b.org"]);
    route
}, &["no listener carries HTTPRoute/shop/other [Gateway/shop/gw#http: HostnameMismatch]"])]
#[case::parent_that_is_absent(vec![], {
    let mut route = route("other", &["x"]);
    route["spec"]["parentRefs"] = json!([{"name": "none"}]);
    route
}, &["no listener carries HTTPRoute/shop/other [Gateway/shop/none: ParentNotFound]"])]
#[case::parent_of_an_unread_kind(vec![], {
    let mut route = route("other", &["x"]);
    route["spec"]["parentRefs"] = json!([{"kind": "ListenerSet", "name": "none"}]);
    route
}, &[])]
#[case::naming_a_rule(vec![limit_policy("p", "HTTPRoute", "api#rule-2", limits(&["a"]))], route("api", &["read", "write"]), &[
    "naming rule 2 of HTTPRoute/shop/api detaches RateLimitPolicy/shop/p, which targets HTTPRoute/shop/api#rule-2; \
     let it target #write",
])]
#[case::a_listener_that_goes(vec![on_gateway("defaults", &["a"])], gateway("gw", "b.org"), &[
    "no listener carries HTTPRoute/shop/api [Gateway/shop/gw#http: HostnameMismatch]",
])]
#[case::a_route_without_policies(vec![], route("other", &["x"]), &[])]
fn a_write_is_foreseen(#[case] others: Vec<Value>, #[case] new: Value, #[case] expected: &[&str]) {
    let objects: Vec<Value> = topology().into_iter().chain(others).collect();
    assert_said(&written(&objects, &new), expected);
}

fn assert_said(said: &Said, expected: &[&str]) {
    said.assert_allowed();
    let sentences: Vec<&str> =
        said.warnings().iter().map(|own| own.strip_suffix(" [policy-effect]").unwrap()).collect();
    assert_eq!(sentences, expected);
}

#[rstest]
#[case::a_policy(on_gateway("defaults", &["a"]), vec![
    format!("no rule of any RateLimitPolicy acts on 2 paths any more, as on {PATH}#read"),
])]
#[case::a_policy_that_acts_whole(security_policy("s", "Gateway", "gw"), vec![
    format!("no rule of any SecurityPolicy acts on 2 paths any more, as on {PATH}#read"),
])]
#[case::the_target(route("api", &["read", ""]), vec![
    "RateLimitPolicy/shop/lower: target HTTPRoute/shop/api was not found".to_owned(),
])]
fn a_deletion_is_foreseen(#[case] gone: Value, #[case] expected: Vec<String>) {
    let mut objects = topology();
    objects.push(on_gateway("defaults", &["a"]));
    if gone["kind"] == "HTTPRoute" {
        objects.push(limit_policy("lower", "HTTPRoute", "api", limits(&["a"])));
    } else if !objects.contains(&gone) {
        objects.push(gone.clone());
    }
    let said = say(&lister(&objects), &Value::Null, &gone);
    assert_said(&said, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A policy of Envoy Gateway that goes, or moves to another target.
#[rstest]
#[case::gone(vec![], Value::Null, 2)]
#[case::another_stays(vec![security_policy("other", "HTTPRoute", "api")], Value::Null, 0)]
#[case::a_younger_one_stays(vec![security_policy("z", "Gateway", "gw")], Value::Null, 0)]
#[case::moved_to_a_rule(vec![], security_policy("s", "HTTPRoute", "api#read"), 1)]
#[case::moved_to_a_section(vec![], security_policy("s", "Gateway", "gw#http"), 0)]
fn a_policy_that_acts_whole_opens(#[case] others: Vec<Value>, #[case] new: Value, #[case] paths: usize) {
    let old = security_policy("s", "Gateway", "gw");
    let objects = [topology(), vec![old.clone()], others].concat();
    let said = say(&lister(&objects), &new, &old);
    said.assert_allowed();
    let text = "no rule of any SecurityPolicy acts on ";
    let found: Vec<&str> = said.warnings().iter().filter_map(|own| own.strip_prefix(text)).collect();
    assert_eq!(found.len(), usize::from(paths > 0), "{:?}", said.warnings());
    assert!(found.iter().all(|own| own.starts_with(&format!("{paths} path"))), "{found:?}");
}

/// A selector links what has its labels, whichever comes first; what it does not select any more is not missed.
#[test]
fn selectors_follow_labels() {
    let mut selecting = security_policy("s", "Gateway", "gw");
    selecting["spec"] =
        json!({"targetSelectors": [{"kind": "HTTPRoute", "matchLabels": {"team": "a"}}], "cors": {}});
    let mut labelled = route("api", &["read"]);
    labelled["metadata"]["labels"] = json!({"team": "a"});
    let conflict =
        "SecurityPolicy/shop/young is conflicted by shop/s: HTTPRoute/shop/api has an older policy";
    let young = security_policy("young", "HTTPRoute", "api");
    for (objects, expected) in [
        (vec![selecting.clone(), labelled.clone()], vec![conflict]),
        (vec![labelled.clone(), selecting.clone()], vec![conflict]),
        (vec![selecting.clone(), route("api", &["read"])], vec![]),
        (vec![route("api", &["read"]), selecting.clone(), labelled.clone()], vec![conflict]),
    ] {
        assert_said(&written(&objects, &young), &expected);
    }
    let said = say(&lister(&[selecting, labelled.clone()]), &Value::Null, &labelled);
    assert_said(&said, &[]);
}

#[test]
fn many_findings_are_counted() {
    let mut objects = topology();
    for number in 0..20 {
        objects.push(limit_policy(&format!("p{number:02}"), "HTTPRoute", "api#read", limits(&["a"])));
    }
    let said = say(&lister(&objects), &Value::Null, &route("api", &["read", ""]));
    let warnings = said.warnings();
    assert_eq!(warnings.len(), 7, "{warnings:?}");
    assert_eq!(warnings[6], "and 14 more; `interlock policies effective --diff` shows all");
    assert!(warnings.iter().map(|own| own.len()).sum::<usize>() < 4096);
}

#[rstest]
#[case::warns("Warn", true, 1)]
#[case::off("Off", true, 0)]
#[case::denies("Deny", false, 0)]
fn the_settings_decide(#[case] action: &str, #[case] allowed: bool, #[case] warnings: usize) {
    let setting =
        RuleSetting { group: "policies".to_owned(), namespace_selector: None, action: action.to_owned() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let mut lister = lister(&[topology(), vec![namespace]].concat());
    lister.set_rules(Rules::read(&[setting]).0);
    let spec = one_limit(json!({"rates": [{"limit": 1, "window": "1ms"}]}));
    let said = say(&lister, &limit_policy("p", "Gateway", "gw", spec), &Value::Null);
    assert_eq!((said.allowed(), said.warnings().len()), (allowed, warnings), "{:?}", said.warnings());
}

fn auth_policy() -> Value {
    let rules = json!({"authentication": {"keys": {"apiKey": {"selector": {}}}}});
    object(
        KUADRANT,
        "AuthPolicy",
        "guard",
        json!({"targetRef": target("Gateway", "gw#http"), "rules": rules}),
    )
}

fn elsewhere() -> Value {
    let mut policy = auth_policy();
    policy["spec"]["targetRef"] = target("Gateway", "other");
    policy
}

#[rstest]
#[case::not_asked(None, vec![elsewhere()], true, 0)]
#[case::warned("Warn".into(), vec![elsewhere()], true, 1)]
#[case::refused("Deny".into(), vec![elsewhere()], false, 0)]
#[case::covered("Deny".into(), vec![auth_policy()], true, 0)]
#[case::unread("Deny".into(), vec![], true, 0)]
fn a_route_without_authentication(
    #[case] action: Option<&str>,
    #[case] policies: Vec<Value>,
    #[case] allowed: bool,
    #[case] warnings: usize,
) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let mut lister = lister(&[topology(), vec![namespace], policies].concat());
    let setting = |action: &str| RuleSetting {
        group: "coverage".to_owned(),
        namespace_selector: None,
        action: action.to_owned(),
    };
    lister.set_rules(Rules::read(&action.map(setting).into_iter().collect::<Vec<_>>()).0);
    let said = say(&lister, &route("other", &["x"]), &Value::Null);
    assert_eq!((said.allowed(), said.warnings().len()), (allowed, warnings), "{:?}", said.response);
    let text = "no rule of any AuthPolicy acts on 1 new path, as on";
    let is_said = said.message().contains(text) || said.warnings().iter().any(|own| own.contains(text));
    assert_eq!(is_said, !allowed || warnings > 0);
}

/// Kuadrant's own filter evaluates what Envoy lacks.
#[rstest]
#[case::by_kuadrant(vec![], 0)]
#[case::by_envoy(vec![settings()], 1)]
fn what_envoy_lacks_is_warned_of_where_it_evaluates_limits(
    #[case] settings: Vec<Value>,
    #[case] warnings: usize,
) {
    let limit = json!({
        "rates": [{"limit": 1, "window": "1s"}], "when": [{"predicate": "request.path.lowerAscii() == '/a'"}],
    });
    let policy = limit_policy("p", "HTTPRoute", "api", one_limit(limit));
    let said = written(&[topology(), settings].concat(), &policy);
    assert!(said.allowed(), "{:?}", said.response);
    assert_eq!(said.warnings().len(), warnings, "{:?}", said.warnings());
}

fn settings() -> Value {
    let limitadors = json!([{"namespace": "l", "limitador": "l"}]);
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Interlock", "metadata": {"name": "default"},
        "spec": {"policies": {"limitadors": limitadors}},
    })
}

#[test]
fn what_is_switched_off_or_being_deleted_gives_nothing() {
    let spec = one_limit(json!({"rates": [{"limit": 1, "window": "1ms"}]}));
    let mut policy = limit_policy("p", "HTTPRoute", "none", spec);
    let mut off = lister(&topology());
    off.switch_off("attachments", "switched off");
    assert_said(&say(&off, &policy, &Value::Null), &[]);
    policy["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    assert_said(&say(&lister(&topology()), &Value::Null, &policy), &[]);
}

/// One review beside 10,000 routes and as many policies. Run it alone, with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout, clippy::disallowed_methods)]
fn a_review_beside_ten_thousand_routes() {
    let mut objects = topology();
    objects.push(on_gateway("defaults", &["a"]));
    for number in 0..10_000 {
        let name = format!("r{number}");
        objects.push(route(&name, &["x"]));
        objects.push(limit_policy(&name, "HTTPRoute", &name, limits(&["b"])));
    }
    let lister = lister(&objects);
    let changed = limit_policy("r7", "HTTPRoute", "r7", limits(&["a"]));
    for (what, new, old) in [
        ("a route's policy", changed, objects[19].clone()),
        ("the Gateway's policy", Value::Null, objects[3].clone()),
        ("the Gateway", gateway("gw", "b.org"), objects[1].clone()),
    ] {
        let begin = Instant::now();
        let said = say(&lister, &new, &old);
        let took = begin.elapsed();
        println!("{what}: {took:?}, {:?}", said.warnings());
        assert!(took < Duration::from_secs(2), "{what}: {took:?}");
    }
}

/// Files have neither the class of a Gateway nor the times of what is there.
#[test]
fn what_files_leave_out_is_taken_as_it_is_in_a_cluster() {
    let unborn = |mut object: Value| {
        object["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
        object
    };
    let files: Vec<Value> =
        [gateway("gw", "a.org"), route("api", &[""]), security_policy("z", "HTTPRoute", "api")]
            .map(unborn)
            .into();
    let said = written(&files, &unborn(security_policy("a", "HTTPRoute", "api")));
    said.assert_allowed();
    let warnings = said.warnings();
    assert!(
        warnings.iter().any(|own| own.contains("SecurityPolicy/shop/a is conflicted by shop/z")),
        "{warnings:?}"
    );
}

/// What a policy has already moves with what is removed before it, and is refused in no place.
#[test]
fn what_is_there_already_may_move() {
    let with = |predicates: &[&str], block: &str| {
        let when: Vec<Value> = predicates.iter().map(|text| json!({"predicate": text})).collect();
        let mut limits = limits(&["a"])["limits"].clone();
        limits["a"]["when"] = when.into();
        let spec =
            if block.is_empty() { json!({"limits": limits}) } else { json!({block: {"limits": limits}}) };
        limit_policy("p", "Gateway", "gw", spec)
    };
    let objects = [topology(), vec![with(&["request.method == 'GET'", "foo.bar == 'a'"], "")]].concat();
    for new in [with(&["foo.bar == 'a'"], ""), with(&["foo.bar == 'a'"], "defaults")] {
        written(&objects, &new).assert_allowed();
    }
    let twice = with(&["foo.bar == 'a'", "foo.bar == 'a'"], "");
    written(&objects, &twice).assert_refused("policy-expression", "can never be evaluated");
}
