//! The keywords of a structural schema, as `k8s.io/kube-openapi` asks them.

use serde_json::{Map, Number, Value};

use crate::correlation::{Correlated, OldItems};
use crate::field_error::{ErrorKind, FieldErrors, Path};
use crate::formats;
use crate::patterns::CompiledPattern;
use crate::schema::StructuralSchema;

/// Characters of a value in a message.
const SHOWN: usize = 64;

/// Collects the violations of a schema by a value and the values in it. What is as it was is not asked.
pub(crate) fn check(
    node: Correlated<'_>,
    schema: &StructuralSchema,
    path: &Path,
    findings: &mut FieldErrors,
) {
    if node.is_unchanged {
        return;
    }
    findings.visits += 1;
    let value = node.value;
    type_of(value, schema, path, findings);
    enumeration(value, schema, path, findings);
    match value {
        Value::Null => return,
        Value::String(text) => string(text, schema, path, findings),
        Value::Number(number) => numeric(number, schema, path, findings),
        Value::Array(items) => list(node, items, schema, path, findings),
        Value::Object(members) => object(node, members, schema, path, findings),
        Value::Bool(_) => {}
    }
    combinations(node, schema, path, findings);
}

/// The JSON type of a value in the schema's words.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn type_of(value: &Value, schema: &StructuralSchema, path: &Path, findings: &mut FieldErrors) {
    let wanted = match (&schema.type_, schema.int_or_string) {
        (_, true) => "integer or string",
        (Some(name), false) if !name.is_empty() => name.as_str(),
        _ if value.is_null() && !schema.nullable && !schema.preserves_unknown_fields() => "not null",
        _ => return,
    };
    let found = type_name(value);
    let fits = match found {
        "null" => schema.nullable,
        "integer" => ["integer", "number", "integer or string"].contains(&wanted),
        "string" => ["string", "integer or string"].contains(&wanted),
        found => found == wanted,
    };
    if !fits {
        let remedy = match (wanted, found) {
            ("not null", _) | (_, "null") => "write a value, or remove the field".to_owned(),
            ("string", "integer" | "number" | "boolean") => "write it in quotes".to_owned(),
            (wanted, _) => format!("write one of type {wanted}"),
        };
        let message = format!("the value is of type {found}, not {wanted}: {remedy}");
        findings.add(path, ErrorKind::Type, message);
    }
}

fn enumeration(value: &Value, schema: &StructuralSchema, path: &Path, findings: &mut FieldErrors) {
    let Some(known) = &schema.enumeration else { return };
    if known.iter().any(|known| equal(known, value)) || value.is_null() && schema.nullable {
        return;
    }
    let known: Vec<String> = known.iter().map(shown).collect();
    let message = format!("{} is not supported: write one of {}", shown(value), known.join(", "));
    findings.add(path, ErrorKind::NotSupported, message);
}

/// Equality in which `1` and `1.0` are one number.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

/// The start of a value that may be long.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    let start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() { format!("{start}...") } else { start }
}

/// The length of a value within the bounds that it may have, with the remedies of one below and one above them.
fn size(
    (what, unit): (&str, &str),
    length: usize,
    [least, most]: [Option<u64>; 2],
    [lengthen, shorten]: [&str; 2],
    path: &Path,
    findings: &mut FieldErrors,
) {
    let has = format!("the {what} has {length} {unit}");
    let length = length as u64;
    if let Some(most) = most.filter(|most| length > *most) {
        findings.add(path, ErrorKind::TooLong, format!("{has}, more than {most}: {shorten}"));
    }
    if let Some(least) = least.filter(|least| length < *least) {
        findings.add(path, ErrorKind::Invalid, format!("{has}, fewer than {least}: {lengthen}"));
    }
}

fn string(text: &str, schema: &StructuralSchema, path: &Path, findings: &mut FieldErrors) {
    let bounds = [schema.min_length, schema.max_length];
    let remedies = ["write at least as many", "shorten it"];
    size(("text", "characters"), text.chars().count(), bounds, remedies, path, findings);
    if let Some(pattern) = schema.pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
        match &schema.compiled_pattern.get_or_init(|| CompiledPattern::of(pattern)).0 {
            Ok(regex) if regex.is_match(text) => {}
            Ok(_) => {
                let value = shown(&Value::from(text));
                let message = format!("{value} does not match the pattern {pattern}: write a text that does");
                findings.add(path, ErrorKind::Invalid, message);
            }
            Err(reason) => findings.unevaluated(path, &format!("pattern {pattern}"), reason.clone()),
        }
    }
    if let Some(format) = schema.format.as_deref().filter(|_| !schema.int_or_string) {
        if formats::is(format, text) == Some(false) {
            let message = format!("{} is no {format}: correct it", shown(&Value::from(text)));
            findings.add(path, ErrorKind::Invalid, message);
        }
        if formats::is_unevaluated(format) {
            let reason = "the API server validates this format, which is not supported offline";
            findings.unevaluated(path, &format!("format {format}"), reason);
        }
    }
}

fn numeric(number: &Number, schema: &StructuralSchema, path: &Path, findings: &mut FieldErrors) {
    let Some(value) = number.as_f64() else { return };
    let mut refuse = |message: String| findings.add(path, ErrorKind::Invalid, message);
    if let Some(least) = schema.minimum {
        match schema.exclusive_minimum {
            true if value <= least => {
                refuse(format!("{number} is not greater than {least}: write a greater number"))
            }
            false if value < least => {
                refuse(format!("{number} is less than {least}: write at least {least}"))
            }
            _ => {}
        }
    }
    if let Some(most) = schema.maximum {
        match schema.exclusive_maximum {
            true if value >= most => {
                refuse(format!("{number} is not less than {most}: write a smaller number"))
            }
            false if value > most => refuse(format!("{number} is greater than {most}: write at most {most}")),
            _ => {}
        }
    }
    if let Some(factor) = schema.multiple_of.filter(|factor| *factor > 0.0)
        && (value / factor).fract() != 0.0
    {
        refuse(format!("{number} is no multiple of {factor}: write one"));
    }
    let (least, most) = (i32::MIN, i32::MAX);
    if schema.format.as_deref() == Some("int32")
        && is_integer(number)
        && !(f64::from(least)..=f64::from(most)).contains(&value)
    {
        refuse(format!("{number} does not fit into int32: write a number from {least} to {most}"));
    }
}

fn list(
    node: Correlated<'_>,
    items: &[Value],
    schema: &StructuralSchema,
    path: &Path,
    findings: &mut FieldErrors,
) {
    let bounds = [schema.min_items, schema.max_items];
    size(("list", "items"), items.len(), bounds, ["add some", "remove some"], path, findings);
    let Some(item_schema) = schema.items.as_deref() else { return };
    let old = OldItems::of(node.old, schema);
    for (i, item) in items.iter().enumerate() {
        check(node.below(item, old.of_item(item)), item_schema, &path.index(i), findings);
    }
}

fn object(
    node: Correlated<'_>,
    members: &Map<String, Value>,
    schema: &StructuralSchema,
    path: &Path,
    findings: &mut FieldErrors,
) {
    let bounds = [schema.min_properties, schema.max_properties];
    size(("map", "entries"), members.len(), bounds, ["add some", "remove some"], path, findings);
    for name in schema.required.iter().filter(|name| !members.contains_key(*name)) {
        findings.add(&path.key(name), ErrorKind::Required, "the field is required: add it");
    }
    for (key, value) in members {
        if let Some((below, _)) = schema.of_key(key) {
            check(node.key(schema, key, value), below, &path.key(key), findings);
        }
    }
}

fn combinations(node: Correlated<'_>, schema: &StructuralSchema, path: &Path, findings: &mut FieldErrors) {
    let asked = |branch: &StructuralSchema| {
        let mut found = FieldErrors::default();
        check(node, branch, path, &mut found);
        found
    };
    for branch in &schema.all_of {
        findings.merge(asked(branch));
    }
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(|branch| asked(branch).is_empty()) {
        let message = "the value fits none of the alternatives of the schema (anyOf): make it fit one";
        findings.add(path, ErrorKind::Invalid, message);
        findings.merge(closest(schema.any_of.iter().map(asked)));
    }
    if !schema.one_of.is_empty() {
        match schema.one_of.iter().filter(|branch| asked(branch).is_empty()).count() {
            1 => {}
            0 => {
                let message =
                    "the value fits none of the alternatives of the schema (oneOf): make it fit one";
                findings.add(path, ErrorKind::Invalid, message);
                findings.merge(closest(schema.one_of.iter().map(asked)));
            }
            count => {
                let message = format!(
                    "the value fits {count} of the alternatives of the schema (oneOf): make it fit exactly one"
                );
                findings.add(path, ErrorKind::Invalid, message);
            }
        }
    }
    if let Some(not) = &schema.not
        && asked(not).is_empty()
    {
        let message = "the value fits what the schema excludes (not): change it";
        findings.add(path, ErrorKind::Invalid, message);
    }
}

/// The findings of the alternative that the API server takes for the closest: the first that asks most values.
fn closest(alternatives: impl Iterator<Item = FieldErrors>) -> FieldErrors {
    alternatives
        .reduce(|best, other| if other.visits > best.visits { other } else { best })
        .unwrap_or_default()
}
