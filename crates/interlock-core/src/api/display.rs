//! Texts of the cluster as a page or a terminal may show them: bounded, and without characters that hide or
//! reorder what stands beside them.

/// A text of at most `limit` characters, its end marked with `…` where it is longer. White space becomes a blank;
/// other control characters, and those that change the direction of a text or have no width, are escaped.
pub fn display(text: &str, limit: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(limit * 4));
    for (place, c) in text.chars().enumerate() {
        if place == limit {
            shown.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if c.is_control() || is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Marks, embeddings, overrides and isolates of bidirectional text, and characters without a width.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
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
    #[case::control("a\u{7}b\u{1b}[2J", "a\\u{7}b\\u{1b}[2J")]
    #[case::direction("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c")]
    #[case::no_width("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}")]
    #[case::at_the_limit("123456789012", "123456789012")]
    #[case::long("1234567890123", "123456789012…")]
    fn what_is_shown(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(display(text, if text.starts_with('1') { 12 } else { 64 }), shown);
    }
}
