//! The canonical JSON of any value (RFC 8785, but for numbers, which stay as they are written):
//! keys sorted, no white space.

use serde_json::Value;

use super::stamp::SpecHash;

/// The canonical JSON of a text; `null` and invalid JSON read as an empty object.
pub fn canonical(json: &str) -> String {
    let value = serde_json::from_str::<Value>(json).ok().filter(|value| !value.is_null());
    value.map_or_else(|| "{}".to_owned(), |value| value.to_string())
}

/// The hash of a text's canonical JSON.
pub fn hash(json: &str) -> SpecHash {
    SpecHash::of(&canonical(json))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::order(
        r#"{"b": [1, {"d": 2, "c": "\u00e9"}], "a": null}"#,
        r#"{"a":null,"b":[1,{"c":"é","d":2}]}"#
    )]
    #[case::null("null", "{}")]
    #[case::nothing("", "{}")]
    fn texts_that_say_the_same_are_the_same(#[case] text: &str, #[case] wanted: &str) {
        assert_eq!(canonical(text), wanted);
    }
}
