//! Which value of the old object corresponds to one of the new object.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::StructuralSchema;

/// A value, and what it was before.
#[derive(Clone, Copy)]
pub(crate) struct Correlated<'a> {
    pub(crate) value: &'a Value,
    /// The value before, where one corresponds.
    pub(crate) old: Option<&'a Value>,
    /// Whether the value, or one around it, is as it was.
    pub(crate) is_unchanged: bool,
}

impl<'a> Correlated<'a> {
    pub(crate) fn root(value: &'a Value, old: Option<&'a Value>) -> Self {
        Self { value, old, is_unchanged: old == Some(value) }
    }

    /// A value in this one.
    pub(crate) fn below(&self, value: &'a Value, old: Option<&'a Value>) -> Self {
        Self { value, old, is_unchanged: self.is_unchanged || old == Some(value) }
    }

    /// The value of a key.
    pub(crate) fn key(&self, schema: &StructuralSchema, key: &str, value: &'a Value) -> Self {
        let old = self.old.filter(|_| schema.is_granular_map()).and_then(|old| old.get(key));
        self.below(value, old)
    }
}

/// The items of an old list, by what corresponds to them.
pub(crate) struct OldItems<'a> {
    by_key: HashMap<String, &'a Value>,
    schema: &'a StructuralSchema,
}

impl<'a> OldItems<'a> {
    pub(crate) fn of(old: Option<&'a Value>, schema: &'a StructuralSchema) -> Self {
        let items = old.and_then(Value::as_array).into_iter().flatten();
        let by_key = items.filter_map(|item| Some((item_key(item, schema)?, item))).collect();
        Self { by_key, schema }
    }

    /// The old item of the same key of a map list, or the same item of a set.
    pub(crate) fn of_item(&self, item: &Value) -> Option<&'a Value> {
        self.by_key.get(&item_key(item, self.schema)?).copied()
    }
}

/// What identifies an item of a set or a map list; `None` in other lists.
pub(crate) fn item_key(item: &Value, schema: &StructuralSchema) -> Option<String> {
    if schema.is_list_set() {
        return Some(item.to_string());
    }
    if !schema.is_list_map() || !item.is_object() {
        return None;
    }
    let keys: Vec<&Value> = schema.list_map_keys.iter().map(|key| &item[key]).collect();
    serde_json::to_string(&keys).ok()
}
