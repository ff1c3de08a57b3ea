//! The directive `$patch` in an object that is merged.

use serde_json::{Map, Value};

/// The member that holds it.
pub const DIRECTIVE: &str = "$patch";

/// What becomes of the object beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// It is merged, as without a directive.
    Merge,
    /// The object with the directive takes its place.
    Replace,
    /// It is removed.
    Delete,
}

impl Directive {
    /// The directive of an object; `None` for one that does not exist.
    pub fn of(object: &Map<String, Value>) -> Option<Self> {
        match object.get(DIRECTIVE) {
            None => Some(Self::Merge),
            Some(value) => match value.as_str() {
                Some("merge") => Some(Self::Merge),
                Some("replace") => Some(Self::Replace),
                Some("delete") => Some(Self::Delete),
                _ => None,
            },
        }
    }
}
