//! Lists that are sets or maps hold nothing twice.

use std::collections::HashSet;

use serde_json::Value;

use crate::correlation::item_key;
use crate::field_error::{ErrorKind, FieldErrors, Path};
use crate::schema::StructuralSchema;

/// Collects the items of sets and map lists that appear twice.
pub(crate) fn check(value: &Value, schema: &StructuralSchema, path: &Path, findings: &mut FieldErrors) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match schema.of_key(key) {
                    Some((below, false)) => check(value, below, &path.key(key), findings),
                    Some((below, true)) => check(value, below, &path.map_key(key), findings),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            let mut seen = HashSet::new();
            for (i, item) in items.iter().enumerate() {
                let key = item_key(item, schema);
                if key.is_some_and(|key| !seen.insert(key)) {
                    findings.add(&path.index(i), ErrorKind::Duplicate, twice(schema));
                }
                if let Some(below) = schema.items.as_deref() {
                    check(item, below, &path.index(i), findings);
                }
            }
        }
        _ => {}
    }
}

fn twice(schema: &StructuralSchema) -> String {
    match schema.is_list_map() {
        true => {
            format!("an item before it has the same {}: keep one of both", schema.list_map_keys.join(", "))
        }
        false => "an item before it is the same: keep one of both".to_owned(),
    }
}
