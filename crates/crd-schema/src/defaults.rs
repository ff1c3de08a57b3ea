//! Nulls and defaults, as the API server decodes and reads objects.

use serde_json::{Map, Value};

use crate::schema::StructuralSchema;

/// Sets defaults, and removes nulls that are not allowed.
pub(crate) fn apply(value: &mut Value, schema: &StructuralSchema) {
    match value {
        Value::Object(members) => object(members, schema),
        Value::Array(items) => {
            let Some(item) = schema.items.as_deref() else { return };
            for value in items {
                if let (Value::Null, false, Some(default)) = (&*value, item.nullable, &item.default) {
                    *value = default.clone();
                }
                apply(value, item);
            }
        }
        _ => {}
    }
}

fn object(members: &mut Map<String, Value>, schema: &StructuralSchema) {
    members.retain(|key, value| {
        let known = schema.of_key(key).map(|(known, _)| known);
        !known.is_some_and(|known| value.is_null() && !known.nullable && known.default.is_none())
    });
    for (name, property) in &schema.properties {
        let is_missing = members.get(name).is_none_or(|value| value.is_null() && !property.nullable);
        if let Some(default) = property.default.as_ref().filter(|_| is_missing) {
            members.insert(name.clone(), default.clone());
        }
    }
    for (key, value) in members {
        let Some((known, _)) = schema.of_key(key) else { continue };
        if let (Value::Null, false, Some(default)) = (&*value, known.nullable, &known.default) {
            *value = default.clone();
        }
        apply(value, known);
    }
}
