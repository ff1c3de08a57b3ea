//! Makes a schema structural, as `apiextensions.k8s.io/v1` requires
//! (<https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema>).
//!
//! What v1 cannot express is left out, so the result admits whatever the old schema admitted.

use serde_json::{Map, Value, json};

type Schema = Map<String, Value>;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Fields that v1 forbids.
const FORBIDDEN: [&str; 8] = [
    "$ref",
    "$schema",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
    "uniqueItems",
];

/// Combinations of further schemas.
const JUNCTORS: [&str; 4] = ["allOf", "anyOf", "not", "oneOf"];

/// Fields that a schema in a combination must not have (`ValidateStructural`, apiextensions-apiserver).
const NOT_IN_JUNCTORS: [&str; 8] =
    ["additionalProperties", "default", "description", "nullable", "title", "type", PRESERVE, INT_OR_STRING];

/// Hints that a schema without a type is of this one.
const HINTS: [(&str, &[&str]); 4] = [
    ("object", &["properties", "additionalProperties", "required", "minProperties", "maxProperties"]),
    ("array", &["items", "minItems", "maxItems"]),
    ("string", &["pattern", "minLength", "maxLength"]),
    ("number", &["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]),
];

/// The schema of a whole object. With `preserves` it keeps fields that it does not name, on every level.
pub(super) fn root(mut schema: Value, preserves: bool) -> Value {
    let Some(fields) = schema.as_object_mut() else { return json!({"type": "object", PRESERVE: true}) };
    fields.insert("type".to_owned(), "object".into());
    fields.remove("nullable");
    node(fields, preserves);
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        // Of the metadata, only the name may be restricted.
        for (name, type_) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            if let Some(property) = properties.get_mut(name) {
                *property = json!({"type": type_});
            }
        }
    }
    schema
}

fn node(schema: &mut Schema, preserves: bool) {
    let refers = schema.contains_key("$ref");
    FORBIDDEN.iter().for_each(|name| _ = schema.remove(*name));
    if refers {
        schema.clear();
    }
    if is_int_or_string(schema) {
        JUNCTORS.iter().for_each(|junctor| _ = schema.remove(*junctor));
        schema.remove("type");
        schema.remove("format");
        schema.insert(INT_OR_STRING.to_owned(), true.into());
        return;
    }
    give_type(schema);
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => object(schema, preserves),
        Some("array") => array(schema, preserves),
        Some(_) => {}
        None => {
            schema.insert(PRESERVE.to_owned(), true.into());
        }
    }
    for junctor in JUNCTORS {
        let fits = schema.get(junctor).is_none_or(|junction| junction_fits(junction, schema));
        if !fits {
            schema.remove(junctor);
        }
    }
}

/// Whether it admits integers and strings, in the forms that were written before there was an extension for it.
fn is_int_or_string(schema: &Schema) -> bool {
    let types = |junctor: &str| -> Vec<&str> {
        let items = schema.get(junctor).and_then(Value::as_array).into_iter().flatten();
        let mut types: Vec<&str> = items.filter_map(|item| item["type"].as_str()).collect();
        types.sort_unstable();
        types
    };
    schema.get(INT_OR_STRING) == Some(&Value::Bool(true))
        || schema.get("format").is_some_and(|format| format == "int-or-string")
        || ["anyOf", "oneOf"].iter().any(|junctor| types(junctor) == ["integer", "string"])
}

fn give_type(schema: &mut Schema) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if schema.get("type").and_then(Value::as_str).is_some_and(|type_| TYPES.contains(&type_)) {
        return;
    }
    schema.remove("type");
    let hinted = HINTS.iter().find(|(_, hints)| hints.iter().any(|hint| schema.contains_key(*hint)));
    let type_ = hinted.map(|(type_, _)| *type_).or_else(|| type_of_enum(schema));
    if let Some(type_) = type_ {
        schema.insert("type".to_owned(), type_.into());
    }
}

fn type_of_enum(schema: &Schema) -> Option<&'static str> {
    let values = schema.get("enum")?.as_array().filter(|values| !values.is_empty())?;
    let all = |is: fn(&Value) -> bool| values.iter().all(is);
    [
        ("string", Value::is_string as fn(&Value) -> bool),
        ("boolean", Value::is_boolean),
        ("integer", |value| value.is_i64() || value.is_u64()),
    ]
    .into_iter()
    .find_map(|(type_, is)| all(is).then_some(type_))
}

fn object(schema: &mut Schema, preserves: bool) {
    let named = schema.get_mut("properties").and_then(Value::as_object_mut);
    let has_properties = named.as_ref().is_some_and(|named| !named.is_empty());
    let properties = named.into_iter().flat_map(|named| named.values_mut());
    properties.filter_map(Value::as_object_mut).for_each(|property| node(property, preserves));
    match schema.get_mut("additionalProperties") {
        // Names and further ones cannot both be described.
        Some(more) if has_properties || !more.is_object() => {
            let open = *more != Value::Bool(false);
            schema.remove("additionalProperties");
            if open {
                schema.insert(PRESERVE.to_owned(), true.into());
            }
        }
        Some(more) => more.as_object_mut().into_iter().for_each(|more| node(more, preserves)),
        None => {}
    }
    if preserves && !schema.contains_key("additionalProperties") {
        schema.insert(PRESERVE.to_owned(), true.into());
    }
}

fn array(schema: &mut Schema, preserves: bool) {
    // A list of schemas, one an item, is forbidden.
    if !schema.get("items").is_some_and(Value::is_object) {
        schema.insert("items".to_owned(), json!({}));
    }
    if let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) {
        node(items, preserves);
    }
}

/// Whether v1 takes a combination beside this schema: it only restricts what the schema describes.
fn junction_fits(junction: &Value, outside: &Schema) -> bool {
    match junction {
        Value::Array(all) => all.iter().all(|one| junction_fits(one, outside)),
        Value::Object(one) => restricts(one, outside),
        _ => false,
    }
}

fn restricts(one: &Schema, outside: &Schema) -> bool {
    let allowed = |name: &str| !NOT_IN_JUNCTORS.contains(&name) && !FORBIDDEN.contains(&name);
    if !one.keys().all(|name| allowed(name)) {
        return false;
    }
    let inside = |name: &str| outside.get(name).and_then(Value::as_object);
    let described = |(name, property): (&String, &Value)| {
        let described = inside("properties").and_then(|properties| properties.get(name)?.as_object());
        described.is_some_and(|described| junction_fits(property, described))
    };
    let properties = one.get("properties").and_then(Value::as_object);
    let items = one.get("items");
    properties.is_none_or(|properties| properties.iter().all(described))
        && items.is_none_or(|items| inside("items").is_some_and(|outside| junction_fits(items, outside)))
        && JUNCTORS.iter().filter_map(|name| one.get(*name)).all(|inner| junction_fits(inner, outside))
}
