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
