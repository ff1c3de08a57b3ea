//! `interlock policies`, without a cluster: what it prints of files, its forms for programs, and its errors.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/printed.rs"]
mod printed;
mod questions;
mod why;

use printed::{Ended, run};
use rstest::rstest;
use serde_json::{Value, json};

/// The objects of the page.
const EXAMPLE: &str = "examples/policies/cluster";

#[test]
fn the_page_shows_what_the_commands_print() {
    printed::assert_shown("docs/policies.md", 9);
}

fn json_of(line: &str, input: &str) -> Value {
    let ended = run(line, input);
    assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// A Gateway with a ListenerSet, two routes of one name and a policy that nothing carries out yet.
const SETS: &str = r#"
kind: List
apiVersion: v1
items:
- apiVersion: gateway.networking.k8s.io/v1
  kind: Gateway
  metadata: {name: gw}
  spec:
    gatewayClassName: eg
    allowedListeners: {namespaces: {from: Same}}
    listeners: [{name: http, port: 80, protocol: HTTP, hostname: www.example.org}]
- apiVersion: gateway.networking.k8s.io/v1
  kind: ListenerSet
  metadata: {name: more}
  spec:
    parentRef: {name: gw}
    listeners: [{name: http, port: 81, protocol: HTTP}]
- apiVersion: gateway.networking.k8s.io/v1
  kind: HTTPRoute
  metadata: {name: api}
  spec: {parentRefs: [{kind: ListenerSet, name: more}], rules: [{}, {name: second}]}
- apiVersion: gateway.networking.k8s.io/v1
  kind: GRPCRoute
  metadata: {name: api}
  spec: {parentRefs: [{name: gw}], hostnames: [other.example.com], rules: [{}]}
- apiVersion: kuadrant.io/v1
  kind: RateLimitPolicy
  metadata: {name: second}
  spec:
    targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: api, sectionName: second}
    limits: {own: {rates: [{limit: 1, window: 1m}]}}
"#;

#[test]
fn effective_as_json() {
    let found = json_of("policies effective HTTPRoute/team/api -n team -f - -o json", SETS);
    let limit = json!({"rates": [{"limit": 1, "window": "1m"}]});
    let path = |rule: usize, policies: Value| {
        json!({
            "gatewayClass": "eg", "gateway": "team/gw", "listener": "ListenerSet/team/more#http",
            "route": "HTTPRoute/team/api", "rule": rule, "policies": policies,
        })
    };
    let own = json!({"RateLimitPolicy": {"rules": {"own": {"source": "team/second", "rule": limit}}}});
    assert_eq!(found, json!({"paths": [path(0, json!({})), path(1, own)]}));
    for rule in ["1", "second"] {
        let line = format!("policies effective httproutes/api --rule {rule} -n team -f - -o json");
        let only = json_of(&line, SETS);
        assert_eq!(only["paths"], json!([found["paths"][1]]), "--rule {rule}");
    }
}

#[test]
fn effective_says_what_was_replaced() {
    let line = format!("policies effective shop/route-1 --rule write -o json -f {EXAMPLE}");
    let found = json_of(&line, "");
    let limits = &found["paths"][0]["policies"]["RateLimitPolicy"];
    let source = |name: &str| limits["rules"][name]["source"].as_str().unwrap().to_owned();
    assert_eq!((source("burst"), source("hourly")), ("shop/rlp-2".into(), "infra/rlp-1".into()));
    assert_eq!(limits["replaced"], json!([{"policy": "infra/rlp-1", "rule": "burst", "by": ["shop/rlp-2"]}]));
    // Through each of its Gateways.
    let line = format!("policies effective shop/route-3 -o json -f {EXAMPLE}");
    let found = json_of(&line, "");
    let paths = found["paths"].as_array().unwrap().iter();
    let rules = paths.map(|path| {
        let rules = path["policies"]["RateLimitPolicy"]["rules"].as_object().unwrap();
        (path["gateway"].as_str().unwrap(), rules.keys().map(String::as_str).collect::<Vec<_>>())
    });
    assert_eq!(
        rules.collect::<Vec<_>>(),
        [("infra/gw-1", vec!["burst", "daily", "hourly"]), ("infra/gw-2", vec!["daily"])]
    );
}

#[test]
fn list_as_json() {
    let found = json_of(&format!("policies list -o json -f {EXAMPLE}"), "");
    let accepted = json!({"status": "True", "reason": "Accepted"});
    assert_eq!(
        found["policies"],
        json!({
            "RateLimitPolicy/infra/rlp-1": {"accepted": accepted, "by": ["shop/rlp-2"]},
            "RateLimitPolicy/shop/rlp-2": {"accepted": accepted, "by": []},
            "RateLimitPolicy/shop/rlp-3": {"accepted": accepted, "by": []},
            "RateLimitPolicy/shop/rlp-4": {"accepted": accepted, "by": []},
            "SecurityPolicy/infra/guard": {"accepted": accepted, "by": ["shop/browsers"]},
            "SecurityPolicy/shop/browsers": {"accepted": accepted, "by": []},
        })
    );
    let limits = |target: &str| found["affected"][target]["RateLimitPolicy"].clone();
    assert_eq!(limits("Gateway/infra/gw-1"), json!(["infra/rlp-1", "shop/rlp-2", "shop/rlp-3"]));
    assert_eq!(limits("Gateway/infra/gw-2#http"), json!(["shop/rlp-3", "shop/rlp-4"]));
    assert_eq!(limits("HTTPRoute/shop/route-3@infra/gw-1"), json!(["infra/rlp-1", "shop/rlp-3"]));
    assert_eq!(limits("HTTPRoute/shop/route-3@infra/gw-2"), json!(["shop/rlp-3"]));
    assert_eq!(found.as_object().unwrap().len(), 2, "no kind is unknown");
}

#[test]
fn list_has_what_statuses_say() {
    let status = r#"  status:
    conditions: [{type: Enforced, status: "True", reason: Enforced, message: it has been partially enforced}]
    ancestors:
    - ancestorRef: {kind: Gateway, namespace: default, name: gw}
      conditions: [{type: Programmed, status: "True", reason: PartiallyProgrammed}]
"#;
    let input = format!("{SETS}{status}");
    let found = json_of("policies list -o json -f -", &input);
    let own = &found["policies"]["RateLimitPolicy/default/second"];
    assert_eq!(own["enforced"], json!({"status": "True", "reason": "Enforced", "partially": true}));
    assert_eq!(own["programmed"], json!({"default/gw": {"status": "True", "reason": "PartiallyProgrammed"}}));
    let text = |input: &str| run("policies list -f -", input);
    assert!(!text(SETS).stdout.contains("ENFORCED"), "{}", text(SETS).stdout);
    let table = text(&input).stdout;
    assert!(table.contains("  ACCEPTED  ENFORCED  REPLACED BY\n"), "{table}");
    let refused = input.replace(
        "Enforced, status: \"True\", reason: Enforced",
        "Enforced, status: \"False\", reason: Unknown",
    );
    let (table, said) = (text(&refused).stdout, text(&refused).stderr);
    assert!(table.contains("  False (Unknown)  "), "{table}");
    assert!(said.contains("its status has Enforced False (Unknown): it has been"), "{said}");
}

#[test]
fn tree_as_json() {
    let found = json_of("policies tree -o json -f -", SETS);
    let gateway = &found["tree"][0]["children"][0];
    assert_eq!(gateway["node"], "Gateway/default/gw");
    let route = &gateway["children"][1]["children"][0]["children"][0];
    assert_eq!(route["node"], "HTTPRoute/default/api");
    assert_eq!(route["children"][1]["policies"], json!({"RateLimitPolicy": ["default/second"]}));
    assert_eq!(
        found["refused"],
        json!([{"route": "GRPCRoute/default/api", "parent": "Gateway/default/gw#http", "reason": "HostnameMismatch"}])
    );
    assert_eq!(found["otherTargets"], json!([]));
}

/// A listener in conflict, and those of a ListenerSet that is not admitted, carry nothing.
#[test]
fn listeners_that_carry_nothing_are_marked() {
    let own = "listeners: [{name: http, port: 80, protocol: HTTP, hostname: www.example.org}";
    let input = SETS
        .replace(own, &format!("{own}, {{name: tcp, port: 80, protocol: TCP}}"))
        .replace("from: Same", "from: None");
    let out = run("policies tree -f -", &input).stdout;
    assert!(out.contains("\n    listener tcp: ProtocolConflict\n"), "{out}");
    assert!(
        out.contains("\n    ListenerSet/default/more\n      listener http: ListenerSetNotAllowed\n"),
        "{out}"
    );
    let found = json_of("policies tree -o json -f -", &input);
    let gateway = &found["tree"][0]["children"][0];
    assert_eq!(
        (gateway.get("refused"), &gateway["children"][1]["refused"]),
        (None, &json!("ProtocolConflict"))
    );
}

/// A policy that acts nowhere is not as healthy as it looks.
#[test]
fn a_policy_that_acts_nowhere_is_noted() {
    let input = SETS.replace("kind: ListenerSet, name: more", "name: gw, sectionName: none");
    let said = run("policies list -f -", &input).stderr;
    let note = "RateLimitPolicy/default/second acts nowhere: no path leads through its targets\n";
    assert!(said.contains(note), "{said}");
    assert!(!run("policies list -f -", SETS).stderr.contains("acts nowhere"));
}

#[test]
fn difference_as_json() {
    let line = format!(
        "policies effective shop/route-1 --rule write --diff -f examples/policies/stricter.yaml --objects {EXAMPLE} -o json"
    );
    let found = json_of(&line, "");
    let paths = found["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 1);
    let burst = |side: &str| paths[0][side]["RateLimitPolicy"]["rules"]["burst"]["source"].clone();
    assert_eq!((burst("before"), burst("after")), (json!("shop/rlp-2"), json!("infra/rlp-1")));
    assert_eq!(paths[0]["before"].as_object().unwrap().len(), 1, "the other kind does not change");
    // The same objects once more.
    let same = format!("policies effective --diff -f {EXAMPLE} --objects {EXAMPLE}");
    assert_eq!(run(&same, "").stdout, "nothing changes on any path\n");
    // A rule that is new.
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: route-4, namespace: shop}\n\
        spec: {parentRefs: [{name: gw-2, namespace: infra}], rules: [{}, {}]}";
    let new = json_of(&format!("policies effective --diff -f - --objects {EXAMPLE} -o json"), route);
    let path = &new["paths"][0];
    assert_eq!((&path["rule"], &path["before"]), (&json!(1), &Value::Null));
    assert_eq!(path["after"]["RateLimitPolicy"]["rules"]["daily"]["source"], "shop/rlp-4");
}

/// A new policy that is refused changes nothing, and says why.
#[test]
fn a_new_policy_that_is_not_accepted_is_noted() {
    let policy = "apiVersion: kuadrant.io/v1\nkind: RateLimitPolicy\nmetadata: {name: lost, namespace: shop}\n\
        spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: gone}, limits: {a: {}}}";
    let ended = run(&format!("policies effective --diff -f - --objects {EXAMPLE}"), policy);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "nothing changes on any path\n"));
    let note = "RateLimitPolicy/shop/lost is not accepted: ";
    assert!(
        ended.stderr.starts_with(note) && ended.stderr.contains("HTTPRoute/shop/gone"),
        "{}",
        ended.stderr
    );
}

#[rstest]
#[case::no_such_route("policies effective shop/rout-1 -f EXAMPLE", 3, "did you mean route-1")]
#[case::other_namespace("policies effective route-1 -f EXAMPLE", 3, "a route default/route-1 does not exist")]
#[case::other_kind(
    "policies effective GRPCRoute/shop/route-1 -f EXAMPLE",
    3,
    "GRPCRoute shop/route-1 does not exist"
)]
#[case::no_kind("policies effective Route/shop/route-1 -f EXAMPLE", 2, "\"Route\" is no kind of routes")]
#[case::empty_part("policies effective shop/ -f EXAMPLE", 2, "has an empty part")]
#[case::four_parts("policies effective a/b/c/d -f EXAMPLE", 2, "names no route")]
#[case::two_routes(
    "policies effective api -f -",
    2,
    "name one of HTTPRoute/default/api, GRPCRoute/default/api"
)]
#[case::no_rule(
    "policies effective shop/route-1 --rule 2 -f EXAMPLE",
    3,
    "a number from 0 to 1, or a name: read, write"
)]
#[case::rule_alone("policies effective --rule 1 -f EXAMPLE", 2, "<ROUTE>")]
#[case::objects_alone("policies effective --objects EXAMPLE", 2, "--diff")]
#[case::diff_alone("policies effective --diff --objects EXAMPLE", 2, "give the new objects with -f")]
#[case::stdin_twice("policies effective --diff -f - --objects -", 2, "standard input is given twice")]
#[case::no_file("policies list -f /no/such/file", 2, "/no/such/file cannot be read")]
#[case::no_object("policies list -f tests/policies", 2, "-f holds no object")]
#[case::no_cluster("policies tree", 2, "no cluster is configured")]
#[case::all_and_one("policies list -A -n shop -f EXAMPLE", 2, "leave one of the two flags out")]
fn errors_name_the_remedy(#[case] line: &str, #[case] code: i32, #[case] text: &str) {
    let ended = run(&line.replace("EXAMPLE", EXAMPLE), SETS);
    assert_eq!(ended.code, code, "{}", ended.stderr);
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

/// What is left out or taken for granted is said, and the rest is printed.
#[test]
fn notes() {
    let odd = "
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: bad}
spec: {gatewayClassName: eg, listeners: [{name: http, port: many, protocol: HTTP}]}
---
apiVersion: example.org/v1
kind: PaintPolicy
metadata: {name: red}
spec: {targetRef: {kind: Gateway, name: gw}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: passed-over}
";
    let ended = run("policies effective GRPCRoute/api -f -", &format!("{SETS}{odd}"));
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""));
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 5, "{}", ended.stderr);
    for (line, text) in lines.iter().zip([
        "GatewayClass eg is not among the objects, and taken as present",
        "objects of PaintPolicy.example.org have targets and are left out",
        "left out, as it cannot be decoded: Gateway/default/bad: ",
        "no listener carries GRPCRoute/default/api",
        "refused by Gateway/default/gw#http: HostnameMismatch",
    ]) {
        assert!(line.starts_with(text), "{line}");
    }
}

/// Texts of objects do not steer the terminal, in any form.
#[rstest]
fn no_text_steers_the_terminal(
    #[values("list", "tree", "effective")] verb: &str,
    #[values("table", "json", "yaml")] form: &str,
) {
    let steering = "\\e[2J\\u202e\\n";
    let input = SETS
        .replace("{own: ", &format!("{{\"own{steering}\": "))
        .replace("name: more}", &format!("name: \"more{steering}\"}}"))
        .replace("metadata: {name: second}", &format!("metadata: {{name: \"second{steering}\"}}"));
    assert_eq!(input.matches("\\e").count(), 4);
    let ended = run(&format!("policies {verb} -o {form} -f -"), &input);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("2J"), "{}", ended.stdout);
    let is_steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    let both = ended.stdout + &ended.stderr;
    assert!(!both.contains(is_steering), "{both:?}");
}

/// A Gateway with an HTTPRoute and a TCPRoute, and a policy of limits of the Gateway.
fn guarded(limit: &str) -> Value {
    let route = |kind: &str, version: &str, section: &str| {
        json!({
            "apiVersion": format!("gateway.networking.k8s.io/{version}"), "kind": kind, "metadata": {"name": "own"},
            "spec": {"parentRefs": [{"name": "gw", "sectionName": section}], "rules": [{"backendRefs": []}]},
        })
    };
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "gw"},
            "spec": {"gatewayClassName": "eg", "listeners": [
                {"name": "http", "port": 80, "protocol": "HTTP"}, {"name": "tcp", "port": 81, "protocol": "TCP"},
            ]},
        },
        route("HTTPRoute", "v1", "http"),
        route("TCPRoute", "v1alpha2", "tcp"),
        {
            "apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy",
            "metadata": {"name": "limits", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"},
                "limits": {limit: {"rates": [{"limit": 1, "window": "1s"}]}},
            },
            "status": {"conditions": [
                {"type": "Accepted", "status": "False", "reason": "MissingDependency", "message": "no\nLimitador"},
                {"type": "Enforced", "status": "False", "reason": "Overridden", "message": "by [a/partially-limited]"},
            ]},
        },
    ]})
}

/// The API server has no bound for the name of a limit but that of the object.
#[test]
fn a_long_name_of_a_rule_is_cut_in_text_alone() {
    let long = "n".repeat(70_000);
    let input = guarded(&long).to_string();
    let text = run("policies effective -f -", &input);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(
        text.stdout.contains("nnn\u{2026}  from default/limits") && text.stdout.len() < 2_000,
        "{}",
        text.stdout
    );
    let rules = &json_of("policies effective httproute/own -o json -f -", &input)["paths"][0]["policies"];
    assert!(rules["RateLimitPolicy"]["rules"][&long].is_object());
    let named = guarded("few")
        .to_string()
        .replace("\"name\":\"gw\"", &format!("\"name\":\"{}\"", "g".repeat(70_000)));
    assert_eq!(run("policies list -f -", &named).code, 0);
}

#[test]
fn limits_act_on_requests_alone() {
    let input = guarded("few").to_string();
    let of = |route: &str| {
        json_of(&format!("policies effective {route}/own -o json -f -"), &input)["paths"][0].clone()
    };
    assert!(of("httproute")["policies"]["RateLimitPolicy"].is_object());
    assert_eq!(of("tcproute")["policies"], json!({}));
}

#[test]
fn what_the_controller_says_is_not_passed_over() {
    let input = guarded("few").to_string();
    let list = json_of("policies list -o json -f -", &input);
    let limits = &list["policies"]["RateLimitPolicy/default/limits"];
    assert_eq!(limits["accepted"], json!({"status": "True", "reason": "Accepted"}));
    assert_eq!(limits["reported"], json!({"status": "False", "reason": "MissingDependency"}));
    assert_eq!(limits["enforced"]["partially"], false);
    let said = run("policies list -f -", &input).stderr;
    assert!(said.contains("its status has Accepted False (MissingDependency): no Limitador"), "{said}");
    let absent =
        input.replace("\"kind\":\"Gateway\",\"name\":\"gw\"", "\"kind\":\"Gateway\",\"name\":\"nowhere\"");
    let said = run("policies list -f -", &absent).stderr;
    assert!(said.contains("RateLimitPolicy/default/limits is not accepted: "), "{said}");
}

/// A copy of a manifest bears the date of the object that it was copied of; the API server gives it another.
#[test]
fn a_new_object_is_the_youngest_whatever_its_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("before.json"), folder.path().join("after.json"));
    // Of two on one target the older acts.
    let policy = |name: &str, year: u16| {
        json!({
            "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
            "metadata": {"name": name, "creationTimestamp": format!("{year}-01-01T00:00:00Z")},
            "spec": {
                "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "own"}],
                "cors": {"allowOrigins": [format!("https://{name}.example.org")]},
            },
        })
    };
    let mut objects = guarded("few");
    objects["items"].as_array_mut().unwrap().push(policy("live", 2026));
    std::fs::write(&before, objects.to_string()).unwrap();
    std::fs::write(&after, policy("copy", 2025).to_string()).unwrap();
    let line = format!("policies effective --diff -f {} --objects {}", after.display(), before.display());
    let ended = run(&line, "");
    assert_eq!(ended.stdout, "nothing changes on any path\n", "{}", ended.stderr);
    assert!(ended.stderr.contains("SecurityPolicy/default/copy is not accepted"), "{}", ended.stderr);
}

#[test]
fn a_deletion_is_asked_about_with_its_timestamp() {
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().join("before.json");
    let mut objects = guarded("few");
    std::fs::write(&before, objects.to_string()).unwrap();
    let mut deleted = objects["items"][3].take();
    deleted["metadata"]["deletionTimestamp"] = "2026-02-01T00:00:00Z".into();
    let line = format!("policies effective --diff -f - --objects {}", before.display());
    let ended = run(&line, &deleted.to_string());
    assert!(ended.stdout.contains("- few  from default/limits"), "{}{}", ended.stdout, ended.stderr);
}

/// Envoy Gateway acts below its own classes; the names of its controllers can be set.
#[test]
fn policies_below_a_class_of_another_controller_are_noted() {
    let mut objects = guarded("few");
    let items = objects["items"].as_array_mut().unwrap();
    items.push(json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "istio.io/gateway-controller"},
    }));
    let without = objects.to_string();
    objects["items"].as_array_mut().unwrap().push(json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy", "metadata": {"name": "keys"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"},
            "cors": {"allowOrigins": ["https://www.example.org"]},
        },
    }));
    let with = objects.to_string();
    let own = with.replace("istio.io/gateway-controller", "gateway.envoyproxy.io/gatewayclass-controller");
    for (input, is_said) in [(without, false), (with, true), (own, false)] {
        let said = run("policies effective -f -", &input).stderr;
        assert_eq!(said.contains("unless its controller istio.io/gateway-controller is"), is_said, "{said}");
    }
}

#[test]
fn routes_of_namespaces_that_are_not_there_are_noted() {
    let mut objects = guarded("few");
    objects["items"][0]["spec"]["listeners"][0]["allowedRoutes"] =
        json!({"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}});
    let said = run("policies effective -f -", &objects.to_string()).stderr;
    assert!(said.contains("paths of their routes are left out: default"), "{said}");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "b"}},
    });
    objects["items"].as_array_mut().unwrap().push(namespace);
    let said = run("policies effective -f -", &objects.to_string()).stderr;
    assert!(!said.contains("are left out"), "{said}");
}
