//! Access to the fields of an object that a template made: any of them may have any type. What is of an unexpected
//! one is left as it is, and the API server reports it.

use serde_json::{Map, Value};

pub(super) fn spec(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("spec")?.as_object_mut()
}

/// A field as an object, made where it is absent or null; `None` where it is of another type.
pub(super) fn object<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    default(fields, name, Map::new());
    fields.get_mut(name)?.as_object_mut()
}

/// The items of a list; none of another type.
pub(super) fn items(value: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let items = value.and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

/// Sets a field that is absent or null.
pub(super) fn default(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let field = fields.entry(name).or_insert(Value::Null);
    if field.is_null() {
        *field = value.into();
    }
}

/// Moves a field to another name.
pub(super) fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = fields.remove(from) {
        fields.entry(to).or_insert(value);
    }
}

/// Adds an annotation that is not there.
pub(super) fn annotate(object: &mut Value, name: &str, value: &str) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(annotations) = metadata.and_then(|metadata| self::object(metadata, "annotations")) {
        default(annotations, name, value);
    }
}
