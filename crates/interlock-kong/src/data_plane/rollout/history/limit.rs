//! How many former revisions a history keeps: the annotation `interlock.dev/revision-history-limit`.

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::Value;

/// Former revisions that are kept where the annotation says nothing else: as many as a Deployment keeps.
pub const DEFAULT: usize = 10;
/// The most that are kept: they are listed together.
pub const MOST: usize = 50;

/// Reads a value of the annotation; `None` for what is no number up to [`MOST`].
pub fn parse(value: &str) -> Option<usize> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|limit| digits && *limit <= MOST)
}

/// The limit of a DataPlane. An invalid value counts as absent.
pub fn of(object: &Value) -> usize {
    annotation(object, meta::REVISION_HISTORY_LIMIT).and_then(parse).unwrap_or(DEFAULT)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::absent(None, DEFAULT)]
    #[case::none(Some("0"), 0)]
    #[case::some(Some("3"), 3)]
    #[case::most(Some("50"), MOST)]
    #[case::more(Some("51"), DEFAULT)]
    #[case::negative(Some("-1"), DEFAULT)]
    #[case::signed(Some("+1"), DEFAULT)]
    #[case::empty(Some(""), DEFAULT)]
    #[case::text(Some("ten"), DEFAULT)]
    fn values_of_the_annotation(#[case] value: Option<&str>, #[case] limit: usize) {
        let object = json!({"metadata": {"annotations": {meta::REVISION_HISTORY_LIMIT: value}}});
        assert_eq!(of(&object), limit);
    }
}
