//! What is random: drawn from the generator that the program gives, so that one rendering can be repeated.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::{Int, Str};
use crate::function::{Function, arg, fixed};
use crate::generator::Stream;
use crate::go::utf8;
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("randAlphaNum", &[Int], |meter, args| drawn(meter, args, |c| c.is_ascii_alphanumeric())),
    fixed("randAlpha", &[Int], |meter, args| drawn(meter, args, |c| c.is_ascii_alphabetic())),
    fixed("randNumeric", &[Int], |meter, args| drawn(meter, args, |c| c.is_ascii_digit())),
    fixed("randAscii", &[Int], |meter, args| drawn(meter, args, |c| matches!(c, b' '..=b'~'))),
    fixed("shuffle", &[Str], shuffled),
    fixed("uuidv4", &[], uuid),
];

/// Work of a random character: a hash for four of them.
const DRAWN: usize = 64;

/// Random bytes of one call.
pub(super) fn stream(meter: &Meter) -> Result<Stream, Failure> {
    const MISSING: &str = "this rendering has no source of randomness: pass the text as a value";
    meter.stream().ok_or(Failure::NoGenerator(MISSING))
}

/// A text of random characters; of a negative length it is empty.
fn drawn(meter: &Meter, args: &[Val], is_wanted: fn(&u8) -> bool) -> Result<Val, Failure> {
    let count = usize::try_from(arg::int(args, 0)).unwrap_or(0);
    meter.bytes(count)?;
    meter.read(count.saturating_mul(DRAWN))?;
    let mut stream = stream(meter)?;
    let alphabet: Vec<u8> = (0..=u8::MAX).filter(is_wanted).collect();
    let mut out = Vec::with_capacity(count);
    for _ in 0..count {
        out.push(alphabet[index(&mut stream, alphabet.len())]);
    }
    Ok(Val::str(out))
}

/// A random number below `end`.
fn index(stream: &mut Stream, end: usize) -> usize {
    usize::try_from(stream.below(end as u64)).unwrap_or(0)
}

/// The characters in random order.
fn shuffled(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let length = arg::text(args, 0).len();
    if length == 0 {
        return Ok(Val::str(""));
    }
    meter.bytes(length.saturating_mul(8))?;
    meter.read(length.saturating_mul(DRAWN))?;
    let mut stream = stream(meter)?;
    let mut chars: Vec<char> = utf8::chars(arg::text(args, 0)).collect();
    for i in (1..chars.len()).rev() {
        chars.swap(i, index(&mut stream, i + 1));
    }
    Ok(Val::str(String::from_iter(chars)))
}

fn uuid(meter: &Meter, _: &[Val]) -> Result<Val, Failure> {
    meter.bytes(8 * DRAWN)?;
    let mut bytes = stream(meter)?.bytes(16);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(Val::str(parts.join("-")))
}
