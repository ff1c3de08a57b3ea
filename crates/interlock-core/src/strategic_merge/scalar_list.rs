//! The three-way merge of a list of texts or numbers that is a set, such as `metadata.finalizers`.

use std::collections::HashSet;

use serde_json::Value;

use super::element_order::{interleave, places};

/// The merged list; `None` where an element is an object or a list.
pub fn merge(original: &[Value], modified: &[Value], current: &[Value]) -> Option<Vec<Value>> {
    let [original, modified, current] = [texts(original)?, texts(modified)?, texts(current)?];
    let wanted: HashSet<&str> = modified.iter().map(|(text, _)| text.as_str()).collect();
    let removed: HashSet<&str> =
        original.iter().map(|(text, _)| text.as_str()).filter(|text| !wanted.contains(text)).collect();
    if removed.is_empty() && is_sorted_form(&modified, &current) {
        return Some(current.into_iter().map(|(_, value)| value.clone()).collect());
    }
    let live = places(current.iter().map(|(text, _)| text.as_str()));
    let others = current.iter().filter(|(text, _)| !wanted.contains(text.as_str())).cloned().collect();
    let mut seen = HashSet::new();
    let desired = modified.iter().filter(|(text, _)| seen.insert(text.as_str())).cloned().collect();
    let merged = interleave(desired, others, &live).into_iter();
    Some(
        merged.filter(|(text, _)| !removed.contains(text.as_str())).map(|(_, value)| value.clone()).collect(),
    )
}

/// Whether the desired list is the live one in alphabetical order: client-go takes that for no difference.
fn is_sorted_form(modified: &[(String, &Value)], current: &[(String, &Value)]) -> bool {
    let mut sorted: Vec<&str> = current.iter().map(|(text, _)| text.as_str()).collect();
    sorted.sort_unstable();
    modified.iter().map(|(text, _)| text.as_str()).eq(sorted)
}

fn texts(list: &[Value]) -> Option<Vec<(String, &Value)>> {
    let text = |value: &Value| match value {
        Value::Null | Value::Object(_) | Value::Array(_) => None,
        Value::String(text) => Some(text.clone()),
        scalar => Some(scalar.to_string()),
    };
    list.iter().map(|value| Some((text(value)?, value))).collect()
}
