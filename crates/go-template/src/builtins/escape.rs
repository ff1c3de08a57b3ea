//! `html`, `js`, `urlquery`.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::go::utf8::{decode, is_print};
use crate::limits::Meter;
use crate::print;

/// `evalArgs`: the text of the arguments as Go would print them together.
fn text(meter: &Meter, args: &[Val]) -> Result<Vec<u8>, Failure> {
    match args {
        [Val::Str(text)] => Ok(text.to_vec()),
        args => {
            let shown = args.iter().map(|arg| match arg {
                Val::Nil => Val::str("<no value>"),
                arg => arg.clone(),
            });
            print::sprint(meter, &shown.collect::<Vec<_>>())
        }
    }
}

pub(super) fn html(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = text(meter, args)?;
    meter.bytes(text.len() * 5)?;
    let mut out = Vec::with_capacity(text.len());
    for &byte in &text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(byte),
        }
    }
    Ok(Val::str(out))
}

pub(super) fn js(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = text(meter, args)?;
    meter.bytes(text.len() * 6)?;
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        let (c, width) = decode(rest);
        match c {
            Some('\\') => out.extend_from_slice(br"\\"),
            Some('\'') => out.extend_from_slice(br"\'"),
            Some('"') => out.extend_from_slice(br#"\""#),
            Some(c) if !matches!(c, '<' | '>' | '&' | '=') && c >= ' ' && (c.is_ascii() || is_print(c)) => {
                out.extend_from_slice(&rest[..width]);
            }
            Some(c) => out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes()),
            // Go decodes U+FFFD, considers it printable, and writes the original byte.
            None => out.extend_from_slice(&rest[..width]),
        }
        rest = &rest[width..];
    }
    Ok(Val::str(out))
}

pub(super) fn urlquery(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = text(meter, args)?;
    meter.bytes(text.len() * 3)?;
    let mut out = String::with_capacity(text.len());
    for &byte in &text {
        match byte {
            b' ' => out.push('+'),
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(Val::str(out))
}
