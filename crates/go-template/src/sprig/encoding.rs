//! Base 64, base 32 and checksums. A text that cannot be decoded becomes Go's error text, as in
//! sprig.

use data_encoding::{Encoding, HEXLOWER};
use sha1::{Digest, Sha1};
use sha2::Sha256;

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::Str;
use crate::function::{Function, arg, fixed};
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("b64enc", &[Str], |meter, args| encode(meter, &data_encoding::BASE64, arg::text(args, 0))),
    fixed("b64dec", &[Str], |meter, args| decode(meter, &BASE64, decode_base64, arg::text(args, 0))),
    fixed("b32enc", &[Str], |meter, args| encode(meter, &data_encoding::BASE32, arg::text(args, 0))),
    fixed("b32dec", &[Str], |meter, args| decode(meter, &BASE32, decode_base32, arg::text(args, 0))),
    fixed("sha1sum", &[Str], |_, args| Ok(Val::str(HEXLOWER.encode(&Sha1::digest(arg::text(args, 0)))))),
    fixed("sha256sum", &[Str], |_, args| Ok(Val::str(HEXLOWER.encode(&Sha256::digest(arg::text(args, 0)))))),
    fixed("adler32sum", &[Str], |_, args| {
        Ok(Val::str(adler2::adler32_slice(arg::text(args, 0)).to_string()))
    }),
];

/// An alphabet, the bits of a character, and the characters of a group of whole bytes.
struct Base {
    name: &'static str,
    alphabet: &'static [u8],
    bits: u32,
    group: usize,
}

const BASE64: Base = Base {
    name: "base64",
    alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    bits: 6,
    group: 4,
};

const BASE32: Base =
    Base { name: "base32", alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", bits: 5, group: 8 };

fn encode(meter: &Meter, base: &Encoding, bytes: &[u8]) -> Result<Val, Failure> {
    meter.bytes(bytes.len() * 2)?;
    Ok(Val::str(base.encode(bytes)))
}

/// The bytes, or the error position of Go's decoder.
type Decode = fn(&Base, &[u8]) -> Result<Vec<u8>, usize>;

fn decode(meter: &Meter, base: &Base, decode: Decode, text: &[u8]) -> Result<Val, Failure> {
    meter.bytes(text.len())?;
    // Each digit is searched in the alphabet.
    meter.read(text.len().saturating_mul(8))?;
    Ok(match decode(base, text) {
        Ok(bytes) => Val::str(bytes),
        Err(at) => Val::str(format!("illegal {} data at input byte {at}", base.name)),
    })
}

fn digit(base: &Base, byte: u8) -> Option<u64> {
    base.alphabet.iter().position(|&c| c == byte).map(|digit| digit as u64)
}

/// The bytes of a group of digits; drops bits that make no byte.
fn push_group(out: &mut Vec<u8>, base: &Base, digits: &[u64]) {
    let bits = digits.len() as u32 * base.bits;
    let value = digits.iter().fold(0, |value, digit| value << base.bits | digit) >> (bits % 8);
    out.extend((0..bits / 8).rev().map(|i| (value >> (8 * i) & 0xff) as u8));
}

/// `encoding/base64`: skips line breaks anywhere.
fn decode_base64(base: &Base, text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes =
        text.iter().copied().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).peekable();
    let mut out = Vec::new();
    let mut group = Vec::new();
    while let Some((at, byte)) = bytes.next() {
        if let Some(digit) = digit(base, byte) {
            group.push(digit);
            if group.len() == base.group {
                push_group(&mut out, base, &std::mem::take(&mut group));
            }
            continue;
        }
        if byte != b'=' || group.len() < 2 {
            return Err(at);
        }
        if group.len() == 2 {
            match bytes.next() {
                None => return Err(text.len()),
                Some((_, b'=')) => {}
                // Go reports the previous byte.
                Some((next, _)) => return Err(next - 1),
            }
        }
        if let Some((next, _)) = bytes.next() {
            return Err(next);
        }
        push_group(&mut out, base, &group);
        return Ok(out);
    }
    // Go counts from the end.
    if group.is_empty() { Ok(out) } else { Err(text.len() - group.len()) }
}

/// `encoding/base32`: removes line breaks first, and counts positions without them.
fn decode_base32(base: &Base, text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::new();
    let mut group = Vec::new();
    for (at, &byte) in text.iter().enumerate() {
        let rest = &text[at + 1..];
        if byte == b'=' && group.len() >= 2 && rest.len() < base.group {
            let missing = base.group - 1 - group.len();
            if rest.len() < missing {
                return Err(text.len());
            }
            if let Some(k) = rest[..missing].iter().position(|&byte| byte != b'=') {
                return Err(at + k);
            }
            if matches!(group.len(), 3 | 6) {
                return Err(at);
            }
            push_group(&mut out, base, &group);
            return Ok(out);
        }
        group.push(digit(base, byte).ok_or(at)?);
        if group.len() == base.group {
            push_group(&mut out, base, &std::mem::take(&mut group));
        }
    }
    if group.is_empty() { Ok(out) } else { Err(text.len() - group.len()) }
}
