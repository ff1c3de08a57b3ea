//! The bytes that JSON wants escaped: found, and written.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the bytes of a word that are `byte`; the lowest mark is exact.
#[inline]
fn marks(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    difference.wrapping_sub(ONES) & !difference & HIGHS
}

/// Where the next byte stands that JSON wants escaped, eight bytes at a time; the length where
/// there is none.
#[inline]
pub(super) fn next_special(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let (words, tail) = rest.as_chunks::<8>();
    for (i, chunk) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let found = specials(word);
        if found != 0 {
            return from + 8 * i + (found.trailing_zeros() / 8) as usize;
        }
    }
    let special = tail.iter().position(|b| *b < 0x20 || matches!(b, b'"' | b'\\'));
    bytes.len() - tail.len() + special.unwrap_or(tail.len())
}

/// Marks the bytes of a word that JSON wants escaped; the lowest mark is exact.
#[inline]
fn specials(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    marks(word, b'"') | marks(word, b'\\') | control
}

/// The letter that follows the backslash for a byte that JSON wants escaped.
fn letter(special: u8) -> Option<u8> {
    Some(match special {
        b'"' | b'\\' => special,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return None,
    })
}

/// Appends a string as JSON: only `"`, `\` and control characters are escaped (RFC 8785).
pub fn json_string(out: &mut String, text: &str) {
    out.reserve(text.len() + text.len() / 8 + 2);
    out.push('"');
    let mut start = 0;
    loop {
        let special = next_special(text.as_bytes(), start);
        out.push_str(&text[start..special]);
        let Some(&byte) = text.as_bytes().get(special) else { break };
        match letter(byte) {
            Some(letter) => out.extend(['\\', char::from(letter)]),
            None => out.push_str(&format!("\\u{byte:04x}")),
        }
        start = special + 1;
    }
    out.push('"');
}

/// The same, of a long text with an escape every few bytes, such as JSON itself: there, a copy
/// for each piece between two escapes costs more than copying eight bytes at a time, whatever
/// is in them, and going back.
pub fn json_bytes(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut at = out.len();
    // Room for an escape at each byte, and for the eight bytes that are written ahead.
    out.resize(at + 2 * text.len() + 8, 0);
    let mut rest = text.as_bytes();
    loop {
        if let Some(chunk) = rest.first_chunk::<8>()
            && let Some(place) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>)
        {
            *place = *chunk;
            let plain = (specials(u64::from_le_bytes(*chunk)).trailing_zeros() / 8) as usize;
            at += plain;
            rest = &rest[plain..];
            if plain == 8 {
                continue;
            }
        }
        let Some((&byte, after)) = rest.split_first() else { break };
        rest = after;
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            out[at] = byte;
            at += 1;
        } else if let Some(letter) = letter(byte) {
            out[at] = b'\\';
            out[at + 1] = letter;
            at += 2;
        } else {
            let long = format!("\\u{byte:04x}");
            at += long.len();
            out.splice(at - long.len()..at - long.len() + 2, long.into_bytes());
        }
    }
    out.truncate(at);
    out.push(b'"');
}
