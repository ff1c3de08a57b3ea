//! Values to the bytes of `gopkg.in/yaml.v2` 2.3: keys in its order, two spaces, sequences not indented
//! under their key, no folding of long lines.

use serde_json::Value;

use super::key_order::sorted;
use super::style::{Style, is_break, is_printable, style, style_of_base64};
use crate::go::float::shortest;

/// A value to write; numbers keep their Go type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Doc {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// A scalar that is written as it is.
    Plain(String),
    /// Bytes that need not be UTF-8.
    Text(Vec<u8>),
    Seq(Vec<Doc>),
    Map(Vec<(Vec<u8>, Doc)>),
}

impl From<&Value> for Doc {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) => Self::Uint(value),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(text.as_bytes().to_vec()),
            Value::Array(items) => Self::Seq(items.iter().map(Self::from).collect()),
            Value::Object(map) => Self::Map(
                map.iter().map(|(key, value)| (key.as_bytes().to_vec(), Self::from(value))).collect(),
            ),
        }
    }
}

/// A JSON value as yaml.v2 writes it; integers stay integers.
pub fn write(value: &Value) -> String {
    let unbounded = |_: usize| Ok::<(), std::convert::Infallible>(());
    match Doc::from(value).write(unbounded) {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

impl Doc {
    /// The document with its final line break. Calls `charge` before each value, with the bytes written
    /// since the last call.
    pub(crate) fn write<E>(self, charge: impl Fn(usize) -> Result<(), E>) -> Result<String, E> {
        let mut emitter = Emitter { out: String::new(), charged: 0, charge };
        match &self {
            Self::Map(entries) if !entries.is_empty() => emitter.map(entries, 0, true)?,
            Self::Seq(items) if !items.is_empty() => emitter.sequence(items, 0, true)?,
            other => {
                emitter.leaf(other, 0);
                emitter.end_line();
            }
        }
        emitter.pay()?;
        Ok(emitter.out)
    }
}

struct Emitter<C> {
    out: String,
    charged: usize,
    charge: C,
}

// Containers.
impl<E, C: Fn(usize) -> Result<(), E>> Emitter<C> {
    fn pay(&mut self) -> Result<(), E> {
        let written = self.out.len() - std::mem::replace(&mut self.charged, self.out.len());
        (self.charge)(written)
    }

    fn map(&mut self, entries: &[(Vec<u8>, Doc)], indent: usize, mut at_start: bool) -> Result<(), E> {
        for (key, value) in sorted(entries.iter().collect()) {
            if !std::mem::take(&mut at_start) {
                self.indent(indent);
            }
            let key_text = String::from_utf8_lossy(key);
            let simple = key.len() <= 128 && !key_text.contains(is_break);
            if !simple {
                self.out.push_str("? ");
            }
            self.text(key, indent, simple);
            if !simple {
                self.end_line();
                self.indent(indent);
            }
            self.out.push(':');
            self.value(value, indent, indent, !simple)?;
        }
        Ok(())
    }

    fn sequence(&mut self, items: &[Doc], indent: usize, mut at_start: bool) -> Result<(), E> {
        for item in items {
            if !std::mem::take(&mut at_start) {
                self.indent(indent);
            }
            self.out.push('-');
            self.value(item, indent, indent + 2, true)?;
        }
        Ok(())
    }

    /// A value after `:` or `-`; containers after a dash start on its line.
    fn value(&mut self, value: &Doc, indent: usize, sequence_indent: usize, inline: bool) -> Result<(), E> {
        self.pay()?;
        match value {
            Doc::Map(entries) if !entries.is_empty() => {
                if inline {
                    self.out.push(' ');
                    self.map(entries, indent + 2, true)
                } else {
                    self.out.push('\n');
                    self.map(entries, indent + 2, false)
                }
            }
            Doc::Seq(items) if !items.is_empty() => {
                if inline {
                    self.out.push(' ');
                    self.sequence(items, sequence_indent.max(indent + 2), true)
                } else {
                    self.out.push('\n');
                    self.sequence(items, sequence_indent, false)
                }
            }
            leaf => {
                self.out.push(' ');
                self.leaf(leaf, indent);
                self.end_line();
                Ok(())
            }
        }
    }
}

// Leaves.
impl<C> Emitter<C> {
    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Ends a line, unless a block scalar has ended it.
    fn end_line(&mut self) {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn leaf(&mut self, value: &Doc, indent: usize) {
        match value {
            Doc::Null => self.out.push_str("null"),
            Doc::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Doc::Int(value) => self.out.push_str(&value.to_string()),
            Doc::Uint(value) => self.out.push_str(&value.to_string()),
            Doc::Float(value) => self.out.push_str(&match *value {
                value if value.is_nan() => ".nan".to_owned(),
                f64::INFINITY => ".inf".to_owned(),
                f64::NEG_INFINITY => "-.inf".to_owned(),
                value => shortest(value),
            }),
            Doc::Plain(text) => self.out.push_str(text),
            Doc::Text(bytes) => self.text(bytes, indent, false),
            Doc::Seq(_) => self.out.push_str("[]"),
            Doc::Map(_) => self.out.push_str("{}"),
        }
    }

    fn text(&mut self, bytes: &[u8], indent: usize, simple_key: bool) {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                let style = style(text, simple_key);
                self.styled(text, style, indent);
            }
            Err(_) => {
                self.out.push_str("!!binary ");
                let text = base64_lines(bytes);
                let style =
                    if text.contains('\n') && !simple_key { Style::Literal } else { style_of_base64(&text) };
                self.styled(&text, style, indent);
            }
        }
    }

    fn styled(&mut self, text: &str, style: Style, indent: usize) {
        match style {
            Style::Plain => self.out.push_str(text),
            Style::Single => self.single_quoted(text),
            Style::Double => self.double_quoted(text),
            Style::Literal => self.literal(text, indent + 2),
        }
    }

    fn single_quoted(&mut self, text: &str) {
        self.out.push('\'');
        self.out.push_str(&text.replace('\'', "''"));
        self.out.push('\'');
    }

    fn double_quoted(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                c if is_printable(c) && !is_break(c) && c != '\u{feff}' => self.out.push(c),
                '\0' => self.out.push_str("\\0"),
                '\x07' => self.out.push_str("\\a"),
                '\x08' => self.out.push_str("\\b"),
                '\t' => self.out.push_str("\\t"),
                '\n' => self.out.push_str("\\n"),
                '\x0b' => self.out.push_str("\\v"),
                '\x0c' => self.out.push_str("\\f"),
                '\r' => self.out.push_str("\\r"),
                '\x1b' => self.out.push_str("\\e"),
                '\u{85}' => self.out.push_str("\\N"),
                '\u{a0}' => self.out.push_str("\\_"),
                '\u{2028}' => self.out.push_str("\\L"),
                '\u{2029}' => self.out.push_str("\\P"),
                c => self.out.push_str(&match u32::from(c) {
                    code @ 0..=0xff => format!("\\x{code:02X}"),
                    code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                    code => format!("\\U{code:08X}"),
                }),
            }
        }
        self.out.push('"');
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.out.push('|');
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.out.push('2');
        }
        let body = text.strip_suffix(is_break);
        match body {
            None => self.out.push('-'),
            Some(body) if body.is_empty() || body.ends_with(is_break) => self.out.push('+'),
            Some(_) => {}
        }
        self.out.push('\n');
        let mut at_line_start = true;
        for c in text.chars() {
            if is_break(c) {
                self.out.push(c);
                at_line_start = true;
            } else {
                if std::mem::take(&mut at_line_start) {
                    self.indent(indent);
                }
                self.out.push(c);
            }
        }
    }
}

fn base64_lines(bytes: &[u8]) -> String {
    use base64::Engine as _;
    const LINE: usize = 70;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    if encoded.len() < LINE {
        return encoded;
    }
    let mut out = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    for (i, c) in encoded.chars().enumerate() {
        if i > 0 && i % LINE == 0 {
            out.push('\n');
        }
        out.push(c);
    }
    out.push('\n');
    out
}
