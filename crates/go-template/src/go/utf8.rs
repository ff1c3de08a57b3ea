//! Decodes characters from Go strings: bytes that need not be UTF-8.

/// The first character and its width in bytes; `None` if the bytes are not UTF-8 (width 1).
pub fn decode(bytes: &[u8]) -> (Option<char>, usize) {
    match bytes.first() {
        None => (None, 0),
        Some(&byte) if byte < 0x80 => (Some(char::from(byte)), 1),
        Some(_) => {
            for width in 2..=bytes.len().min(4) {
                if let Ok(text) = std::str::from_utf8(&bytes[..width]) {
                    return (text.chars().next(), width);
                }
            }
            (None, 1)
        }
    }
}

/// Characters of bytes, U+FFFD for each byte that is not UTF-8.
pub fn chars(bytes: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (c, width) = decode(rest);
        if width == 0 {
            return None;
        }
        rest = &rest[width..];
        Some(c.unwrap_or(char::REPLACEMENT_CHARACTER))
    })
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // Rust's debug escape keeps exactly the same categories; the leading letter prevents the escape of a
    // combining mark at the start.
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(b"a", Some('a'), 1)]
    #[case("é".as_bytes(), Some('é'), 2)]
    #[case("世".as_bytes(), Some('世'), 3)]
    #[case("🦀".as_bytes(), Some('🦀'), 4)]
    #[case(b"\xff", None, 1)]
    #[case(b"\xc3", None, 1)]
    #[case(b"", None, 0)]
    fn decodes(#[case] bytes: &[u8], #[case] c: Option<char>, #[case] width: usize) {
        assert_eq!(decode(bytes), (c, width));
    }

    #[rstest]
    #[case('a', true)]
    #[case(' ', true)]
    #[case('\u{a0}', false)]
    #[case('\u{200b}', false)]
    #[case('\u{301}', true)]
    #[case('\n', false)]
    #[case('世', true)]
    fn prints(#[case] c: char, #[case] printable: bool) {
        assert_eq!(is_print(c), printable);
    }
}
