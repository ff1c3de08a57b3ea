//! Something of a DataPlane of which no child can be made, and what its finders share.

use interlock_core::api::rule::Rule;

use crate::data_plane::rollout::children::DataPlaneOwner;

/// The most characters of a value that is repeated to its author.
const REPEATED: usize = 63;

/// Something of a DataPlane of which no child can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildProblem {
    pub rule: Rule,
    /// Path of the field.
    pub field: String,
    /// What is wrong with its value.
    pub detail: String,
    pub next: &'static str,
}

/// An owner of what is only looked at.
pub(super) fn nobody() -> DataPlaneOwner {
    let nothing = String::new;
    DataPlaneOwner {
        namespace: nothing(),
        name: nothing(),
        uid: nothing(),
        service_selector: None,
        kept: None,
    }
}

pub(super) fn shown(text: &str) -> &str {
    text.char_indices().nth(REPEATED).map_or(text, |(end, _)| &text[..end])
}
