//! Values of an object as CEL sees them: typed by the schema, with the names of fields escaped.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDate, NaiveTime};
use kube_cel::cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;

use crate::correlation::{OldItems, item_key};
use crate::schema::StructuralSchema;

/// Fields of the metadata that rules can read.
const METADATA: [&str; 2] = ["name", "generateName"];

/// Words of CEL that a field's name may not be.
const RESERVED: &str = "true false null in as break const continue else for function if import let loop package \
                        namespace return var void while";

/// The value of a field whose schema this is.
pub(crate) fn to_cel(value: &Value, schema: Option<&StructuralSchema>, is_resource: bool) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => {
            let is_float = schema.is_some_and(|schema| schema.type_.as_deref() == Some("number"));
            match number.as_i64().filter(|_| !is_float) {
                Some(integer) => cel::Value::Int(integer),
                None => float(number, schema),
            }
        }
        Value::String(text) => string(text, schema),
        Value::Array(items) => {
            let item = schema.and_then(|schema| schema.items.as_deref());
            let embedded = item.is_some_and(|item| item.embedded_resource);
            cel::Value::List(Arc::new(items.iter().map(|value| to_cel(value, item, embedded)).collect()))
        }
        Value::Object(members) => {
            let mut map = HashMap::with_capacity(members.len());
            for (key, value) in members {
                let (name, value) = entry(key, value, schema, is_resource);
                map.insert(Key::String(Arc::new(name)), value);
            }
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// An integral float of an integer field is an integer, as the API server's JSON decoder reads it.
fn float(number: &serde_json::Number, schema: Option<&StructuralSchema>) -> cel::Value {
    let value = number.as_f64().unwrap_or(f64::NAN);
    let is_integer = schema.is_some_and(|schema| schema.type_.as_deref() == Some("integer"));
    match format!("{value}").parse() {
        Ok(integer) if is_integer => cel::Value::Int(integer),
        _ => cel::Value::Float(value),
    }
}

fn entry(
    key: &str,
    value: &Value,
    schema: Option<&StructuralSchema>,
    is_resource: bool,
) -> (String, cel::Value) {
    if is_resource && key == "metadata" {
        let mut metadata = value.clone();
        if let Some(members) = metadata.as_object_mut() {
            members.retain(|name, _| METADATA.contains(&name.as_str()));
        }
        return (key.to_owned(), to_cel(&metadata, None, false));
    }
    match schema.and_then(|schema| schema.of_key(key)) {
        Some((below, true)) => (key.to_owned(), to_cel(value, Some(below), below.embedded_resource)),
        Some((below, false)) => (escaped(key), to_cel(value, Some(below), below.embedded_resource)),
        None if schema.is_some_and(StructuralSchema::allows_additional) => {
            (key.to_owned(), to_cel(value, None, false))
        }
        None => (escaped(key), to_cel(value, None, false)),
    }
}

fn string(text: &str, schema: Option<&StructuralSchema>) -> cel::Value {
    let plain = || cel::Value::String(Arc::new(text.to_owned()));
    let Some(schema) = schema.filter(|schema| !schema.int_or_string) else { return plain() };
    match schema.format.as_deref() {
        Some("date-time") => {
            DateTime::parse_from_rfc3339(text).map_or_else(|_| plain(), cel::Value::Timestamp)
        }
        Some("date") => match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            Ok(date) => cel::Value::Timestamp(date.and_time(NaiveTime::MIN).and_utc().fixed_offset()),
            Err(_) => plain(),
        },
        Some("duration") => {
            let context = cel::Context::default();
            let call = |program: cel::Program| {
                let mut context = context.new_inner_scope();
                context.add_variable_from_value("text", text);
                program.execute(&context).ok()
            };
            cel::Program::compile("duration(text)").ok().and_then(call).unwrap_or_else(plain)
        }
        Some("byte") => {
            STANDARD.decode(text).map_or_else(|_| plain(), |bytes| cel::Value::Bytes(Arc::new(bytes)))
        }
        _ => plain(),
    }
}

/// The name of a property as rules write it.
pub(crate) fn escaped(name: &str) -> String {
    if RESERVED.split(' ').any(|word| word == name) {
        return format!("__{name}__");
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (escape, taken) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        out.push_str(escape);
        rest = &rest[taken..];
    }
    out
}

/// An old value with the items of its sets and map lists in the order of the new one, so that what is equal but
/// for the order is equal.
pub(crate) fn aligned(old: &Value, new: &Value, schema: &StructuralSchema) -> Value {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let below = |(key, old): (&String, &Value)| {
                let known = new.get(key).and_then(|new| Some((new, schema.of_key(key)?.0)));
                (key.clone(), known.map_or_else(|| old.clone(), |(new, schema)| aligned(old, new, schema)))
            };
            Value::Object(old.iter().map(below).collect())
        }
        (Value::Array(items), Value::Array(new)) if schema.is_list_map() || schema.is_list_set() => {
            let known = OldItems::of(Some(old), schema);
            let taken: HashSet<Option<String>> = new.iter().map(|item| item_key(item, schema)).collect();
            let first = new.iter().filter_map(|new| {
                let old = known.of_item(new)?;
                Some(schema.items.as_deref().map_or_else(|| old.clone(), |item| aligned(old, new, item)))
            });
            let rest = items.iter().filter(|item| !taken.contains(&item_key(item, schema))).cloned();
            Value::Array(first.chain(rest).collect())
        }
        (old, _) => old.clone(),
    }
}
