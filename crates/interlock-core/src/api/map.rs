//! The maps in an object of another author, which may have any value in their place.

use serde_json::{Map, Value};
use thiserror::Error;

/// Maximum characters of a value in a message.
const SHOWN: usize = 60;

/// A value in place of a map.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("value at .{path} is not an object: {value}")]
pub struct NotAMap {
    path: String,
    value: String,
}

impl NotAMap {
    fn new(path: &[&str], value: &Value) -> Self {
        let text = value.to_string();
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push_str("...");
        }
        Self { path: path.join("."), value: shown }
    }
}

/// The map at a path; adds absent and null maps on the way.
pub fn map_at<'v>(object: &'v mut Value, path: &[&str]) -> Result<&'v mut Map<String, Value>, NotAMap> {
    let mut at = object;
    for (i, name) in path.iter().enumerate() {
        at = as_map(at, &path[..i])?.entry(*name).or_insert(Value::Null);
    }
    as_map(at, path)
}

fn as_map<'v>(value: &'v mut Value, path: &[&str]) -> Result<&'v mut Map<String, Value>, NotAMap> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => Ok(map),
        other => Err(NotAMap::new(path, other)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::absent(json!({}))]
    #[case::null(json!({"metadata": null}))]
    #[case::null_inside(json!({"metadata": {"labels": null}}))]
    #[case::there(json!({"metadata": {"labels": {}}}))]
    fn what_is_missing_is_made(#[case] mut object: Value) {
        map_at(&mut object, &["metadata", "labels"]).unwrap().insert("a".to_owned(), json!("b"));
        assert_eq!(object, json!({"metadata": {"labels": {"a": "b"}}}));
    }

    #[rstest]
    #[case::text(json!({"metadata": {"labels": "x"}}), "value at .metadata.labels is not an object: \"x\"")]
    #[case::list(json!({"metadata": []}), "value at .metadata is not an object: []")]
    #[case::no_object(json!(1), "value at . is not an object: 1")]
    #[case::long(json!({"metadata": "ä".repeat(80)}), &format!("value at .metadata is not an object: \"{}...", "ä".repeat(59)))]
    fn what_is_no_map_is_named(#[case] mut object: Value, #[case] text: &str) {
        let before = object.clone();
        assert_eq!(map_at(&mut object, &["metadata", "labels"]).unwrap_err().to_string(), text);
        assert_eq!(object, before);
    }
}
