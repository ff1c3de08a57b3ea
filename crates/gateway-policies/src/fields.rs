//! Rules that are split into fields, for kinds that are patched field by field (GEP-713).
//!
//! The key of a field is its JSON pointer without the first slash: `request/timeout`. A list is one field.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::effective::EffectiveRule;
use crate::kind::rules_under;
use crate::policy::{Rules, Violation};

/// The rules that a block has under a field, each split into its own fields.
pub fn fields_under(block: &Map<String, Value>, field: &str) -> Result<Rules, Vec<Violation>> {
    let mut fields = Rules::new();
    for (key, rule) in rules_under(block, field)? {
        split(&escape(&key), &rule, &mut fields);
    }
    Ok(fields)
}

fn split(key: &str, value: &Value, fields: &mut Rules) {
    match value.as_object().filter(|object| !object.is_empty()) {
        None => {
            fields.insert(key.into(), Arc::new(value.clone()));
        }
        Some(object) => {
            for (name, value) in object {
                split(&format!("{key}/{}", escape(name)), value, fields);
            }
        }
    }
}

/// The rules that effective fields come to. A field that is null is left out.
pub fn assemble(fields: &BTreeMap<Arc<str>, EffectiveRule>) -> Value {
    let mut rules = Map::new();
    for (key, field) in fields {
        let names: Vec<String> = key.split('/').map(unescape).collect();
        insert(&mut rules, &names, &field.value);
    }
    Value::Object(rules)
}

fn insert(object: &mut Map<String, Value>, names: &[String], value: &Value) {
    let Some((name, names)) = names.split_first() else { return };
    if names.is_empty() {
        if !value.is_null() {
            object.insert(name.clone(), value.clone());
        }
        return;
    }
    let inner = object.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(inner) = inner {
        insert(inner, names, value);
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescape(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}
