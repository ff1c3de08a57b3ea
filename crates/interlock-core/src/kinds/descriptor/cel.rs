//! Pieces of CEL that webhook entries and policies share.

/// A string literal of CEL.
pub fn string(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// Whether an update changes the spec. The optional fields are needed: the plain form fails on an object
/// without a spec, which then could never lose its finalizer.
pub const SPEC_CHANGED: &str = "request.operation != 'UPDATE'\n\
    || object.?spec.orValue({}) != oldObject.?spec.orValue({})";

/// Whether an update changes the spec or an annotation.
pub const SPEC_OR_ANNOTATIONS_CHANGED: &str = "request.operation != 'UPDATE'\n\
    || object.?spec.orValue({}) != oldObject.?spec.orValue({})\n\
    || object.?metadata.?annotations.orValue({}) != oldObject.?metadata.?annotations.orValue({})";

#[cfg(test)]
mod tests {
    use rstest::rstest;

    #[rstest]
    #[case("a'b", r"'a\'b'")]
    #[case(r"a\b", r"'a\\b'")]
    #[case("a\nb", r"'a\nb'")]
    #[case("plain", "'plain'")]
    fn cel_strings_cannot_be_left(#[case] text: &str, #[case] literal: &str) {
        assert_eq!(super::string(text), literal);
    }
}
