//! Which style yaml.v2's emitter picks for a scalar.

use super::scalar::{Scalar, is_timestamp, resolve};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// `stringv` of the encoder and `select_scalar_style` of the emitter.
pub(super) fn style(text: &str, simple_key: bool) -> Style {
    let analysis = Analysis::of(text);
    let wanted = if text.contains('\n') {
        Style::Literal
    // A timestamp resolves to a tag of its own, so it is quoted.
    } else if resolve(text) == Scalar::Text && !is_timestamp(text) && !is_base60(text) {
        Style::Plain
    } else {
        Style::Double
    };
    match wanted {
        Style::Plain if simple_key && analysis.multiline => Style::Double,
        Style::Plain if analysis.plain && !(text.is_empty() && simple_key) => Style::Plain,
        Style::Plain if analysis.single_quoted => Style::Single,
        Style::Literal if analysis.block && !simple_key => Style::Literal,
        _ => Style::Double,
    }
}

pub(super) fn style_of_base64(text: &str) -> Style {
    if Analysis::of(text).plain { Style::Plain } else { Style::Single }
}

/// `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`: YAML 1.1 numbers that yaml.v2 does not read, but
/// quotes for other parsers.
fn is_base60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (body, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = body.split(':');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let first =
        parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()) && digits(part));
    let rest: Vec<&str> = parts.collect();
    let in_range = |part: &&str| match part.as_bytes() {
        [ones] => ones.is_ascii_digit(),
        [tens, ones] => (b'0'..=b'5').contains(tens) && ones.is_ascii_digit(),
        _ => false,
    };
    first && !rest.is_empty() && rest.iter().all(in_range) && digits(fraction)
}

/// The styles that the emitter may use for a scalar: `analyze_scalar`.
struct Analysis {
    multiline: bool,
    plain: bool,
    single_quoted: bool,
    block: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self { multiline: false, plain: true, single_quoted: true, block: false };
        }
        let chars: Vec<char> = text.chars().collect();
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut breaks, mut break_space, mut space_break) = (false, false, false, false);
        let (mut after_space, mut after_break, mut preceded) = (false, false, true);
        for (i, &c) in chars.iter().enumerate() {
            let followed = chars.get(i + 1).is_none_or(|&next| is_blank(next));
            indicators |= is_indicator(c, i == 0, preceded, followed);
            special |= !is_printable(c);
            let (space, line_break) = (c == ' ', is_break(c));
            breaks |= line_break;
            break_space |= space && after_break;
            space_break |= line_break && after_space;
            (after_space, after_break) = (space, line_break);
            preceded = is_blank(c) || line_break;
        }
        let edge = |c: Option<&char>| c.is_some_and(|&c| c == ' ' || is_break(c));
        let edges = edge(chars.first()) || edge(chars.last());
        Self {
            multiline: breaks,
            plain: !(indicators || edges || break_space || space_break || special || breaks),
            single_quoted: !(break_space || space_break || special),
            block: !(chars.last() == Some(&' ') || space_break || special || chars.iter().any(is_separator)),
        }
    }
}

/// Whether a character in this position is an indicator in block context.
fn is_indicator(c: char, first: bool, preceded: bool, followed: bool) -> bool {
    match c {
        '#' if !first => preceded,
        ':' => followed,
        '?' | '-' if first => followed,
        c => first && "#,[]{}&*!|>'\"%@`".contains(c),
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Yaml.v2 writes these into a block unchanged and indents the next text, as they end a line of YAML 1.1.
/// For YAML 1.2, which reads it here, they are text, and the indentation would become part of it.
fn is_separator(c: &char) -> bool {
    matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters that the emitter writes unescaped: no controls (except line feed), no byte order mark.
pub(super) fn is_printable(c: char) -> bool {
    match c {
        '\n' | ' '..='~' => true,
        '\u{a0}'..='\u{d7ff}' => true,
        '\u{e000}'..='\u{fffd}' => c != '\u{feff}',
        _ => false,
    }
}
