//! Texts of the cluster as a page, a terminal or a refusal may show them: without characters that steer a terminal,
//! or that hide or reorder what stands beside them. Such a character becomes `\u202e`, as JSON writes it, so that JSON
//! stays JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text of at most `limit` characters on one line, its end marked with `…` where it is longer.
pub fn display(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => one_line(&text[..end]).into_owned() + "…",
        None => one_line(text).into_owned(),
    }
}

/// A text on one line: line breaks and tabs become blanks.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\r' | '\t').then_some(' '))
}

/// A text of several lines.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| match c {
        '\n' | '\t' => Some(c),
        '\r' => Some(' '),
        _ => None,
    })
}

/// `space` is what stands for a white space.
fn escaped(text: &str, space: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match space(c) {
            Some(space) => shown.push(space),
            None if c.is_control() || is_invisible(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            None => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Marks, embeddings, overrides and isolates of bidirectional text, and characters without a width, as tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("kafka-0.1.0", "kafka-0.1.0")]
    #[case::markup("<b>&amp;", "<b>&amp;")]
    #[case::other_scripts("Größe שלום", "Größe שלום")]
    #[case::lines("a\nb\tc", "a b c")]
    #[case::control("a\u{7}b\u{1b}[2J", "a\\u0007b\\u001b[2J")]
    #[case::direction("a\u{202e}b\u{2066}c", "a\\u202eb\\u2066c")]
    #[case::no_width("a\u{200b}b\u{feff}", "a\\u200bb\\ufeff")]
    #[case::tags("a\u{e0041}", "a\\udb40\\udc41")]
    #[case::at_the_limit("123456789012", "123456789012")]
    #[case::long("1234567890123", "123456789012…")]
    fn what_is_shown(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(display(text, if text.starts_with('1') { 12 } else { 64 }), shown);
    }

    #[rstest]
    #[case::lines("a\n\tb\r\n", "a\n\tb \n")]
    #[case::steering("\u{1b}]0;x\u{7}\u{9b}2J\u{202e}", "\\u001b]0;x\\u0007\\u009b2J\\u202e")]
    fn several_lines_stay(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(printable(text), shown);
    }

    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({"a": "\u{202e}\u{1b}\u{9b}\u{e0041}"});
        let shown = printable(&value.to_string()).into_owned();
        assert!(shown.is_ascii(), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
