//! Fields that the schema does not have, which the decoder refuses when it is strict and drops when it is not.

use serde_json::{Map, Value};

use crate::field_error::{ErrorKind, FieldErrors, Path};
use crate::schema::StructuralSchema;

/// The fields of every object, which no schema needs to have.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Known names that an error lists.
const LISTED: usize = 12;

/// Removes unknown fields, and reports each of them where findings are given.
pub(crate) fn prune(object: &mut Value, schema: &StructuralSchema, findings: Option<&mut FieldErrors>) {
    let mut pruner = Pruner { findings };
    pruner.value(object, Some(schema), &Path::default(), true);
}

struct Pruner<'f> {
    findings: Option<&'f mut FieldErrors>,
}

impl Pruner<'_> {
    fn value(
        &mut self,
        value: &mut Value,
        schema: Option<&StructuralSchema>,
        path: &Path,
        is_resource: bool,
    ) {
        match value {
            Value::Object(members) => self.object(members, schema, path, is_resource),
            Value::Array(items) => {
                let item = schema.and_then(|schema| schema.items.as_deref());
                for (i, value) in items.iter_mut().enumerate() {
                    let is_resource = item.is_some_and(|item| item.embedded_resource);
                    match (schema, item) {
                        (Some(schema), None) if schema.preserves_unknown_fields() => {}
                        (_, item) => self.value(value, item, &path.index(i), is_resource),
                    }
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        members: &mut Map<String, Value>,
        schema: Option<&StructuralSchema>,
        path: &Path,
        is_resource: bool,
    ) {
        members.retain(|key, value| {
            if is_resource && OBJECT_FIELDS.contains(&key.as_str()) {
                return true;
            }
            let below = path.key(key);
            let Some(schema) = schema else { return self.drop(&below, None) };
            match schema.of_key(key) {
                Some((known, _)) => {
                    self.value(value, Some(known), &below, known.embedded_resource);
                    true
                }
                None if schema.preserves_unknown_fields() => true,
                None if schema.allows_additional() => {
                    self.value(value, None, &below, false);
                    true
                }
                None => self.drop(&below, Some(schema)),
            }
        });
    }

    /// Reports an unknown field, and tells `retain` to drop it.
    fn drop(&mut self, path: &Path, schema: Option<&StructuralSchema>) -> bool {
        if let Some(findings) = self.findings.as_deref_mut() {
            let known: Vec<&str> =
                schema.into_iter().flat_map(|schema| schema.properties.keys()).map(String::as_str).collect();
            let there_are = match known.len() {
                0 => "there are none".to_owned(),
                1..=LISTED => format!("there are {}", known.join(", ")),
                more => format!("there are {} and {} more", known[..LISTED].join(", "), more - LISTED),
            };
            let message = format!("the field is unknown: correct its name ({there_are}), or remove it");
            findings.add(path, ErrorKind::UnknownField, message);
        }
        false
    }
}
