//! The bytes that JSON wants escaped: found, and written.

use wide::u8x16;

/// Bytes that are looked at together.
pub(super) const BLOCK: usize = 16;

/// Marks the bytes of a block that JSON wants escaped, a bit each, the first byte the lowest.
#[inline]
fn specials(block: &[u8; BLOCK]) -> u32 {
    let bytes = u8x16::from(*block);
    let control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    let quote = bytes.simd_eq(u8x16::splat(b'"'));
    let backslash = bytes.simd_eq(u8x16::splat(b'\\'));
    (control | quote | backslash).to_bitmask()
}

/// Marks the bytes that JSON wants escaped in the block that begins there, or in what is left.
#[inline]
pub(super) fn marked(bytes: &[u8], at: usize) -> u32 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(block) => specials(block),
        None => {
            let mut last = [b' '; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            specials(&last)
        }
    }
}

/// Where the next byte stands that JSON wants escaped; the length where there is none.
#[inline]
fn next_special(bytes: &[u8], from: usize) -> usize {
    for at in (from..bytes.len()).step_by(BLOCK) {
        let found = marked(bytes, at);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
    }
    bytes.len()
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
/// for each piece between two escapes costs more than copying a block at a time, whatever is in
/// it, and going back.
pub fn json_bytes(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + text.len() / 4 + BLOCK);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        match rest.split_first_chunk::<BLOCK>() {
            Some((block, after)) => {
                out.extend_from_slice(block);
                let plain = (specials(block).trailing_zeros() as usize).min(BLOCK);
                if plain == BLOCK {
                    rest = after;
                    continue;
                }
                out.truncate(out.len() - (BLOCK - plain));
                rest = &rest[plain..];
            }
            None => {
                let (plain, special) = rest.split_at(next_special(rest, 0));
                out.extend_from_slice(plain);
                rest = special;
            }
        }
        let Some((&special, after)) = rest.split_first() else { break };
        rest = after;
        match letter(special) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.extend_from_slice(format!("\\u{special:04x}").as_bytes()),
        }
    }
    out.push(b'"');
}
