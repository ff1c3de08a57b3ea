//! Texts: letter case, words and wrapping, with the oddities of Go's `goutils`.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::{Int, Str};
use crate::function::{Function, arg, fixed};
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("upper", &[Str], |meter, args| mapped(meter, args, |text| text.chars().map(upper).collect())),
    fixed("lower", &[Str], |meter, args| mapped(meter, args, |text| text.chars().map(lower).collect())),
    fixed("title", &[Str], |meter, args| mapped(meter, args, title)),
    fixed("untitle", &[Str], |meter, args| mapped(meter, args, untitle)),
    fixed("swapcase", &[Str], |meter, args| mapped(meter, args, swapcase)),
    fixed("nospace", &[Str], nospace),
    fixed("initials", &[Str], initials),
    fixed("abbrev", &[Int, Str], abbrev),
    fixed("abbrevboth", &[Int, Int, Str], abbrev_both),
    fixed("wrap", &[Int, Str], |meter, args| {
        wrap(meter, arg::int(args, 0), b"\n", arg::text(args, 1), false)
    }),
    fixed("wrapWith", &[Int, Str, Str], |meter, args| {
        let separator = arg::text(args, 1);
        let separator = if separator.is_empty() { b"\n" } else { separator };
        wrap(meter, arg::int(args, 0), separator, arg::text(args, 2), true)
    }),
];

fn mapped(meter: &Meter, args: &[Val], map: fn(&str) -> String) -> Result<Val, Failure> {
    let text = arg::chars(args, 0);
    meter.bytes(text.len().saturating_mul(2))?;
    Ok(Val::str(map(&text)))
}

/// Go maps one character to one character.
pub(super) fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

/// Of the one character that becomes two, `İ`, Go has the first.
pub(super) fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// `strings.Title`: the first letter of each word.
fn title(text: &str) -> String {
    let mut previous = ' ';
    let is_separator = |c: char| match c {
        '_' => false,
        c if c.is_ascii() => !c.is_ascii_alphanumeric(),
        c if c.is_alphanumeric() => false,
        c => c.is_whitespace(),
    };
    text.chars()
        .map(|c| if is_separator(std::mem::replace(&mut previous, c)) { upper(c) } else { c })
        .collect()
}

fn untitle(text: &str) -> String {
    let mut at_start = true;
    text.chars()
        .map(|c| {
            if c.is_whitespace() {
                at_start = true;
                c
            } else if std::mem::take(&mut at_start) {
                lower(c)
            } else {
                c
            }
        })
        .collect()
}

fn swapcase(text: &str) -> String {
    let mut after_space = true;
    text.chars()
        .map(|c| {
            if c.is_uppercase() {
                after_space = false;
                lower(c)
            } else if c.is_lowercase() {
                after_space = false;
                upper(c)
            } else {
                after_space = c.is_whitespace();
                c
            }
        })
        .collect()
}

/// Treats each byte as a character: this damages a non-ASCII text with a space to delete, like
/// `goutils.DeleteWhiteSpace`.
fn nospace(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = arg::text(args, 0);
    meter.bytes(text.len().saturating_mul(2))?;
    let kept: String = text.iter().map(|&byte| char::from(byte)).filter(|&c| !c.is_whitespace()).collect();
    if kept.chars().count() == text.len() { Ok(args[0].clone()) } else { Ok(Val::str(kept)) }
}

/// Also byte by byte.
fn initials(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    meter.bytes(arg::text(args, 0).len())?;
    let mut after_gap = true;
    let mut out = String::new();
    for c in arg::text(args, 0).iter().map(|&byte| char::from(byte)) {
        if c.is_whitespace() {
            after_gap = true;
        } else if std::mem::take(&mut after_gap) {
            out.push(c);
        }
    }
    Ok(Val::str(out))
}

fn abbrev(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let width = arg::int(args, 0);
    if width < 4 {
        return Ok(args[1].clone());
    }
    meter.bytes(arg::text(args, 1).len())?;
    Ok(Val::str(abbreviated(arg::text(args, 1), 0, width)))
}

fn abbrev_both(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (left, right) = (arg::int(args, 0), arg::int(args, 1));
    if right < 4 || left > 0 && right < 7 {
        return Ok(args[2].clone());
    }
    meter.bytes(arg::text(args, 2).len())?;
    Ok(Val::str(abbreviated(arg::text(args, 2), left, right)))
}

/// `goutils.AbbreviateFull`; a width that it rejects gives an empty text.
fn abbreviated(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    const MARK: &[u8] = b"...";
    let Ok(width) = usize::try_from(width) else { return Vec::new() };
    if text.is_empty() || width < 4 {
        return Vec::new();
    }
    let length = text.len();
    if length <= width {
        return text.to_vec();
    }
    let room = width - 3;
    let offset = usize::try_from(offset).unwrap_or(0).min(length);
    let offset = if length - offset < room { length - room } else { offset };
    if offset <= 4 {
        return [&text[..room], MARK].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + room < length {
        let inner = abbreviated(&text[offset..], 0, i64::try_from(room).unwrap_or(0));
        return [MARK, &inner].concat();
    }
    [MARK, &text[length - room..]].concat()
}

/// `goutils.WrapCustom`: breaks at spaces, and within words only with `long_words`.
fn wrap(meter: &Meter, width: i64, separator: &[u8], text: &[u8], long_words: bool) -> Result<Val, Failure> {
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let spaces = text.iter().filter(|&&byte| byte == b' ').count();
    let breaks = if long_words { text.len() / width + spaces } else { spaces };
    meter.bytes(text.len().saturating_add(separator.len().saturating_mul(breaks + 1)))?;
    let mut out = Vec::with_capacity(text.len());
    let mut offset = 0;
    while text.len() - offset > width {
        if text[offset] == b' ' {
            offset += 1;
            continue;
        }
        let window = &text[offset..=offset + width];
        if let Some(space) = window.iter().rposition(|&byte| byte == b' ') {
            out.extend_from_slice(&text[offset..offset + space]);
            out.extend_from_slice(separator);
            offset += space + 1;
        } else if long_words {
            out.extend_from_slice(&text[offset..offset + width]);
            out.extend_from_slice(separator);
            offset += width;
        } else {
            let end = offset + width;
            match text[end..].iter().position(|&byte| byte == b' ') {
                None => break,
                Some(space) => {
                    out.extend_from_slice(&text[offset..end + space]);
                    out.extend_from_slice(separator);
                    offset = end + space + 1;
                }
            }
        }
    }
    out.extend_from_slice(&text[offset..]);
    Ok(Val::str(out))
}
