//! Tables over small schemas; `tests/e2e/check` compares real ones with the API server.

use std::sync::Arc;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A definition whose spec has this schema.
fn definition(spec: Value) -> Definition {
    Definition::read(&json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Cluster",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": spec,
                    "status": {"type": "object", "properties": {"count": {"type": "integer"}}},
                }}},
            }],
        },
    }))
    .unwrap()
}

fn thing(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

/// Decodes and validates, as a creation or as an update.
fn asked(schema: Value, spec: Value, old: Option<Value>) -> (Value, Validation) {
    let definition = definition(schema);
    let mut object = thing(spec);
    let version = definition.version_of(&object).unwrap();
    let decoded = version.decode(&mut object);
    if !decoded.is_valid() {
        return (object, decoded);
    }
    let old = old.map(|old| version.stored(thing(old)));
    let object = version.written(object, old.as_ref());
    let found = version.validate(&definition, &object, old.as_ref());
    (object, found)
}

/// `FIELD KIND` of each violation.
fn violations(found: &Validation) -> Vec<String> {
    found.errors.iter().map(|error| format!("{} {}", error.path, error.kind.id())).collect()
}

#[rstest]
#[case::type_(json!({"type": "integer"}), json!("a"), &["spec type"])]
#[case::integral(json!({"type": "integer"}), json!(3.0), &[])]
#[case::fraction(json!({"type": "integer"}), json!(3.5), &["spec type"])]
#[case::number(json!({"type": "number"}), json!(3), &[])]
#[case::int_or_string(json!({"x-kubernetes-int-or-string": true}), json!(true), &["spec type"])]
#[case::either(json!({"x-kubernetes-int-or-string": true}), json!("50%"), &[])]
#[case::enumeration(json!({"type": "string", "enum": ["a", "b"]}), json!("c"), &["spec enum"])]
#[case::pattern(json!({"type": "string", "pattern": "^\\d+$"}), json!("\u{663}"), &["spec invalid"])]
#[case::characters(json!({"type": "string", "maxLength": 1}), json!("\u{e9}"), &[])]
#[case::length(json!({"type": "string", "maxLength": 1}), json!("ab"), &["spec length"])]
#[case::short(json!({"type": "string", "minLength": 1}), json!(""), &["spec invalid"])]
#[case::minimum(json!({"type": "integer", "minimum": 3}), json!(2), &["spec invalid"])]
#[case::exclusive(json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}), json!(3), &["spec invalid"])]
#[case::maximum(json!({"type": "integer", "maximum": 3}), json!(4), &["spec invalid"])]
#[case::multiple(json!({"type": "integer", "multipleOf": 5}), json!(7), &["spec invalid"])]
#[case::items(json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}), json!([1, "a"]), &["spec length", "spec[0] type"])]
#[case::required(json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}), json!({}), &["spec.a required"])]
#[case::properties(json!({"type": "object", "maxProperties": 0, "additionalProperties": {"type": "string"}}), json!({"a": 1}), &["spec length", "spec.a type"])]
#[case::date_time(json!({"type": "string", "format": "date-time"}), json!("2026-02-30T00:00:00Z"), &["spec invalid"])]
#[case::unknown_format(json!({"type": "string", "format": "color"}), json!("red"), &[])]
#[case::set(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}), json!(["a", "b", "a"]), &["spec[2] duplicate"])]
#[case::map(
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}}),
    json!([{"k": "a", "v": 1}, {"k": "a", "v": 2}]),
    &["spec[1] duplicate"]
)]
#[case::all_of(json!({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 3}]}), json!(4), &["spec invalid"])]
#[case::any_of(json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 3}]}), json!(4), &["spec invalid", "spec invalid"])]
#[case::one_of_two(json!({"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 3}]}), json!(2), &["spec invalid"])]
#[case::one_of_one(json!({"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 3}]}), json!(4), &[])]
#[case::not(json!({"type": "integer", "not": {"minimum": 3}}), json!(4), &["spec invalid"])]
#[case::nullable(json!({"type": "object", "nullable": true}), json!(null), &[])]
#[case::null_is_dropped(json!({"type": "object"}), json!(null), &[])]
#[case::embedded(json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}), json!({"kind": "A", "metadata": {}}), &["spec.apiVersion required"])]
#[case::unknown(json!({"type": "object", "properties": {"a": {"type": "object"}}}), json!({"a": {"b": 1}, "c": 2}), &["spec.a.b unknown-field", "spec.c unknown-field"])]
#[case::preserved(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object"}}}), json!({"a": {"b": 1}, "c": {"d": 1}}), &["spec.a.b unknown-field"])]
fn the_structural_schema(#[case] schema: Value, #[case] spec: Value, #[case] expected: &[&str]) {
    let (_, found) = asked(schema, spec, None);
    assert_eq!(violations(&found), expected, "{:?}", found.errors);
    assert_eq!(found.unevaluated, []);
}

#[test]
fn defaults_are_set_before_rules_are_asked() {
    let schema = json!({"type": "object", "properties": {
        "kind": {"type": "string", "default": "a"},
        "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
    }, "x-kubernetes-validations": [{"rule": "self.kind == 'a' && self.list[0].n == 1"}]});
    let (object, found) = asked(schema, json!({"kind": null, "list": [{}]}), None);
    assert_eq!(object["spec"], json!({"kind": "a", "list": [{"n": 1}]}));
    assert!(found.is_valid(), "{:?}", found.errors);
}

/// A schema with these rules about an object of every type of field.
fn ruled(rules: Value) -> Value {
    json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "s": {"type": "string"},
        "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"},
        "namespace": {"type": "string"},
        "a-b": {"type": "string"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
            {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
             "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "v falls"}]}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    }})
}

#[rstest]
#[case::comparison("self.n > 1", true)]
#[case::float("self.f == 2.0", true)]
#[case::characters("self.s.size() == 2", true)]
#[case::raw_text("self.s.matches(r\"\"\"^\\S+$\"\"\")", true)]
#[case::has("has(self.n) && !has(self.l)", true)]
#[case::escaped("self.__namespace__ == 'x' && self.a__dash__b == 'y'", true)]
#[case::map_keys("self.m.all(k, k.startsWith('a')) && self.m['a-b'] == 'z'", true)]
#[case::membership("self.s in ['a', 'é!']", true)]
#[case::time("self.t > timestamp('2020-01-01T00:00:00Z') && self.d == duration('90m')", true)]
#[case::quantity("quantity('1Gi').isGreaterThan(quantity('500Mi'))", true)]
#[case::ip(
    "isIP('10.0.0.1') && ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3')",
    true
)]
#[case::url(
    "isURL('https://a.example:80/x') && url('https://a.example:80/x').getHostname() == 'a.example'",
    true
)]
#[case::lists("[1, 2, 3].sum() == 6 && [3, 1].isSorted() == false && [1, 2].indexOf(2) == 1", true)]
#[case::strings("'A-b'.lowerAscii().split('-') == ['a', 'b'] && 'abc'.substring(1) == 'bc'", true)]
#[case::regex("'a1b2'.findAll('[0-9]') == ['1', '2']", true)]
#[case::format("!format.dns1123Label().validate('a-b').hasValue()", true)]
#[case::optional("self.?x.orValue('none') == 'none'", true)]
#[case::ternary("self.n == 2 ? self.s == 'no' : true", false)]
#[case::exists_one("[1, 2, 2].exists_one(x, x == 2)", false)]
fn expressions(#[case] rule: &str, #[case] holds: bool) {
    let spec = json!({"n": 2, "f": 2, "s": "\u{e9}!", "t": "2026-01-01T00:00:00Z", "d": "1h30m", "namespace": "x",
        "a-b": "y", "m": {"a-b": "z"}});
    let (_, found) = asked(ruled(json!([{"rule": rule}])), spec, None);
    assert_eq!(found.unevaluated, []);
    assert_eq!(found.is_valid(), holds, "{:?}", found.errors);
}

#[rstest]
#[case::message(json!({"rule": "false", "message": " as it is "}), "spec rule: as it is")]
#[case::made(json!({"rule": "false", "message": "no", "messageExpression": "'n is %d'.format([self.n])"}), "spec rule: n is 2")]
#[case::made_of_what_is_not_there(json!({"rule": "false", "message": "no", "messageExpression": "self.s"}), "spec rule: no")]
#[case::neither(json!({"rule": "1 ==\n 2"}), "spec rule: violates the rule 1 == 2")]
#[case::field(json!({"rule": "false", "message": "no", "fieldPath": ".m['a-b']"}), "spec.m[a-b] rule: no")]
#[case::reason(json!({"rule": "false", "message": "no", "reason": "FieldValueForbidden"}), "spec forbidden: no")]
#[case::fails(json!({"rule": "self.m['x'] == 'a'"}), "spec rule: the rule self.m['x'] == 'a' fails, as there is no key")]
fn messages(#[case] rule: Value, #[case] expected: &str) {
    let (_, found) = asked(ruled(json!([rule])), json!({"n": 2, "m": {}}), None);
    let error = &found.errors[0];
    let text = format!("{} {}: {}", error.path, error.kind.id(), error.message);
    assert!(text.starts_with(expected), "{text}");
}

#[rstest]
#[case::not_on_creation(json!({"rule": "self.n >= oldSelf.n"}), json!({"n": 1}), None, &[])]
#[case::on_update(json!({"rule": "self.n >= oldSelf.n"}), json!({"n": 1}), Some(json!({"n": 2})), &["spec rule"])]
#[case::also_where_nothing_changed(json!({"rule": "self.n > oldSelf.n"}), json!({"n": 2}), Some(json!({"n": 2})), &["spec rule"])]
#[case::optional(json!({"rule": "oldSelf.hasValue()", "optionalOldSelf": true}), json!({"n": 1}), None, &["spec rule"])]
#[case::optional_of_an_update(json!({"rule": "oldSelf.value().n == 1", "optionalOldSelf": true}), json!({"n": 2}), Some(json!({"n": 1})), &[])]
#[case::by_the_key_of_an_item(json!({"rule": "true"}), json!({"l": [{"k": "b", "v": 9}, {"k": "a", "v": 1}]}), Some(json!({"l": [{"k": "a", "v": 2}]})), &["spec.l[1] rule"])]
#[case::a_set_in_another_order_is_equal(json!({"rule": "self == oldSelf"}), json!({"set": ["a", "b"]}), Some(json!({"set": ["b", "a"]})), &[])]
#[case::what_did_not_change_is_kept(json!({"rule": "self.n > 5"}), json!({"n": 1}), Some(json!({"n": 1})), &[])]
#[case::what_changed_is_asked(json!({"rule": "self.n > 5"}), json!({"n": 1, "s": "x"}), Some(json!({"n": 1})), &["spec rule"])]
fn transitions(
    #[case] rule: Value,
    #[case] spec: Value,
    #[case] old: Option<Value>,
    #[case] expected: &[&str],
) {
    let (_, found) = asked(ruled(json!([rule])), spec, old);
    assert_eq!(violations(&found), expected, "{:?}", found.errors);
    assert_eq!(found.unevaluated, []);
}

/// An update keeps what violates the schema already, and did not change.
#[test]
fn an_update_is_ratcheted() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "maxLength": 1}}});
    let (_, found) = asked(schema, json!({"a": "long", "b": "long"}), Some(json!({"a": "long"})));
    assert_eq!(violations(&found), ["spec.b length"]);
}

#[rstest]
#[case::macros("cel.bind(x, self.n, x > 0)", "")]
#[case::syntax("self.n ===", "syntax")]
#[case::brackets(&format!("{}1{}", "(".repeat(60), ")".repeat(60)), "brackets")]
#[case::conditionals(&"true ? true : ".repeat(100), "conditional operators")]
#[case::bytes(&format!("self.s != '{}'", "a".repeat(20_000)), "bytes")]
#[case::steps("self.m.all(a, self.m.all(b, self.m.all(c, self.m.all(d, a != b || c != d))))", "budget")]
#[case::texts("self.s.replace('', self.s).replace('', self.s) != ''", "budget")]
#[case::ranges("lists.range(1000000000).size() > 0", "budget")]
fn what_is_not_evaluated_is_named(#[case] rule: &str, #[case] reason: &str) {
    let many: serde_json::Map<String, Value> = (0..100).map(|i| (format!("k{i}"), json!("v"))).collect();
    let (_, found) =
        asked(ruled(json!([{"rule": rule}])), json!({"n": 2, "s": "x".repeat(2000), "m": many}), None);
    assert_eq!(found.unevaluated.len(), 1, "{:?}", found.errors);
    assert!(found.unevaluated[0].reason.contains(reason), "{}", found.unevaluated[0]);
    assert!(found.is_valid(), "{:?}", found.errors);
}

/// A wide range whose case is ignored takes the parser milliseconds.
#[rstest]
#[case::few("(?i)^[\\x{80}-\\x{10ffff}]+$", 0)]
#[case::many(&"(?i)[k-\\x{10ffff}]".repeat(20), 1)]
#[case::of_one_case(&"[k-\\x{10ffff}]?".repeat(20), 0)]
fn patterns_fold_a_bounded_number_of_ranges(#[case] pattern: &str, #[case] unevaluated: usize) {
    let (_, found) = asked(json!({"type": "string", "pattern": pattern}), json!("\u{e9}"), None);
    assert_eq!(found.unevaluated.len(), unevaluated, "{:?}", found.unevaluated);
    assert!(found.unevaluated.iter().all(|own| own.reason.contains("wide ranges")));
}

#[test]
fn equal_patterns_are_compiled_once() {
    let text = json!({"type": "string", "pattern": "^a$"});
    let definition = definition(json!({"type": "object", "properties": {
        "one": text, "two": {"type": "array", "items": text}, "three": {"type": "object", "additionalProperties": text},
    }}));
    let spec = &definition.versions[0].schema.properties["spec"];
    let two = spec.properties["two"].items.as_ref().unwrap();
    let compiled = [&spec.properties["one"], two, spec.properties["three"].values().unwrap()];
    assert!(
        compiled.windows(2).all(|pair| Arc::ptr_eq(&pair[0].compiled_pattern, &pair[1].compiled_pattern))
    );
}

/// Rules are not asked about what violates the rest of the schema; that is said.
#[test]
fn rules_wait_for_the_rest() {
    let (_, found) = asked(ruled(json!([{"rule": "self.n > 1"}])), json!({"n": "x"}), None);
    assert_eq!(violations(&found), ["spec.n type"]);
    assert_eq!(found.unevaluated[0].rule, "x-kubernetes-validations");
}

#[rstest]
#[case::name(json!({"name": "A"}), &["metadata.name invalid"])]
#[case::generated(json!({"name": null, "generateName": "a-"}), &[])]
#[case::none(json!({"name": null}), &["metadata.name required"])]
#[case::namespace(json!({"namespace": "a"}), &["metadata.namespace forbidden"])]
#[case::label(json!({"labels": {"a": "b c"}}), &["metadata.labels invalid"])]
#[case::owner(json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a"}]}), &["metadata.ownerReferences[0].uid invalid"])]
#[case::text(json!({"labels": {"a": 1}}), &["metadata.labels.a undecodable"])]
#[case::unknown(json!({"label": {}}), &["metadata.label unknown-field"])]
fn metadata_is_validated(#[case] changes: Value, #[case] expected: &[&str]) {
    let definition = definition(json!({"type": "object"}));
    let mut object = thing(json!({}));
    for (key, value) in changes.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    let version = definition.version_of(&object).unwrap();
    let decoded = version.decode(&mut object);
    let found = if decoded.is_valid() { version.validate(&definition, &object, None) } else { decoded };
    assert_eq!(violations(&found), expected, "{:?}", found.errors);
}

/// The status is written by requests of its own.
#[test]
fn the_status_is_not_asked() {
    let definition = definition(json!({"type": "object"}));
    let mut object = thing(json!({}));
    object["status"] = json!({"count": "x"});
    let version = definition.version_of(&object).unwrap();
    assert!(version.decode(&mut object).is_valid());
    let written = version.written(object.clone(), None);
    assert!(written.get("status").is_none());
    assert!(version.validate(&definition, &written, None).is_valid());
    let mut old = object.clone();
    old["status"] = json!({"count": 3});
    assert_eq!(version.written(object, Some(&old))["status"]["count"], 3);
}

#[rstest]
#[case("date-time", "2026-11-25T10:00:00Z", true)]
#[case("date-time", "2026-11-25t10:00:00.5+02:00", true)]
#[case("date-time", "2026-11-25", false)]
#[case("date-time", "2026-11-25T24:00:00Z", false)]
#[case("date-time", "2026-11-25T10:00:00.Z", false)]
#[case("duration", "1h30m", true)]
#[case("duration", "-1.5h", true)]
#[case("duration", "2 weeks", true)]
#[case("duration", "soon", false)]
#[case("duration", "1", false)]
#[case("cidr", "10.0.0.0/33", false)]
#[case("cidr", "fd00::/8", true)]
#[case("ipv4", "10.0.0.256", false)]
#[case("ipv6", "::1", true)]
#[case("byte", "YWJj", true)]
#[case("byte", "YWJ", false)]
#[case("uuid", "not", false)]
#[case("uuid4", "8c6f1a5e-0f5e-4b0e-9d6a-1a2b3c4d5e6f", true)]
#[case("uri", "a b", false)]
#[case("hostname", "a.example.com", true)]
#[case("mac", "00:1b:44:11:3a:b7", true)]
#[case("date", "2026-13-01", false)]
fn formats_are_asked(#[case] format: &str, #[case] text: &str, #[case] expected: bool) {
    assert_eq!(formats::is(format, text), Some(expected));
}
