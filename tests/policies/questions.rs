//! What CI asks: paths without a kind of rules, exit codes, and changes that would not be taken.

use rstest::rstest;
use serde_json::{Value, json};

use super::{EXAMPLE, SETS, json_of, run};

/// A file of one object beside the example.
fn diff(object: &str, flags: &str) -> super::Ended {
    run(&format!("policies effective --diff -f - --objects {EXAMPLE} {flags}"), object)
}

const ROUTE: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: route-4}
spec:
  parentRefs: [{namespace: infra, name: gw-2}]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
";

#[rstest]
#[case::nothing_without("--without RateLimitPolicy --exit-code", 0, 0)]
#[case::a_kind("--without SecurityPolicy --exit-code", 1, 2)]
#[case::a_rule("--without securitypolicy/authorization --exit-code", 1, 3)]
#[case::a_rule_is_no_prefix("--without SecurityPolicy/author", 0, 6)]
#[case::of_a_phase("--without AuthPolicy/authentication", 0, 6)]
#[case::of_all("--without SecurityPolicy --without RateLimitPolicy/hourly", 0, 2)]
#[case::a_route("shop/route-4 --without SecurityPolicy --exit-code", 1, 1)]
fn paths_without(#[case] flags: &str, #[case] code: i32, #[case] paths: usize) {
    let ended = run(&format!("policies effective {flags} -f {EXAMPLE} -o json"), "");
    assert_eq!(ended.code, code, "{}", ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["paths"].as_array().unwrap().len(), paths, "{found:#}");
}

#[rstest]
#[case::same(ROUTE.to_owned(), 0, "")]
#[case::another(ROUTE.replace("gw-2", "gw-1"), 1, "paths that change: 2")]
#[case::not_decoded(ROUTE.replace("port: 80", "port: eighty"), 2, "HTTPRoute/shop/route-4: cannot decode spec")]
fn a_difference_has_an_exit_code(#[case] object: String, #[case] code: i32, #[case] text: &str) {
    let ended = diff(&object, "--exit-code");
    assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    assert_eq!(diff(&object, "").code, 0);
}

/// The API server keeps the old version of what it refuses.
#[rstest]
#[case::a_rate("limits: {daily: {rates: [{limit: many, window: 24h}]}}")]
#[case::two_blocks("limits: {a: {}}, defaults: {limits: {b: {}}}")]
fn a_version_that_would_not_be_taken_opens_no_path(#[case] fields: &str) {
    let policy = format!(
        "apiVersion: kuadrant.io/v1\nkind: RateLimitPolicy\nmetadata: {{namespace: shop, name: rlp-4}}\nspec: {{targetRef: \
         {{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-4}}, {fields}}}\n"
    );
    let ended = diff(&policy, "");
    assert_eq!(ended.stdout, "nothing changes on any path\n", "{}", ended.stderr);
    assert!(
        ended.stderr.starts_with("left out, as the API server or its controller would not take it: "),
        "{}",
        ended.stderr
    );
    let json: Value = serde_json::from_str(&diff(&policy, "-o json").stdout).unwrap();
    assert!(json["leftOut"][0].as_str().unwrap().starts_with("RateLimitPolicy/shop/rlp-4: spec"), "{json}");
}

/// The name of what is deleted is all that is needed.
#[rstest]
#[case::a_policy("kuadrant.io/v1", "RateLimitPolicy", "rlp-4", "    - daily  from shop/rlp-4: ")]
#[case::a_route(
    "gateway.networking.k8s.io/v1",
    "HTTPRoute",
    "route-4",
    "> HTTPRoute/shop/route-4 > rule 0 (gone)\n"
)]
fn a_deletion_is_its_metadata(
    #[case] version: &str,
    #[case] kind: &str,
    #[case] name: &str,
    #[case] text: &str,
) {
    let metadata = json!({"namespace": "shop", "name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let ended = diff(&json!({"apiVersion": version, "kind": kind, "metadata": metadata}).to_string(), "");
    assert!(ended.stdout.contains(text), "{}{}", ended.stdout, ended.stderr);
}

/// What --objects has without a time is older than what is new.
#[test]
fn what_is_new_is_the_youngest() {
    let policy = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {namespace: shop, name: a}\nspec: \
        {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-2}], jwt: {}}";
    let ended = diff(policy, "");
    assert_eq!(ended.stdout, "nothing changes on any path\n");
    assert!(ended.stderr.contains("SecurityPolicy/shop/a is not accepted: "), "{}", ended.stderr);
}

/// A Gateway and a policy of limits of which one counts nothing.
fn with_inert_limits() -> String {
    let policy = json!({
        "apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy", "metadata": {"name": "inert"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"},
            "limits": {
                "short": {"rates": [{"limit": 1, "window": "500ms"}]},
                "half": {"rates": [{"limit": 1, "window": "500ms"}, {"limit": 9, "window": "1s"}]},
            },
        },
    });
    format!("{SETS}---\n{policy}")
}

#[test]
fn a_limit_that_can_never_act_is_marked() {
    let input = with_inert_limits();
    let why = "spec.limits.short.rates[0].window: 500ms: a window is shorter than a second, which limits are counted by";
    let out = run("policies effective httproute/api --rule 0 -f -", &input).stdout;
    assert!(
        out.contains(&format!("    short  from default/inert: 1 per 500ms\n      never acts: {why}\n")),
        "{out}"
    );
    assert!(out.contains("      never acts in part: spec.limits.half.rates[0].window: 500ms: "), "{out}");
    let found = json_of("policies effective httproute/api --rule 0 -f - -o json", &input);
    let rules = &found["paths"][0]["policies"]["RateLimitPolicy"]["rules"];
    assert_eq!(rules["short"]["neverActs"], json!([why]));
    assert_eq!(
        (rules["half"]["neverActs"].as_array(), rules["half"]["neverActsInPart"].is_array()),
        (None, true)
    );
    for (rule, paths) in [("short", 2), ("half", 1)] {
        let line = format!("policies effective httproute/api --without RateLimitPolicy/{rule} -f - -o json");
        assert_eq!(json_of(&line, &input)["paths"].as_array().unwrap().len(), paths, "{rule}");
    }
}

/// A selector of other namespaces may select what is here.
#[test]
fn selectors_of_other_namespaces_make_a_kind_unknown() {
    let policy = json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy", "metadata": {"name": "all", "namespace": "infra"},
        "spec": {"targetSelectors": [{"kind": "HTTPRoute", "namespaces": {"from": "All"}}], "cors": {}},
    });
    let input = format!("{SETS}---\n{policy}");
    let why = "SecurityPolicy: unknown, as targets of other namespaces are not followed";
    assert!(run("why httproute/api -f -", &input).stdout.contains(why));
    let found = json_of("policies effective httproute/api --without SecurityPolicy -f - -o json", &input);
    assert_eq!(found["paths"][0]["policies"]["SecurityPolicy"], json!({"unknown": true}));
}

/// A name of a rule, or none, is no other path.
#[rstest]
#[case::null_is_absent(ROUTE.replace("  rules:", "  hostnames: null\n  rules:"), "nothing changes on any path\n")]
#[case::a_name(ROUTE.replace("[{backendRefs", "[{name: all, backendRefs"), "nothing changes on any path\n")]
#[case::another_position(ROUTE.replace("[{backendRefs", "[{name: new}, {name: all, backendRefs"), "rule 1 all (new)\n")]
fn what_is_no_change_is_not_printed(#[case] object: String, #[case] text: &str) {
    let ended = diff(&object, "");
    assert!(
        ended.stdout.contains(text) && !ended.stdout.contains("(gone)"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}

#[test]
fn a_number_is_a_position() {
    let input = SETS.replace("rules: [{}, {name: second}]", "rules: [{name: \"1\"}, {name: second}]");
    let found = json_of("policies effective httproute/api --rule 1 -f - -o json", &input);
    assert_eq!(found["paths"][0]["rule"], 1);
}

/// Who limits this URL.
#[test]
fn requests_and_rates_are_printed() {
    let out = run(&format!("policies effective shop/route-1 --rule write -f {EXAMPLE}"), "").stdout;
    assert!(out.contains("\n  requests: *; POST path prefix /\n"), "{out}");
    assert!(out.contains("    burst   from shop/rlp-2: 2 per 1s\n"), "{out}");
    let policy = json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "BackendTrafficPolicy", "metadata": {"name": "traffic"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"}],
            "rateLimit": {"local": {"rules": [
                {"limit": {"requests": 5, "unit": "Hour"}}, {"limit": {"requests": 9, "unit": "Day"}, "clientSelectors": [{}]},
            ]}},
        },
    });
    let out = run("policies effective httproute/api -f -", &format!("{SETS}---\n{policy}")).stdout;
    let text =
        "    rateLimit  from default/traffic: 5 per hour, 9 per day, of requests that meet its conditions\n";
    assert!(out.contains(text), "{out}");
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "web"},
        "spec": {"parentRefs": [{"name": "gw"}], "hostnames": ["www.example.org"], "rules": [{"matches": [
            {"path": {"type": "Exact", "value": "/a"}, "headers": [{"name": "x-env", "value": "test"}]},
            {"path": {"type": "RegularExpression", "value": "/b.*"}, "queryParams": [{"name": "q", "value": "1"}]},
        ]}]},
    });
    let out = run("policies effective web -f -", &format!("{SETS}---\n{route}")).stdout;
    let text = "requests: www.example.org; path /a, header x-env=test or path regex /b.*, parameter q=1\n";
    assert!(out.contains(text), "{out}");
    let mut redirect = route;
    redirect["spec"]["rules"][0] = json!({"filters": [{"type": "RequestRedirect"}]});
    let out = run("policies effective web -f -", &format!("{SETS}---\n{redirect}")).stdout;
    let text = "requests: www.example.org; all (the proxy redirects them: limits that Interlock carries out do not apply)\n";
    assert!(out.contains(text), "{out}");
}

/// A limit for each user is no limit for all of them.
#[test]
fn what_a_limit_is_counted_for_is_printed() {
    let policy = |api_version: &str, kind: &str, spec: Value| {
        let mut spec = spec;
        spec["targetRefs"] =
            json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"}]);
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "own"}, "spec": spec})
    };
    let mut of_kuadrant = policy(
        "kuadrant.io/v1",
        "RateLimitPolicy",
        json!({"limits": {"user": {
            "rates": [{"limit": 5, "window": "1500ms"}],
            "counters": [{"expression": "request.headers['x-user']"}, {"expression": "request.method"}],
            "when": [{"predicate": "'x-user' in request.headers"}],
        }}}),
    );
    of_kuadrant["spec"]["targetRef"] = of_kuadrant["spec"]["targetRefs"][0].take();
    of_kuadrant["spec"].as_object_mut().unwrap().remove("targetRefs");
    let selectors = json!([{
        "headers": [{"name": "x-user", "type": "Distinct"}, {"name": "x-plan", "value": "free"}],
        "sourceCIDR": {"value": "0.0.0.0/0", "type": "Distinct"},
    }]);
    let of_envoy = json!({"rateLimit": {"global": {"rules": [
        {"limit": {"requests": 5, "unit": "Hour"}, "clientSelectors": selectors},
    ]}}});
    let of_envoy = policy("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", of_envoy);
    let out =
        run("policies effective httproute/api -f -", &format!("{SETS}---\n{of_kuadrant}\n---\n{of_envoy}"))
            .stdout;
    for text in [
        "user  from default/own: 5 per 1500ms (counts as 1s) for each request.headers['x-user'] and request.method, \
         of requests that meet its conditions\n",
        "from default/own: 5 per hour for each header x-user and address, of requests that meet its conditions\n",
    ] {
        assert!(out.contains(text), "{out}");
    }
}

#[rstest]
#[case::exit_code_alone("policies effective --exit-code -f EXAMPLE", "without --diff or --without")]
#[case::no_kind("policies effective --without RateLimit -f EXAMPLE", "did you mean RateLimitPolicy")]
#[case::both("policies effective --diff --without AuthPolicy -f EXAMPLE", "--without")]
fn errors_name_the_remedy(#[case] line: &str, #[case] text: &str) {
    let ended = run(&line.replace("EXAMPLE", EXAMPLE), "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
}

/// What is assumed is said.
#[test]
fn assumptions_are_noted() {
    let policy = |kind: &str, name: &str| {
        json!({
            "apiVersion": if kind == "PaintPolicy" { "example.org/v1" } else { "gateway.envoyproxy.io/v1alpha1" },
            "kind": kind, "metadata": {"name": name},
            "spec": {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"}], "cors": {}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "paints.example.org", "labels": {"gateway.networking.k8s.io/policy": "Inherited"}},
        "spec": {"group": "example.org", "names": {"kind": "PaintPolicy", "plural": "paints"}},
    });
    let items = json!([
        definition,
        policy("PaintPolicy", "red"),
        policy("SecurityPolicy", "one"),
        policy("SecurityPolicy", "two"),
    ]);
    let input = format!("{SETS}---\n{}", json!({"apiVersion": "v1", "kind": "List", "items": items}));
    let said = run("policies list -f -", &input).stderr;
    assert!(said.contains("SecurityPolicy/default/two and SecurityPolicy/default/one"), "{said}");
    assert!(said.contains("policies of PaintPolicy are merged field by field here"), "{said}");
}
