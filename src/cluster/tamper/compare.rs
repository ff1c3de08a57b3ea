//! Finds changes that make an object guard less than the installed one. Pure.
//!
//! Ignores defaults of the API server, texts, additional webhooks, validations and actions, and fields that
//! the running process maintains: the caBundle, and the namespaces that the binding of the freeze excludes.

use std::collections::BTreeSet;

use interlock_core::api::meta::install::FREEZE_BINDING;
use serde_json::{Map, Value};

use super::object::GuardKind;
use crate::cluster::binding;

/// The first field in which the found object guards less than the installed one.
pub(super) fn difference(kind: GuardKind, installed: &Value, found: &Value) -> Option<String> {
    match kind {
        GuardKind::Mutating | GuardKind::Validating => webhooks(installed, found),
        GuardKind::Policy => policy(&installed["spec"], &found["spec"]),
        GuardKind::Binding => bound(installed, found),
    }
}

fn webhooks(installed: &Value, found: &Value) -> Option<String> {
    items(installed, "webhooks").find_map(|wanted| {
        let name = wanted["name"].as_str().unwrap_or_default();
        let there = items(found, "webhooks").find(|webhook| webhook["name"] == wanted["name"]);
        let Some(there) = there else { return Some(format!("webhooks, which lacks {name}")) };
        let field = if calls_the_same(&wanted["clientConfig"], &there["clientConfig"]) {
            other_field(wanted, there, &["clientConfig"])?
        } else {
            "clientConfig".to_owned()
        };
        Some(format!("{field} of webhook {name}"))
    })
}

/// Whether both call the same webhook. A process without a configured URL compares only the path.
fn calls_the_same(wanted: &Value, there: &Value) -> bool {
    match (wanted["url"].as_str(), there["url"].as_str()) {
        (Some(wanted), Some(there)) => wanted == there,
        (None, Some(there)) => wanted["service"]["path"].as_str().is_some_and(|path| there.ends_with(path)),
        (_, None) => plain(&wanted["service"]) == plain(&there["service"]),
    }
}

fn policy(installed: &Value, found: &Value) -> Option<String> {
    let there: BTreeSet<&str> =
        items(found, "validations").filter_map(|validation| validation["expression"].as_str()).collect();
    let mut wanted = items(installed, "validations").filter_map(|v| v["expression"].as_str());
    if !wanted.all(|expression| there.contains(expression)) {
        return Some("validations".to_owned());
    }
    other_field(installed, found, &["validations", "auditAnnotations"])
}

fn bound(installed: &Value, found: &Value) -> Option<String> {
    let mut found = found.clone();
    if installed["metadata"]["name"] == FREEZE_BINDING {
        remove_excluded(&mut found);
    }
    let (wanted, there) = (&installed["spec"], &found["spec"]);
    let acts = |action| items(there, "validationActions").any(|other| other == action);
    if !items(wanted, "validationActions").all(acts) {
        return Some("validationActions".to_owned());
    }
    other_field(wanted, there, &["validationActions"])
}

/// Removes the namespaces that the process itself excludes.
fn remove_excluded(binding: &mut Value) {
    let selector = binding.pointer_mut("/spec/matchResources/namespaceSelector/matchExpressions");
    if let Some(expressions) = selector.and_then(Value::as_array_mut) {
        expressions.retain(|expression| {
            let requirement = serde_json::from_value(expression.clone());
            !requirement.is_ok_and(|requirement| binding::is_ours(&requirement))
        });
    }
}

fn items<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    object[field].as_array().into_iter().flatten()
}

/// The first field, except `but`, that differs in meaning.
fn other_field(wanted: &Value, there: &Value, but: &[&str]) -> Option<String> {
    let (wanted, there) = (fields(wanted), fields(there));
    let mut names: Vec<&String> = wanted.keys().chain(there.keys()).collect();
    names.sort_unstable();
    names.retain(|name| !but.contains(&name.as_str()));
    names.into_iter().find(|name| wanted.get(*name) != there.get(*name)).cloned()
}

fn fields(object: &Value) -> Map<String, Value> {
    match plain(object) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The value without empty fields and defaults, and sorted where order does not matter.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), plain(value)));
            let says = |name: &str, value: &Value| match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                // The default everywhere.
                Value::String(text) => name != "matchPolicy" || text != "Equivalent",
                Value::Bool(_) | Value::Number(_) => true,
            };
            Value::Object(fields.filter(|(name, value)| says(name, value)).collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(plain).collect();
            // A variable may refer to those before it.
            if items.iter().all(|item| item.get("expression").is_none()) {
                items.sort_by_cached_key(Value::to_string);
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn changed(mut object: Value, change: &Value) -> Value {
        json_patch::merge(&mut object, change);
        object
    }

    fn policy() -> Value {
        json!({
            "metadata": {"name": "p"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConditions": [{"name": "c", "expression": "a"}],
                "matchConstraints": {
                    "namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]},
                    "resourceRules": [{"apiGroups": ["g"], "resources": ["r"]}],
                },
                "variables": [{"name": "v", "expression": "1"}, {"name": "w", "expression": "2"}],
                "validations": [{"expression": "x", "message": "m"}, {"expression": "y"}],
            },
        })
    }

    #[rstest]
    #[case::same(json!({}), None)]
    #[case::filled_in(json!({"matchConstraints": {"matchPolicy": "Equivalent", "objectSelector": {}}}), None)]
    #[case::more(json!({"validations": [{"expression": "z"}, {"expression": "x"}, {"expression": "y"}]}), None)]
    #[case::texts(json!({"validations": [{"expression": "x", "message": "n"}, {"expression": "y"}]}), None)]
    #[case::in_another_order(json!({"matchConstraints": {"namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["b", "a"]}]}}}), None)]
    #[case::less(json!({"validations": [{"expression": "x"}]}), Some("validations"))]
    #[case::other(json!({"validations": [{"expression": "x"}, {"expression": "true"}]}), Some("validations"))]
    #[case::open(json!({"failurePolicy": "Ignore"}), Some("failurePolicy"))]
    #[case::exempt(json!({"matchConditions": [{"name": "c", "expression": "false"}]}), Some("matchConditions"))]
    #[case::elsewhere(json!({"matchConstraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}), Some("matchConstraints"))]
    #[case::excluded(json!({"matchConstraints": {"excludeResourceRules": [{"resources": ["r"]}]}}), Some("matchConstraints"))]
    #[case::exactly(json!({"matchConstraints": {"matchPolicy": "Exact"}}), Some("matchConstraints"))]
    #[case::parameters(json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}), Some("paramKind"))]
    #[case::variable(json!({"variables": [{"name": "v", "expression": "2"}]}), Some("variables"))]
    #[case::variables_in_another_order(json!({"variables": [{"name": "w", "expression": "2"}, {"name": "v", "expression": "1"}]}), Some("variables"))]
    fn a_weaker_policy_is_named_by_its_field(#[case] change: Value, #[case] field: Option<&str>) {
        let found = changed(policy(), &json!({"spec": change}));
        assert_eq!(difference(GuardKind::Policy, &policy(), &found).as_deref(), field);
    }

    fn binding(name: &str) -> Value {
        json!({"metadata": {"name": name}, "spec": {"policyName": "p", "validationActions": ["Deny"]}})
    }

    fn excluding(operator: &str) -> Value {
        let requirement = match operator {
            "NotIn" => json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["dev"]}),
            operator => json!({"key": "kubernetes.io/metadata.name", "operator": operator}),
        };
        json!({"matchResources": {"matchPolicy": "Equivalent", "objectSelector": {}, "namespaceSelector": {"matchExpressions": [requirement]}}})
    }

    #[rstest]
    #[case::same("p", json!({}), None)]
    #[case::filled_in("p", json!({"matchResources": {"matchPolicy": "Equivalent", "namespaceSelector": {}}}), None)]
    #[case::acts_more("p", json!({"validationActions": ["Audit", "Deny"]}), None)]
    #[case::warns("p", json!({"validationActions": ["Warn"]}), Some("validationActions"))]
    #[case::of_another("p", json!({"policyName": "q"}), Some("policyName"))]
    #[case::parameters("p", json!({"paramRef": {"name": "a"}}), Some("paramRef"))]
    #[case::bound_elsewhere("p", json!({"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}), Some("matchResources"))]
    #[case::leaves_out("p", excluding("NotIn"), Some("matchResources"))]
    #[case::the_freeze_leaves_out(FREEZE_BINDING, excluding("NotIn"), None)]
    #[case::the_freeze_leaves_out_all(FREEZE_BINDING, excluding("DoesNotExist"), None)]
    #[case::the_freeze_elsewhere(FREEZE_BINDING, excluding("Exists"), Some("matchResources"))]
    #[case::the_freeze_warns(FREEZE_BINDING, json!({"validationActions": ["Warn"]}), Some("validationActions"))]
    fn a_weaker_binding_is_named_by_its_field(
        #[case] name: &str,
        #[case] change: Value,
        #[case] field: Option<&str>,
    ) {
        let found = changed(binding(name), &json!({"spec": change}));
        assert_eq!(difference(GuardKind::Binding, &binding(name), &found).as_deref(), field);
    }

    fn webhook(name: &str) -> Value {
        json!({
            "name": name,
            "admissionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/validate", "port": 443}},
            "failurePolicy": "Fail",
            "matchConditions": [{"name": "c", "expression": "a"}],
            "matchPolicy": "Equivalent",
            "rules": [{
                "apiGroups": ["g"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["r"],
                "scope": "Namespaced",
            }],
            "sideEffects": "None",
            "timeoutSeconds": 5,
        })
    }

    fn configuration(webhooks: &[Value]) -> Value {
        json!({"metadata": {"name": "interlock"}, "webhooks": webhooks})
    }

    fn rules(change: &Value) -> Value {
        json!({"rules": [changed(webhook("a")["rules"][0].clone(), change)]})
    }

    #[rstest]
    #[case::same(json!({}), None)]
    #[case::filled_in(json!({"namespaceSelector": {}, "objectSelector": {}}), None)]
    #[case::the_ca(json!({"clientConfig": {"caBundle": "cGVt"}}), None)]
    #[case::in_another_order(rules(&json!({"operations": ["UPDATE", "CREATE"]})), None)]
    #[case::fewer_operations(rules(&json!({"operations": ["CREATE"]})), Some("rules"))]
    #[case::other_resources(rules(&json!({"resources": ["q"]})), Some("rules"))]
    #[case::no_rules(json!({"rules": null}), Some("rules"))]
    #[case::open(json!({"failurePolicy": "Ignore"}), Some("failurePolicy"))]
    #[case::exempt(json!({"matchConditions": [{"name": "c", "expression": "false"}]}), Some("matchConditions"))]
    #[case::one_more_condition(json!({"matchConditions": [{"name": "c", "expression": "a"}, {"name": "d", "expression": "b"}]}), Some("matchConditions"))]
    #[case::namespaces(json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}), Some("namespaceSelector"))]
    #[case::objects(json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}), Some("objectSelector"))]
    #[case::exactly(json!({"matchPolicy": "Exact"}), Some("matchPolicy"))]
    #[case::impatient(json!({"timeoutSeconds": 1}), Some("timeoutSeconds"))]
    #[case::side_effects(json!({"sideEffects": "NoneOnDryRun"}), Some("sideEffects"))]
    #[case::called_once(json!({"reinvocationPolicy": "Never"}), Some("reinvocationPolicy"))]
    #[case::another_service(json!({"clientConfig": {"service": {"name": "t"}}}), Some("clientConfig"))]
    #[case::another_door(json!({"clientConfig": {"service": {"path": "/"}}}), Some("clientConfig"))]
    #[case::by_url(json!({"clientConfig": {"service": null, "url": "https://h:1/validate"}}), None)]
    #[case::by_url_at_another_door(json!({"clientConfig": {"service": null, "url": "https://h:1/"}}), Some("clientConfig"))]
    fn a_weaker_webhook_configuration_is_named_by_its_field(
        #[case] change: Value,
        #[case] field: Option<&str>,
    ) {
        let installed = configuration(&[webhook("a"), webhook("b")]);
        let found = configuration(&[webhook("c"), changed(webhook("b"), &change), webhook("a")]);
        let field = field.map(|field| format!("{field} of webhook b"));
        assert_eq!(difference(GuardKind::Validating, &installed, &found), field);
    }

    #[test]
    fn a_webhook_that_is_missing_is_named() {
        let installed = configuration(&[webhook("a"), webhook("b")]);
        let lacks = |found: &Value| difference(GuardKind::Mutating, &installed, found);
        assert_eq!(lacks(&configuration(&[webhook("a")])).as_deref(), Some("webhooks, which lacks b"));
        assert_eq!(lacks(&json!({})).as_deref(), Some("webhooks, which lacks a"));
    }

    /// A process outside the cluster knows its own URL.
    #[rstest]
    #[case::same("https://h:1/validate", None)]
    #[case::elsewhere("https://h:2/validate", Some("clientConfig of webhook a"))]
    fn a_changed_url_is_named(#[case] url: &str, #[case] field: Option<&str>) {
        let by = |url: &str| {
            configuration(&[changed(webhook("a"), &json!({"clientConfig": {"service": null, "url": url}}))])
        };
        let found = by(url);
        assert_eq!(difference(GuardKind::Mutating, &by("https://h:1/validate"), &found).as_deref(), field);
        let service = configuration(&[webhook("a")]);
        let difference = difference(GuardKind::Mutating, &by("https://h:1/validate"), &service);
        assert_eq!(difference.as_deref(), Some("clientConfig of webhook a"));
    }
}
