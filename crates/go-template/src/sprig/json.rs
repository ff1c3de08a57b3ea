//! `toJson` and `toPrettyJson`: the bytes of Go's `encoding/json`. An unsupported value gives an empty text,
//! as sprig drops the error.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::Any;
use crate::function::{Function, fixed};
use crate::go::float::format_float;
use crate::go::utf8;
use crate::limits::{LimitReached, MAX_VALUE_DEPTH, Meter};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("toJson", &[Any], |meter, args| encode(meter, &args[0], false)),
    fixed("toPrettyJson", &[Any], |meter, args| encode(meter, &args[0], true)),
];

fn encode(meter: &Meter, value: &Val, pretty: bool) -> Result<Val, Failure> {
    let mut writer = Writer { out: Vec::new(), pretty, meter };
    match writer.value(value, 0) {
        Ok(()) => Ok(Val::str(writer.out)),
        Err(Stop::NotJson) => Ok(Val::str("")),
        Err(Stop::Limit(limit)) => Err(limit.into()),
    }
}

enum Stop {
    NotJson,
    Limit(LimitReached),
}

impl From<LimitReached> for Stop {
    fn from(limit: LimitReached) -> Self {
        Self::Limit(limit)
    }
}

struct Writer<'m> {
    out: Vec<u8>,
    pretty: bool,
    meter: &'m Meter<'m>,
}

impl Writer<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.meter.bytes(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn value(&mut self, value: &Val, depth: usize) -> Result<(), Stop> {
        if depth > MAX_VALUE_DEPTH {
            return Err(LimitReached::ValueDepth.into());
        }
        match value {
            Val::Nil => self.push(b"null"),
            Val::Bool(value) => self.push(value.to_string().as_bytes()),
            Val::Int(value) | Val::Int64(value) => self.push(value.to_string().as_bytes()),
            Val::Byte(value) => self.push(value.to_string().as_bytes()),
            Val::Float(value) => {
                let text = number(*value).ok_or(Stop::NotJson)?;
                self.push(text.as_bytes())
            }
            Val::Str(text) => self.text(text),
            Val::Version(version) => self.text(version.to_string().as_bytes()),
            Val::Time(time) => match time.civil().year {
                0..10_000 => self.text(time.rfc3339().as_bytes()),
                _ => Err(Stop::NotJson),
            },
            Val::Certificate(pair) => {
                let fields = [("Cert", &pair.cert), ("Key", &pair.key)];
                self.container(b"{", b"}", fields.len(), depth, |writer, i| {
                    let (name, text) = fields[i];
                    writer.text(name.as_bytes())?;
                    writer.push(if writer.pretty { b": " } else { b":" })?;
                    writer.text(text)
                })
            }
            Val::List(list) => {
                let items = list.items();
                self.container(b"[", b"]", items.len(), depth, |writer, i| writer.value(&items[i], depth + 1))
            }
            Val::Map(map) => {
                self.meter.visit(map.len())?;
                let entries = map.entries();
                self.container(b"{", b"}", entries.len(), depth, |writer, i| {
                    let (key, value) = &entries[i];
                    writer.text(key)?;
                    writer.push(if writer.pretty { b": " } else { b":" })?;
                    writer.value(value, depth + 1)
                })
            }
        }
    }

    fn container(
        &mut self,
        open: &[u8],
        close: &[u8],
        count: usize,
        depth: usize,
        mut element: impl FnMut(&mut Self, usize) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.push(open)?;
        for i in 0..count {
            if i > 0 {
                self.push(b",")?;
            }
            self.line(depth + 1)?;
            element(self, i)?;
        }
        if count > 0 {
            self.line(depth)?;
        }
        self.push(close)
    }

    fn line(&mut self, depth: usize) -> Result<(), Stop> {
        if self.pretty {
            self.push(b"\n")?;
            self.push(&b"  ".repeat(depth))?;
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Stop> {
        self.push(b"\"")?;
        let mut rest = text;
        while !rest.is_empty() {
            let (c, width) = utf8::decode(rest);
            rest = &rest[width..];
            let Some(c) = c else {
                self.push(b"\\ufffd")?;
                continue;
            };
            match c {
                '"' => self.push(b"\\\"")?,
                '\\' => self.push(b"\\\\")?,
                '\n' => self.push(b"\\n")?,
                '\r' => self.push(b"\\r")?,
                '\t' => self.push(b"\\t")?,
                '\x08' => self.push(b"\\b")?,
                '\x0c' => self.push(b"\\f")?,
                c if c < ' ' || matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') => {
                    self.push(format!("\\u{:04x}", u32::from(c)).as_bytes())?;
                }
                c => self.push(c.encode_utf8(&mut [0; 4]).as_bytes())?,
            }
        }
        self.push(b"\"")
    }
}

/// A float in ES6 format, like `encoding/json`; `None` for infinities and NaN.
pub(super) fn number(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format_float(value, 'e', None);
        // Go changes e-09 to e-9, and keeps positive exponents, which have two digits here.
        return Some(text.replace("e-0", "e-"));
    }
    Some(format_float(value, 'f', None))
}
