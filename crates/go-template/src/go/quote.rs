//! `strconv.Quote` and `strconv.Unquote`.

use std::fmt::Write as _;

use super::utf8::{decode, is_print};

/// The characters to keep unescaped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All characters that Go calls printable.
    Printable,
    /// Printable ASCII.
    Ascii,
}

/// A string in double quotes.
pub fn quote(bytes: &[u8], keep: Keep) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    let mut rest = bytes;
    while !rest.is_empty() {
        let (c, width) = decode(rest);
        match c {
            Some(c) => escape(&mut out, c, '"', keep),
            None => push(&mut out, format_args!("\\x{:02x}", rest[0])),
        }
        rest = &rest[width..];
    }
    out.push('"');
    out
}

/// A name in double quotes, for error texts.
pub fn quoted(name: &str) -> String {
    quote(name.as_bytes(), Keep::Printable)
}

/// A character in single quotes.
pub fn quote_char(c: char, keep: Keep) -> String {
    let mut out = String::from("'");
    escape(&mut out, c, '\'', keep);
    out.push('\'');
    out
}

fn escape(out: &mut String, c: char, mark: char, keep: Keep) {
    if c == mark || c == '\\' {
        out.push('\\');
        out.push(c);
        return;
    }
    if is_print(c) && (keep == Keep::Printable || c.is_ascii()) {
        out.push(c);
        return;
    }
    match c {
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        c if c < ' ' || c == '\x7f' => push(out, format_args!("\\x{:02x}", u32::from(c))),
        c if u32::from(c) < 0x10000 => push(out, format_args!("\\u{:04x}", u32::from(c))),
        c => push(out, format_args!("\\U{:08x}", u32::from(c))),
    }
}

fn push(out: &mut String, args: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(args);
}

/// The bytes of a quoted Go string; `None` if it is malformed.
pub fn unquote(literal: &str) -> Option<Vec<u8>> {
    let mark = literal.chars().next()?;
    let inner = literal.strip_prefix(mark)?.strip_suffix(mark)?;
    match mark {
        '`' if !inner.contains('`') => Some(inner.bytes().filter(|&b| b != b'\r').collect()),
        '"' => {
            let mut out = Vec::with_capacity(inner.len());
            let mut rest = inner;
            while !rest.is_empty() {
                if rest.starts_with('"') || rest.starts_with('\n') {
                    return None;
                }
                let (unit, after) = unquote_unit(rest, '"')?;
                match unit {
                    Unit::Byte(byte) => out.push(byte),
                    Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
                rest = after;
            }
            Some(out)
        }
        _ => None,
    }
}

/// The value of a character constant without its quotes, and the text after it.
pub fn unquote_char(text: &str) -> Option<(u32, &str)> {
    if text.starts_with('\'') {
        return None;
    }
    let (unit, rest) = unquote_unit(text, '\'')?;
    Some((
        match unit {
            Unit::Byte(byte) => u32::from(byte),
            Unit::Char(c) => u32::from(c),
        },
        rest,
    ))
}

enum Unit {
    Byte(u8),
    Char(char),
}

fn unquote_unit(text: &str, mark: char) -> Option<(Unit, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first != '\\' {
        return Some((Unit::Char(first), chars.as_str()));
    }
    let code = chars.next()?;
    let rest = chars.as_str();
    let simple = |c: char| Some((Unit::Char(c), rest));
    match code {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' if code == mark => simple(code),
        'x' => {
            let (value, rest) = digits(rest, 2, 16)?;
            Some((Unit::Byte(u8::try_from(value).ok()?), rest))
        }
        'u' | 'U' => {
            let (value, rest) = digits(rest, if code == 'u' { 4 } else { 8 }, 16)?;
            Some((Unit::Char(char::from_u32(value)?), rest))
        }
        '0'..='7' => {
            let (value, rest) = digits(&text[1..], 3, 8)?;
            Some((Unit::Byte(u8::try_from(value).ok()?), rest))
        }
        _ => None,
    }
}

fn digits(text: &str, count: usize, base: u32) -> Option<(u32, &str)> {
    let digits = text.get(..count)?;
    let value =
        digits.chars().try_fold(0u32, |value, c| value.checked_mul(base)?.checked_add(c.to_digit(base)?))?;
    Some((value, &text[count..]))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"plain", r#""plain""#)]
    #[case(b"a\"b\\c", r#""a\"b\\c""#)]
    #[case(b"\n\t\x00\x7f\xff", r#""\n\t\x00\x7f\xff""#)]
    #[case("é\u{200b}".as_bytes(), "\"é\\u200b\"")]
    fn quotes(#[case] bytes: &[u8], #[case] want: &str) {
        assert_eq!(quote(bytes, Keep::Printable), want);
    }

    #[rstest]
    #[case(r#""a\tb""#, Some(b"a\tb".to_vec()))]
    #[case(r#""\x41\101\u00e9""#, Some("AAé".as_bytes().to_vec()))]
    #[case(r#""\xff""#, Some(vec![0xff]))]
    #[case(r#""\'""#, None)]
    #[case(r#""\q""#, None)]
    #[case(r#""\400""#, None)]
    #[case("`a\\n\r`", Some(b"a\\n".to_vec()))]
    #[case("\"", None)]
    fn unquotes(#[case] literal: &str, #[case] want: Option<Vec<u8>>) {
        assert_eq!(unquote(literal), want);
    }
}
