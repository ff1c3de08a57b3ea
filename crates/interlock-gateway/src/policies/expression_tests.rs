//! Where the expressions of policies are found.

use serde_json::{Value, json};

use super::dialect::Verdict;
use super::expressions;

/// Field and kind of each finding.
fn found(kind: &str, spec: &Value) -> Vec<String> {
    let shown = |verdict| match verdict {
        Verdict::Right => "right",
        Verdict::Unsupported(_) => "unsupported",
        Verdict::Refused(_) => "refused",
    };
    let list = expressions(kind, spec).into_iter();
    list.map(|finding| format!("{} {}", finding.field, shown(finding.verdict))).collect()
}

#[test]
fn of_limits() {
    let limit = |predicate: &str, counter: &str| json!({"when": [{"predicate": "true"}, {"predicate": predicate}], "counters": [{"expression": counter}]});
    let spec = json!({
        "when": [{"predicate": "request.methd == 'GET'"}],
        "limits": {"a": limit("auth.identity.admin && request.host.lowerAscii() == 'a'", "auth.identity.userid"), "b": limit("request.size > 1", "1 +")},
        "overrides": {"when": [{"predicate": "1"}], "limits": {"c": limit("auth.identity.admin", "auth")}},
    });
    assert_eq!(
        found("RateLimitPolicy", &spec),
        [
            "spec.when[0].predicate refused",
            "spec.limits.a.when[1].predicate unsupported",
            "spec.limits.b.counters[0].expression refused",
            "spec.overrides.when[0].predicate refused",
            "spec.overrides.limits.c.counters[0].expression unsupported",
        ]
    );
    assert_eq!(found("OtherPolicy", &spec), Vec::<String>::new());
    assert_eq!(
        found("RateLimitPolicy", &json!({"limits": {"a": 1}, "when": "x", "defaults": []})),
        Vec::<String>::new()
    );
}

#[test]
fn of_authentication() {
    let rule = |expression: &str| {
        json!({
            "when": [{"predicate": "auth.identity.admin"}, {"patternRef": "own"}],
            "http": {"urlExpression": expression, "headers": {"expression": {"expression": expression}}},
            "apiKey": {"selector": {"matchLabels": {"predicate": "no expression"}}},
            "plain": {"value": {"predicate": "no expression"}},
        })
    };
    let spec = json!({"defaults": {
        "patterns": {"own": {"allOf": [{"predicate": "'a'"}, {"selector": "a.b", "operator": "eq", "value": "c"}]}},
        "rules": {"authorization": {"a": rule("'http://' + request.host"), "b": rule("request.hst")}},
    }});
    assert_eq!(
        found("AuthPolicy", &spec),
        [
            "spec.defaults.patterns.own.allOf[0].predicate refused",
            "spec.defaults.rules.authorization.b.http.headers.expression.expression refused",
            "spec.defaults.rules.authorization.b.http.urlExpression refused",
        ]
    );
}

/// What is beyond the budget is refused once.
#[test]
fn many_expressions() {
    let limits = |count: usize, text: &str| {
        let limits = (0..count).map(|n| (format!("{n:04}"), json!({"when": [{"predicate": text}]})));
        json!({"limits": limits.collect::<serde_json::Map<_, _>>()})
    };
    assert_eq!(found("RateLimitPolicy", &limits(2_000, "true")), Vec::<String>::new());
    assert_eq!(
        found("RateLimitPolicy", &limits(2_100, "true")),
        ["spec.limits.2000.when[0].predicate unsupported"]
    );
    let long = format!("request.host == '{}'", "a".repeat(2_030));
    assert_eq!(
        found("RateLimitPolicy", &limits(70, &long)),
        ["spec.limits.0064.when[0].predicate unsupported"]
    );
}
