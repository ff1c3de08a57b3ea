//! The way in for hostile YAML, shared by the fuzz target and the time-bounded run of the tests.
//!
//! Bytes as what a template has rendered, and as the value of a parameter.
//!
//! Whatever comes in: no panic, nothing beyond the budget, and what was read is written and read again.

use go_template::Never;
use go_template::yaml::{self, Aliases, MAX_MADE, Reader};
use serde_json::Value;

/// Decodes it both ways.
pub fn call(body: &[u8]) {
    let text = String::from_utf8_lossy(body);
    let _ = Reader::new(Aliases::Refused, &Never).read(&text);
    let reader = Reader::new(Aliases::Counted, &Never);
    let Ok(documents) = reader.documents(&text) else { return };
    assert!(reader.made() <= MAX_MADE);
    // Written out it has no aliases left, so it can be too large to be read again.
    for document in documents.iter().take(4) {
        let written = yaml::write(document);
        if let Ok(again) = yaml::read(&written)
            && !has_merge_key(document)
        {
            assert_eq!(again, *document, "{written}");
        }
    }
}

/// Whether a key is the text `<<`, quoted where it was read: it is written without quotes, as Go's yaml.v2 writes it,
/// and is a merge where that is read.
fn has_merge_key(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(key, value)| key == "<<" || has_merge_key(value)),
        Value::Array(items) => items.iter().any(has_merge_key),
        _ => false,
    }
}
