//! CustomResourceDefinitions, and the schemas in them.

use rstest::rstest;
use serde_json::{Value, json};

use super::super::structural;
use super::spec;

const VERSION: &str = "apiextensions.k8s.io/v1beta1";
const KIND: &str = "CustomResourceDefinition";

fn definition(more: Value) -> Value {
    let mut spec = json!({"group": "a.io", "names": {"kind": "Thing", "plural": "things"}});
    json_patch::merge(&mut spec, &more);
    spec
}

#[test]
fn what_was_said_once_is_said_of_each_version() {
    let columns = json!([{"name": "Age", "type": "date", "JSONPath": ".metadata.creationTimestamp"}]);
    let before = definition(json!({
        "version": "v1",
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": false, "storage": false,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        "validation": {"openAPIV3Schema": {"properties": {"spec": {"type": "string"}}}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "preserveUnknownFields": false,
        "conversion": {"strategy": "Webhook", "webhookClientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]},
    }));
    let found = spec(VERSION, KIND, before);
    let column = json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
    assert_eq!(
        found,
        definition(json!({
            "scope": "Cluster",
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "additionalPrinterColumns": column,
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "string"}}}}},
                {"name": "v2", "served": false, "storage": false, "subresources": {"status": {}}, "additionalPrinterColumns": column,
                 "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}},
            ],
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1"]}},
        }))
    );
}

#[test]
fn one_version_without_a_schema_admits_everything() {
    let found = spec(VERSION, KIND, definition(json!({"version": "v1"})));
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let versions =
        json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": open}}]);
    assert_eq!(found, definition(json!({"scope": "Namespaced", "versions": versions})));
}

fn open(mut schema: Value) -> Value {
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    schema
}

/// A schema below a property, and what is left of it.
#[rstest]
#[case::typed(json!({"type": "string", "pattern": "^a"}), json!({"type": "string", "pattern": "^a"}))]
#[case::by_its_properties(json!({"properties": {"a": {"minimum": 1}}}), json!({"type": "object", "properties": {"a": {"type": "number", "minimum": 1}}}))]
#[case::by_its_items(json!({"items": {"pattern": "x"}}), json!({"type": "array", "items": {"type": "string", "pattern": "x"}}))]
#[case::by_its_values(json!({"enum": ["a", "b"]}), json!({"type": "string", "enum": ["a", "b"]}))]
#[case::by_its_numbers(json!({"enum": [1, 2]}), json!({"type": "integer", "enum": [1, 2]}))]
#[case::anything(json!({"description": "any"}), open(json!({"description": "any"})))]
#[case::no_such_type(json!({"type": "any"}), open(json!({})))]
#[case::a_list_of_anything(json!({"type": "array"}), json!({"type": "array", "items": open(json!({}))}))]
#[case::a_tuple(json!({"type": "array", "items": [{"type": "string"}]}), json!({"type": "array", "items": open(json!({}))}))]
#[case::a_map(json!({"additionalProperties": {"type": "string"}}), json!({"type": "object", "additionalProperties": {"type": "string"}}))]
#[case::names_and_others(
    json!({"properties": {"a": {"type": "string"}}, "additionalProperties": true}),
    open(json!({"type": "object", "properties": {"a": {"type": "string"}}}))
)]
#[case::names_only(
    json!({"properties": {"a": {"type": "string"}}, "additionalProperties": false}),
    json!({"type": "object", "properties": {"a": {"type": "string"}}})
)]
#[case::int_or_string(json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}), json!({"x-kubernetes-int-or-string": true}))]
#[case::int_or_string_by_format(json!({"type": "string", "format": "int-or-string"}), json!({"x-kubernetes-int-or-string": true}))]
#[case::a_reference(json!({"$ref": "#/definitions/x", "description": "y"}), open(json!({})))]
#[case::forbidden(
    json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "id": "x"}),
    json!({"type": "array", "items": {"type": "string"}})
)]
#[case::a_choice_of_required(
    json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})
)]
#[case::a_choice_of_types(json!({"oneOf": [{"type": "string"}, {"type": "boolean"}]}), open(json!({})))]
#[case::a_choice_of_what_is_not_described(
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"b": {"pattern": "x"}}}]}),
    json!({"type": "object", "properties": {"a": {"type": "string"}}})
)]
#[case::a_choice_of_what_is(
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"a": {"pattern": "x"}}}]}),
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"a": {"pattern": "x"}}}]})
)]
fn a_schema_gets_structural(#[case] before: Value, #[case] after: Value) {
    let found = structural::root(json!({"properties": {"x": before}}), false);
    assert_eq!(found, json!({"type": "object", "properties": {"x": after}}));
}

#[test]
fn unknown_fields_are_kept_on_every_level() {
    let before = json!({"properties": {
        "a": {"type": "object", "properties": {"b": {"type": "object"}}},
        "m": {"type": "object", "additionalProperties": {"type": "object"}},
    }});
    let object = || open(json!({"type": "object"}));
    let mut a = object();
    a["properties"] = json!({"b": object()});
    let properties = json!({"a": a, "m": {"type": "object", "additionalProperties": object()}});
    let mut after = object();
    after["properties"] = properties;
    assert_eq!(structural::root(before, true), after);
}

#[test]
fn the_metadata_is_not_restricted() {
    let before = json!({"nullable": true, "properties": {
        "metadata": {"properties": {"labels": {"required": ["a"]}}}, "kind": {"enum": ["Thing"]},
    }});
    let after =
        json!({"type": "object", "properties": {"metadata": {"type": "object"}, "kind": {"type": "string"}}});
    assert_eq!(structural::root(before, false), after);
}
