//! Texts: cutting, joining, padding, searching.

use std::collections::BTreeSet;

use super::coerce;
use crate::dynamic::{Elem, Map, Tree, Val};
use crate::error::Failure;
use crate::function::Type::{Any, Int, Str};
use crate::function::{Function, arg, fixed, variadic};
use crate::go::quote::{Keep, quote};
use crate::go::utf8;
use crate::limits::Meter;
use crate::print::ESCAPED;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("hello", &[], |_, _| Ok(Val::str("Hello!"))),
    fixed("trunc", &[Int, Str], trunc),
    fixed("substr", &[Int, Int, Str], substr),
    fixed("trim", &[Str], |meter, args| {
        kept(meter, args, 0, |text| trim_matching(text, char::is_whitespace))
    }),
    fixed("trimall", &[Str, Str], trim_all),
    fixed("trimAll", &[Str, Str], trim_all),
    fixed("trimSuffix", &[Str, Str], |meter, args| {
        kept(meter, args, 1, |text| text.strip_suffix(arg::text(args, 0)).unwrap_or(text))
    }),
    fixed("trimPrefix", &[Str, Str], |meter, args| {
        kept(meter, args, 1, |text| text.strip_prefix(arg::text(args, 0)).unwrap_or(text))
    }),
    fixed("repeat", &[Int, Str], repeat),
    fixed("contains", &[Str, Str], |_, args| {
        Ok(Val::Bool(find(arg::text(args, 1), arg::text(args, 0)).is_some()))
    }),
    fixed("hasPrefix", &[Str, Str], |_, args| {
        Ok(Val::Bool(arg::text(args, 1).starts_with(arg::text(args, 0))))
    }),
    fixed("hasSuffix", &[Str, Str], |_, args| {
        Ok(Val::Bool(arg::text(args, 1).ends_with(arg::text(args, 0))))
    }),
    variadic("quote", &[], Any, |meter, args| {
        spaced(meter, args, |text| {
            meter.bytes(text.len().saturating_mul(ESCAPED))?;
            Ok(quote(&text, Keep::Printable).into_bytes())
        })
    }),
    variadic("squote", &[], Any, |meter, args| {
        spaced(meter, args, |text| Ok([b"'", text.as_slice(), b"'"].concat()))
    }),
    variadic("cat", &[], Any, |meter, args| spaced(meter, args, Ok)),
    fixed("indent", &[Int, Str], indent),
    fixed("nindent", &[Int, Str], nindent),
    fixed("replace", &[Str, Str, Str], replace),
    fixed("plural", &[Str, Str, Int], |_, args| Ok(args[usize::from(arg::int(args, 2) != 1)].clone())),
    fixed("toString", &[Any], |meter, args| Ok(Val::str(coerce::text(meter, &args[0])?))),
    fixed("toStrings", &[Any], |meter, args| Ok(coerce::string_list(coerce::texts(meter, &args[0])?))),
    fixed("split", &[Str, Str], |meter, args| numbered(meter, arg::text(args, 0), -1, arg::text(args, 1))),
    fixed("splitn", &[Str, Int, Str], |meter, args| {
        numbered(meter, arg::text(args, 0), arg::int(args, 1), arg::text(args, 2))
    }),
    fixed("splitList", &[Str, Str], split_list),
    fixed("join", &[Str, Any], join),
    fixed("sortAlpha", &[Any], sort_alpha),
];

/// Position of a part in a text.
pub(super) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

fn bounds(text: String) -> Failure {
    Failure::new(format!("runtime error: slice bounds out of range {text}"))
}

fn trunc(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (length, text) = (arg::int(args, 0), arg::text(args, 1));
    meter.bytes(text.len())?;
    match usize::try_from(length) {
        Ok(length) => Ok(Val::str(&text[..length.min(text.len())])),
        Err(_) => Err(bounds(format!("[:{length}]"))),
    }
}

/// Go slices first and checks little: a start below 0 is the beginning, an end below 0 or beyond the text is
/// its end.
fn substr(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (start, end, text) = (arg::int(args, 0), arg::int(args, 1), arg::text(args, 2));
    meter.bytes(text.len())?;
    let length = text.len();
    let Ok(start) = usize::try_from(start) else {
        return match usize::try_from(end) {
            Ok(end) if end <= length => Ok(Val::str(&text[..end])),
            Ok(_) => Err(bounds(format!("[:{end}] with length {length}"))),
            Err(_) => Err(bounds(format!("[:{end}]"))),
        };
    };
    let end = usize::try_from(end).ok().filter(|&end| end <= length);
    match text.get(start..end.unwrap_or(length)) {
        Some(part) => Ok(Val::str(part)),
        None => Err(bounds(format!("[{start}:{}]", end.unwrap_or(length)))),
    }
}

/// A part of the text at this place.
fn kept(meter: &Meter, args: &[Val], at: usize, part: impl Fn(&[u8]) -> &[u8]) -> Result<Val, Failure> {
    meter.bytes(arg::text(args, at).len())?;
    Ok(Val::str(part(arg::text(args, at))))
}

fn trim_all(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    meter.items(arg::text(args, 0).len())?;
    let set: BTreeSet<char> = utf8::chars(arg::text(args, 0)).collect();
    kept(meter, args, 1, |text| trim_matching(text, |c| set.contains(&c)))
}

/// `strings.TrimFunc` on bytes.
fn trim_matching(text: &[u8], matches: impl Fn(char) -> bool) -> &[u8] {
    let mut start = 0;
    while start < text.len() {
        let (c, width) = utf8::decode(&text[start..]);
        if !matches(c.unwrap_or(char::REPLACEMENT_CHARACTER)) {
            break;
        }
        start += width;
    }
    let mut end = text.len();
    while end > start {
        let width = last_width(&text[start..end]);
        let c = utf8::decode(&text[end - width..end]).0;
        if !matches(c.unwrap_or(char::REPLACEMENT_CHARACTER)) {
            break;
        }
        end -= width;
    }
    &text[start..end]
}

/// Width of the last character.
fn last_width(text: &[u8]) -> usize {
    (1..=text.len().min(4))
        .find(|&width| matches!(utf8::decode(&text[text.len() - width..]), (Some(_), w) if w == width))
        .unwrap_or(1)
}

/// `strings.Repeat`, within the bounds of a rendering.
fn repeated(meter: &Meter, count: i64, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let Ok(count) = usize::try_from(count) else {
        return Err(Failure::new("strings: negative Repeat count"));
    };
    if text.is_empty() {
        return Ok(Vec::new());
    }
    meter.bytes(text.len().saturating_mul(count))?;
    Ok(text.repeat(count))
}

fn repeat(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    Ok(Val::str(repeated(meter, arg::int(args, 0), arg::text(args, 1))?))
}

fn joined(meter: &Meter, parts: &[Vec<u8>], separator: &[u8]) -> Result<Val, Failure> {
    let length = parts.iter().map(Vec::len).sum::<usize>();
    meter.bytes(length.saturating_add(separator.len().saturating_mul(parts.len())))?;
    Ok(Val::str(parts.join(separator)))
}

/// The values except nils as texts, each changed, with spaces between them.
fn spaced(
    meter: &Meter,
    args: &[Val],
    change: impl Fn(Vec<u8>) -> Result<Vec<u8>, Failure>,
) -> Result<Val, Failure> {
    let values = args.iter().filter(|value| !matches!(value, Val::Nil));
    let parts = values.map(|value| change(coerce::text(meter, value)?)).collect::<Result<Vec<_>, _>>()?;
    joined(meter, &parts, b" ")
}

fn indented(meter: &Meter, args: &[Val]) -> Result<Vec<u8>, Failure> {
    let pad = repeated(meter, arg::int(args, 0), b" ")?;
    let text = arg::text(args, 1);
    let breaks = text.iter().filter(|&&byte| byte == b'\n').count();
    meter.bytes(text.len().saturating_add(pad.len().saturating_mul(breaks + 1)))?;
    let mut out = pad.clone();
    for &byte in text {
        out.push(byte);
        if byte == b'\n' {
            out.extend_from_slice(&pad);
        }
    }
    Ok(out)
}

fn indent(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    Ok(Val::str(indented(meter, args)?))
}

fn nindent(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = indented(meter, args)?;
    meter.bytes(text.len())?;
    Ok(Val::str([b"\n", text.as_slice()].concat()))
}

fn replace(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (old, new, text) = (arg::text(args, 0), arg::text(args, 1), arg::text(args, 2));
    let parts = split(meter, text, old, -1)?;
    if old.is_empty() {
        // Go inserts the new text before every character and at the end.
        meter.bytes(text.len().saturating_add(new.len().saturating_mul(parts.len() + 1)))?;
        let mut out = new.to_vec();
        for part in parts {
            out.extend_from_slice(part);
            out.extend_from_slice(new);
        }
        return Ok(Val::str(out));
    }
    meter.bytes(text.len().saturating_add(new.len().saturating_mul(parts.len())))?;
    Ok(Val::str(parts.join(new)))
}

/// `strings.SplitN`: at most `limit` parts, or all if it is below 0; characters if the separator is empty.
fn split<'t>(meter: &Meter, text: &'t [u8], separator: &[u8], limit: i64) -> Result<Vec<&'t [u8]>, Failure> {
    let mut parts = Vec::new();
    if limit == 0 {
        return Ok(parts);
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut rest = text;
    if separator.is_empty() {
        while !rest.is_empty() && parts.len() + 1 < limit {
            let (part, after) = rest.split_at(utf8::decode(rest).1);
            meter.items(1)?;
            parts.push(part);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
        return Ok(parts);
    }
    let finder = memchr::memmem::Finder::new(separator);
    while parts.len() + 1 < limit {
        let Some(at) = finder.find(rest) else { break };
        meter.items(1)?;
        parts.push(&rest[..at]);
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest);
    Ok(parts)
}

/// `split` and `splitn`: a map with the keys `_0`, `_1`, and so on.
fn numbered(meter: &Meter, separator: &[u8], limit: i64, text: &[u8]) -> Result<Val, Failure> {
    let parts = split(meter, text, separator, limit)?;
    meter.entries(parts.len())?;
    meter.bytes(text.len())?;
    let entries: Tree = parts
        .iter()
        .enumerate()
        .map(|(i, part)| (format!("_{i}").into_bytes().into(), Val::str(part)))
        .collect();
    Ok(Val::Map(Map::new(Elem::Str, entries)))
}

fn split_list(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = arg::text(args, 1);
    let parts = split(meter, text, arg::text(args, 0), -1)?;
    meter.items(parts.len())?;
    meter.bytes(text.len())?;
    Ok(Val::strings(parts))
}

fn join(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let parts = coerce::texts(meter, &args[1])?;
    joined(meter, &parts, arg::text(args, 0))
}

fn sort_alpha(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut texts = match &args[0] {
        Val::List(_) => coerce::texts(meter, &args[0])?,
        other => vec![coerce::text(meter, other)?],
    };
    // A comparison reads at most one text; sorting compares each text about log2(n) times.
    let bytes = texts.iter().map(Vec::len).sum::<usize>();
    meter.read(bytes.saturating_add(texts.len()).saturating_mul(texts.len().max(1).ilog2() as usize))?;
    texts.sort();
    Ok(coerce::string_list(texts))
}
