//! Base 64, base 32 and checksums. A text that cannot be decoded becomes Go's error text, as in
//! sprig.

use aws_lc_rs::digest;
use sha2::{Digest, Sha256};

use crate::template::dynamic::Val;
use crate::template::error::Failure;
use crate::template::function::Type::Str;
use crate::template::function::{Function, arg, fixed};
use crate::template::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("b64enc", &[Str], |meter, args| encode(meter, &BASE64, arg::text(args, 0))),
    fixed("b64dec", &[Str], |meter, args| decode(meter, &BASE64, arg::text(args, 0))),
    fixed("b32enc", &[Str], |meter, args| encode(meter, &BASE32, arg::text(args, 0))),
    fixed("b32dec", &[Str], |meter, args| decode(meter, &BASE32, arg::text(args, 0))),
    fixed("sha1sum", &[Str], |_, args| {
        let sum = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, arg::text(args, 0));
        Ok(Val::str(hex(sum.as_ref())))
    }),
    fixed("sha256sum", &[Str], |_, args| Ok(Val::str(hex(&Sha256::digest(arg::text(args, 0)))))),
    fixed("adler32sum", &[Str], |_, args| Ok(Val::str(adler32(arg::text(args, 0)).to_string()))),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    let (mut low, mut high) = (1u32, 0u32);
    for &byte in bytes {
        low = (low + u32::from(byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}

/// An alphabet, and how many characters of how many bits make whole bytes.
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

fn encode(meter: &Meter, base: &Base, bytes: &[u8]) -> Result<Val, Failure> {
    meter.bytes(bytes.len() * 2)?;
    let mask = (1u32 << base.bits) - 1;
    let (mut out, mut buffer, mut held) = (Vec::new(), 0u32, 0u32);
    for &byte in bytes {
        buffer = buffer << 8 | u32::from(byte);
        held += 8;
        while held >= base.bits {
            held -= base.bits;
            out.push(base.alphabet[(buffer >> held & mask) as usize]);
        }
        buffer &= (1 << held) - 1;
    }
    if held > 0 {
        out.push(base.alphabet[(buffer << (base.bits - held) & mask) as usize]);
    }
    while out.len() % base.group != 0 {
        out.push(b'=');
    }
    Ok(Val::str(out))
}

fn decode(meter: &Meter, base: &Base, text: &[u8]) -> Result<Val, Failure> {
    meter.bytes(text.len())?;
    Ok(match decoded(base, text) {
        Ok(bytes) => Val::str(bytes),
        Err(at) => Val::str(format!("illegal {} data at input byte {at}", base.name)),
    })
}

/// The bytes, or the position that Go's decoder names. Line breaks are skipped.
fn decoded(base: &Base, text: &[u8]) -> Result<Vec<u8>, usize> {
    let digits: Vec<(usize, u8)> =
        text.iter().copied().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::new();
    let mut groups = digits.chunks(base.group).peekable();
    while let Some(group) = groups.next() {
        let (mut buffer, mut count) = (0u64, 0usize);
        for &(at, byte) in group {
            if byte == b'=' {
                break;
            }
            let digit = base.alphabet.iter().position(|&c| c == byte).ok_or(at)?;
            buffer = buffer << base.bits | digit as u64;
            count += 1;
        }
        let bits = count as u32 * base.bits;
        let start = group.first().map_or(0, |&(at, _)| at);
        check_padding(base, group, count, start, text.len())?;
        let whole = bits / 8;
        buffer >>= bits % 8;
        out.extend((0..whole).rev().map(|i| (buffer >> (8 * i) & 0xff) as u8));
        if count < base.group {
            if let Some(next) = groups.peek() {
                return Err(next.first().map_or(text.len(), |&(at, _)| at));
            }
        }
    }
    Ok(out)
}

/// Padding fills the last group, and only as many digits may stand before it as make bytes.
fn check_padding(
    base: &Base,
    group: &[(usize, u8)],
    count: usize,
    start: usize,
    length: usize,
) -> Result<(), usize> {
    if count == base.group {
        return Ok(());
    }
    if group.len() < base.group && count == group.len() {
        // The text ends within a group: Go names the start of what is incomplete.
        return Err(if base.bits == 6 { length - count.min(length) } else { start }.max(start));
    }
    let valid = match base.bits {
        6 => count >= 2,
        _ => matches!(count, 2 | 4 | 5 | 7),
    };
    if !valid {
        return Err(group.get(count).map_or(length, |&(at, _)| at));
    }
    match group[count..].iter().find(|(_, byte)| *byte != b'=') {
        Some(&(at, _)) => Err(at),
        None if group.len() < base.group => Err(length),
        None => Ok(()),
    }
}
