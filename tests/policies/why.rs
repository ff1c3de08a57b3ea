//! `interlock why` of policies, routes and Gateways.

use rstest::rstest;
use serde_json::{Value, json};

use super::{EXAMPLE, SETS, json_of, run};

fn lines(object: &str) -> Vec<String> {
    let ended = run(&format!("why {object} -f {EXAMPLE}"), "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{object}");
    ended.stdout.lines().map(str::to_owned).collect()
}

#[rstest]
#[case("policy/infra/rlp-1")]
#[case("ratelimitpolicies.kuadrant.io/infra/rlp-1")]
#[case("RateLimitPolicy rlp-1 -n infra")]
fn a_policy_says_where_it_applies_and_who_replaces_it(#[case] object: &str) {
    let expected = [
        "RateLimitPolicy.kuadrant.io infra/rlp-1",
        "  going by the objects: RateLimitPolicy has been accepted",
        "  targets Gateway/infra/gw-1",
        "  acts on 4 paths, by route:",
        "    infra/gw-1 > http > HTTPRoute/shop/route-1 > rule 0 read, rule 1 write",
        "    infra/gw-1 > http > HTTPRoute/shop/route-2 > rule 0",
        "    infra/gw-1 > http > HTTPRoute/shop/route-3 > rule 0",
        "  replaced by shop/rlp-2 on 1 path: burst",
        "  its status reports nothing",
    ];
    assert_eq!(lines(object), expected);
}

#[test]
fn a_policy_that_acts_nowhere_says_why() {
    let policy = |name: &str, year: u16, target: &str| {
        json!({
            "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
            "metadata": {"name": name, "creationTimestamp": format!("{year}-01-01T00:00:00Z")},
            "spec": {
                "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "GRPCRoute", "name": target}],
                "cors": {},
            },
            "status": {"ancestors": [{"ancestorRef": {"name": "gw"}, "conditions": [
                {"type": "Accepted", "status": "False", "reason": "Conflicted", "message": "taken"},
            ]}]},
        })
    };
    let items: Value =
        json!([policy("older", 2025, "api"), policy("younger", 2026, "api"), policy("lost", 2026, "no")]);
    let input = format!("{SETS}---\n{}", json!({"apiVersion": "v1", "kind": "List", "items": items}));
    let of = |name: &str| json_of(&format!("why policy/{name} -f - -o json"), &input);
    let younger = of("younger");
    assert_eq!(younger["policy"]["accepted"]["reason"], "Conflicted");
    assert_eq!(younger["policy"]["conflictsWith"], json!(["default/older"]));
    let is = younger["is"].to_string();
    assert!(is.contains("acts nowhere, as it is not accepted"), "{is}");
    assert!(is.contains("its status says for default/gw: Accepted=False (Conflicted): taken"), "{is}");
    assert_eq!(of("lost")["policy"]["accepted"]["reason"], "TargetNotFound");
}

/// One that is invalid, one whose limit can never act, and one that another merges with.
#[test]
fn what_a_policy_does_not_do_is_not_replaced() {
    let policy = |kind: &str, name: &str, target: &str, fields: Value| {
        let mut spec = fields;
        let target = json!({"group": "gateway.networking.k8s.io", "kind": target, "name": if target == "Gateway" { "gw" } else { "api" }});
        let version = if kind == "SecurityPolicy" {
            spec["targetRefs"] = json!([target]);
            "gateway.envoyproxy.io/v1alpha1"
        } else {
            spec["targetRef"] = target;
            "kuadrant.io/v1"
        };
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
    };
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "istio.io/gateway-controller"},
    });
    let short = json!({"limits": {"a": {"rates": [{"limit": 1, "window": "1ms"}]}}});
    let items = json!([
        class,
        policy("RateLimitPolicy", "invalid", "HTTPRoute", json!({"limits": {"a": 1}})),
        policy("RateLimitPolicy", "short", "Gateway", short),
        policy("SecurityPolicy", "upper", "Gateway", json!({"cors": {"maxAge": "5m"}})),
        policy(
            "SecurityPolicy",
            "own",
            "HTTPRoute",
            json!({"mergeType": "JSONMerge", "cors": {"allowOrigins": ["a"]}})
        ),
    ]);
    let input = format!("{SETS}---\n{}", json!({"apiVersion": "v1", "kind": "List", "items": items}));
    let of = |object: &str| run(&format!("why {object} -f -"), &input).stdout;
    for (name, line) in [
        ("invalid", "acts nowhere, as it is not accepted"),
        ("short", "acts nowhere: what is not replaced on its 2 paths can never act"),
        ("upper", "acts on 2 paths, by route:"),
    ] {
        let out = of(&format!("policy/{name}"));
        assert!(out.contains(line) && !out.contains("all its rules are replaced"), "{name}: {out}");
    }
    let merged = "cors  from default/own, merged with that of default/upper\n";
    assert!(of("httproute/api").contains(merged), "{}", of("httproute/api"));
    let foreign =
        "below GatewayClass eg, and do not act there unless its controller istio.io/gateway-controller is";
    for (object, is_said) in [("policy/own", true), ("policy/short", false), ("httproute/api", true)] {
        assert_eq!(of(object).contains(foreign), is_said, "{}", of(object));
    }
}

#[test]
fn a_route_says_which_listeners_carry_it_and_what_acts_on_its_rules() {
    let expected = [
        "HTTPRoute.gateway.networking.k8s.io shop/route-3",
        "  carried by Gateway/infra/gw-1#http for *",
        "  carried by Gateway/infra/gw-2#http for *",
        "  refused by Gateway/infra/gw-2#admin: NamespaceNotAllowed (allowedRoutes of the listener does not admit the \
         namespace of the route)",
        "  on infra/gw-1 > http > rule 0",
        "    RateLimitPolicy: infra/rlp-1, shop/rlp-3",
        "      burst  from infra/rlp-1: 10 per 1s",
        "      daily  from shop/rlp-3: 5000 per 24h",
        "      hourly  from infra/rlp-1: 1000 per 1h",
        "    SecurityPolicy: infra/guard",
        "      authorization  from infra/guard",
        "      cors  from infra/guard",
        "  on infra/gw-2 > http > rule 0",
        "    RateLimitPolicy: shop/rlp-3",
        "      daily  from shop/rlp-3: 5000 per 24h",
    ];
    assert_eq!(lines("httproute/shop/route-3"), expected);
    assert!(
        lines("httproute/shop/route-1")
            .contains(&"      burst  from shop/rlp-2: 2 per 1s, in place of that of infra/rlp-1".to_owned())
    );
    let json = json_of(&format!("why httproute/shop/route-3 -o json -f {EXAMPLE}"), "");
    assert_eq!(
        json["route"]["refused"],
        json!([{"parent": "Gateway/infra/gw-2#admin", "reason": "NamespaceNotAllowed"}])
    );
    assert_eq!(json["route"]["paths"].as_array().unwrap().len(), 2);
}

/// Rules with the same policies are one entry.
#[test]
fn a_route_of_many_rules_is_short() {
    let rules = vec!["{}"; 40].join(", ");
    let input = SETS.replace("rules: [{}, {name: second}]", &format!("rules: [{rules}]"));
    let out = run("why httproute/api -f -", &input).stdout;
    assert_eq!(out.matches("\n  on ").count(), 1, "{out}");
    assert!(out.contains("rule 7 and 32 more\n"), "{out}");
}

#[test]
fn a_gateway_says_what_its_listeners_carry_and_refuse() {
    let expected = [
        "Gateway.gateway.networking.k8s.io infra/gw-2",
        "  of GatewayClass eg; carries 2 routes",
        "  routes HTTPRoute/shop/route-3, HTTPRoute/shop/route-4",
        "  listener http: HTTP 80; carries 2 routes",
        "  listener admin: HTTP 81; carries 0 routes",
        "    refuses 2 routes: NamespaceNotAllowed (allowedRoutes of the listener does not admit the namespace of the \
         route)",
    ];
    assert_eq!(lines("gateway/infra/gw-2"), expected);
    let conflict = "listeners: [{name: http, port: 80, protocol: HTTP, hostname: www.example.org}";
    let both = SETS.replace(conflict, &format!("{conflict}, {{name: tcp, port: 80, protocol: TCP}}"));
    let json = json_of("why gateway/gw -f - -o json", &both);
    let listener = |at: usize| {
        let own = &json["gateway"]["listeners"][at];
        (own["listener"].as_str().unwrap(), own["refused"].as_str(), own["routes"].as_u64().unwrap())
    };
    assert_eq!(listener(1), ("Gateway/default/gw#tcp", Some("ProtocolConflict"), 0));
    assert_eq!(listener(2), ("ListenerSet/default/more#http", None, 1));
    let refused = SETS.replace("from: Same", "from: None");
    let json = json_of("why gateway/gw -f - -o json", &refused);
    assert_eq!(json["gateway"]["listeners"][1]["refused"], "ListenerSetNotAllowed");
}

#[rstest]
#[case::no_such("why policy/infra/rlp-9 -f EXAMPLE", 3, "policy infra/rlp-9 does not exist")]
#[case::near("why policy/infra/rlp-9 -f EXAMPLE", 3, "did you mean rlp-1")]
#[case::two_kinds(
    "why policy/twice -f -",
    2,
    "write one of the kinds AuthPolicy.kuadrant.io, RateLimitPolicy.kuadrant.io"
)]
#[case::other_kind(
    "why service/shop/shop -f EXAMPLE",
    2,
    "nothing is known of Service shop/shop without a cluster"
)]
fn errors_name_the_remedy(#[case] line: &str, #[case] code: i32, #[case] text: &str) {
    let policy = |kind: &str| {
        format!("---\napiVersion: kuadrant.io/v1\nkind: {kind}\nmetadata: {{name: twice}}\nspec: {{}}\n")
    };
    let input = policy("RateLimitPolicy") + &policy("AuthPolicy");
    let ended = run(&line.replace("EXAMPLE", EXAMPLE), &input);
    assert_eq!(ended.code, code, "{}", ended.stderr);
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
}

/// Texts of objects are cut, and do not steer the terminal.
#[rstest]
fn no_text_is_longer_than_it_helps(#[values("policy/limits", "httproute/own", "gateway/gw")] object: &str) {
    let long = format!("\u{1b}[2J\u{202e}{}", "n".repeat(70_000));
    let mut objects = super::guarded(&long);
    let mut own = objects["items"][3].clone();
    own["metadata"] = json!({"name": "own"});
    own["spec"]["targetRef"]["kind"] = "HTTPRoute".into();
    own["spec"]["targetRef"]["name"] = "own".into();
    objects["items"].as_array_mut().unwrap().push(own);
    let ended = run(&format!("why {object} -f -"), &objects.to_string());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let is_steering = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(ended.stdout.len() < 5_000 && !ended.stdout.contains(is_steering), "{}", ended.stdout);
}
