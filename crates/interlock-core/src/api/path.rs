//! Segments of the paths of the API server.

use thiserror::Error;

use crate::api::object::Gvk;

/// Maximum characters of a name (apimachinery `DNS1123SubdomainMaxLength`).
const LONGEST: usize = 253;

/// Why a text cannot be one segment of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotASegment {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It is longer than a name may be.
    #[error("is longer than {LONGEST} bytes")]
    TooLong,
    /// It names the directory itself, or its parent.
    #[error("is . or ..")]
    Dots,
    /// It contains a character that ends the segment, is decoded to one, or cannot be sent.
    #[error("contains {0:?}")]
    Contains(char),
}

/// Whether a text can be one segment of a path, as the API server requires of every name
/// (apimachinery `validation/path: IsValidPathSegmentName`). Escaping would not help: the API
/// server decodes a path before it splits it.
pub fn segment(text: &str) -> Result<&str, NotASegment> {
    match text {
        "" => Err(NotASegment::Empty),
        "." | ".." => Err(NotASegment::Dots),
        text if text.len() > LONGEST => Err(NotASegment::TooLong),
        text => match text.chars().find(|c| matches!(c, '/' | '%') || c.is_control()) {
            Some(c) => Err(NotASegment::Contains(c)),
            None => Ok(text),
        },
    }
}

/// Whether the API server can serve this group, version and kind: then they can be segments of a
/// path as well.
pub fn is_kind(gvk: &Gvk) -> bool {
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label = |text: &str| !text.is_empty() && text.chars().all(lower);
    let word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (gvk.group.is_empty() || gvk.group.split('.').all(label)) && label(&gvk.version) && word(&gvk.kind)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("web-0.1.0", Ok(()))]
    #[case::of_rbac("system:kube scheduler?", Ok(()))]
    #[case::hidden(".x", Ok(()))]
    #[case::empty("", Err(NotASegment::Empty))]
    #[case::of_another_namespace("../other/x", Err(NotASegment::Contains('/')))]
    #[case::of_another_kind("other/secrets/x", Err(NotASegment::Contains('/')))]
    #[case::escaped("other%2Fsecrets", Err(NotASegment::Contains('%')))]
    #[case::itself(".", Err(NotASegment::Dots))]
    #[case::above("..", Err(NotASegment::Dots))]
    #[case::two_lines("a\nb", Err(NotASegment::Contains('\n')))]
    fn segments(#[case] text: &str, #[case] expected: Result<(), NotASegment>) {
        assert_eq!(segment(text).map(drop), expected);
    }

    #[test]
    fn a_segment_is_no_longer_than_a_name() {
        assert!(segment(&"a".repeat(253)).is_ok());
        assert_eq!(segment(&"a".repeat(254)), Err(NotASegment::TooLong));
    }

    #[rstest]
    #[case::core("v1", "ConfigMap", true)]
    #[case::group("rbac.authorization.k8s.io/v1", "ClusterRole", true)]
    #[case::beta("apps/v1beta2", "Deployment", true)]
    #[case::above("../../v1", "ConfigMap", false)]
    #[case::below("a.io/v1/namespaces/x/secrets", "ConfigMap", false)]
    #[case::query("v1?dryRun=All", "ConfigMap", false)]
    #[case::dots("../v1", "ConfigMap", false)]
    #[case::no_version("apps/", "Deployment", false)]
    #[case::kind("v1", "../Secret", false)]
    #[case::no_kind("v1", "", false)]
    fn kinds(#[case] api_version: &str, #[case] kind: &str, #[case] expected: bool) {
        assert_eq!(is_kind(&Gvk::new(api_version, kind)), expected);
    }
}
