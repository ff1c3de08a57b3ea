//! When an object was created: a fact of every kind whose objects are shown with their age.

use jiff::Timestamp;
use serde_json::Value;

use super::fact;
use crate::api::object::meta_str;
use crate::topology::schema::{Fact, ReadDepth};

/// The fact.
pub const CREATED: Fact = Fact { name: fact::CREATED, read: ReadDepth::Mark(created) };

fn created(object: &Value) -> u64 {
    seconds(meta_str(object, "creationTimestamp"))
}

/// A time in Unix seconds; 0 for none.
pub fn seconds(text: Option<&str>) -> u64 {
    let at = text.and_then(|text| text.parse::<Timestamp>().ok());
    at.and_then(|at| u64::try_from(at.as_second()).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::known(json!("2026-01-01T00:00:10Z"), 1_767_225_610)]
    #[case::before_the_epoch(json!("1969-01-01T00:00:00Z"), 0)]
    #[case::forged(json!("soon"), 0)]
    #[case::absent(json!(null), 0)]
    fn an_object_has_an_age(#[case] at: Value, #[case] expected: u64) {
        assert_eq!(super::created(&json!({"metadata": {"creationTimestamp": at}})), expected);
    }
}
