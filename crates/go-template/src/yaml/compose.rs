//! Events of the YAML parser to JSON values.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag, options};

use super::error::{Aliases, MAX_DEPTH, YamlError, YamlProblem};
use super::made::{self, Made};
use super::scalar::{Scalar, resolve};
use crate::go::base64_bytes;
use crate::go::float::{rounded_to_f32, shortest};

/// Limit of a scalar's characters in an error.
const SHOWN: usize = 64;

type Composed<T> = Result<T, YamlError>;

pub(super) struct Composer<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    aliases: Aliases,
    /// Values by anchor, with the bytes of each.
    anchors: HashMap<usize, (Value, usize)>,
    made: &'t Made<'t>,
    depth: usize,
    /// Line and column of the last event.
    last: (usize, usize),
    /// Byte where the last event ends.
    end: usize,
}

/// A key in the text.
enum Key {
    Name(String),
    Merge,
}

impl<'t> Composer<'t> {
    pub(super) fn new(text: &'t str, aliases: Aliases, made: &'t Made<'t>) -> Self {
        let parser = Parser::new_from_str_with_options(text, options! { emit_comments: false });
        Self { text, parser, aliases, anchors: HashMap::new(), made, depth: 0, last: (1, 0), end: 0 }
    }

    fn error<T>(&self, problem: YamlProblem) -> Composed<T> {
        let (line, column) = self.last;
        Err(YamlError { line, column, problem })
    }

    /// The next significant event.
    fn next(&mut self) -> Composed<Event<'t>> {
        if let Err(why) = self.made.event() {
            return self.error(why.into());
        }
        match self.parser.next_event() {
            None => Ok(Event::StreamEnd),
            Some(Ok((event, span))) => {
                self.mark(&span);
                Ok(event)
            }
            Some(Err(error)) => self.syntax(&error),
        }
    }

    fn mark(&mut self, span: &Span) {
        self.last = (span.start.line(), span.start.col());
        self.end = span.end.byte_offset().unwrap_or(0);
    }

    fn syntax<T>(&mut self, error: &ScanError) -> Composed<T> {
        let marker = error.marker();
        self.last = (marker.line(), marker.col());
        self.error(YamlProblem::Syntax(error.info()))
    }

    pub(super) fn document(&mut self) -> Composed<Value> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
                event => {
                    let value = self.node(event)?;
                    // Further text belongs to the next document, unless it is an error.
                    self.next()?;
                    return Ok(value);
                }
            }
        }
    }

    /// Charges for this many bytes, before they are created.
    fn charge(&self, bytes: usize) -> Composed<()> {
        self.made.charge(bytes).or_else(|problem| self.error(problem))
    }

    fn node(&mut self, event: Event<'t>) -> Composed<Value> {
        let before = self.made.spent();
        self.charge(made::VALUE)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(text.len())?;
                let text = self.without_unwritten_break(&text, style);
                let scalar = self.scalar(text, style, tag.as_deref())?;
                (self.json(scalar, text)?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.deeper(Self::sequence)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.deeper(Self::mapping)?, anchor),
            Event::Alias(id) => return self.alias(id),
            _ => return self.error(YamlProblem::Syntax("a value was expected here".to_owned())),
        };
        if anchor != 0 {
            self.keep(anchor, &value, self.made.spent() - before)?;
        }
        Ok(value)
    }

    /// Stores a copy for the aliases of an anchor.
    fn keep(&mut self, anchor: usize, value: &Value, bytes: usize) -> Composed<()> {
        if self.aliases == Aliases::Counted {
            self.charge(made::LIST + bytes)?;
            self.anchors.insert(anchor, (value.clone(), bytes));
        }
        Ok(())
    }

    /// A block scalar cut off by the end of the text has no final line break in Go, but one in YAML 1.2.
    /// Chunks of a rendered template end like this: the mark between two documents consumes the preceding
    /// line break.
    fn without_unwritten_break<'s>(&self, value: &'s str, style: ScalarStyle) -> &'s str {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if !is_block || self.end < self.text.len() {
            return value;
        }
        let last_line = self.text.rsplit('\n').next().unwrap_or_default();
        let body = value.strip_suffix('\n').unwrap_or(value);
        let last_value_line = body.rsplit('\n').next().unwrap_or_default();
        // A line of spaces is content only if it is indented further than the scalar.
        let is_blank = |line: &str| line.bytes().all(|byte| byte == b' ');
        let is_content = !is_blank(last_line) || !last_value_line.is_empty() && is_blank(last_value_line);
        if is_content && !last_line.is_empty() { body } else { value }
    }

    fn alias(&mut self, id: usize) -> Composed<Value> {
        if self.aliases == Aliases::Refused {
            return self.error(YamlProblem::Alias);
        }
        let Some((value, bytes)) = self.anchors.get(&id) else {
            return self.error(YamlProblem::Syntax("an anchor's value contains itself".to_owned()));
        };
        self.charge(*bytes)?;
        Ok(value.clone())
    }

    fn deeper(&mut self, read: fn(&mut Self) -> Composed<Value>) -> Composed<Value> {
        if self.depth >= MAX_DEPTH {
            return self.error(YamlProblem::TooDeep);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn sequence(&mut self) -> Composed<Value> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                event => {
                    if items.is_empty() {
                        self.charge(made::LIST)?;
                    }
                    items.push(self.node(event)?);
                }
            }
        }
    }

    /// Of duplicate keys the last one wins, also against merged ones.
    fn mapping(&mut self) -> Composed<Value> {
        let mut map = Map::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(Value::Object(map)),
                event => {
                    if map.is_empty() {
                        self.charge(made::MAP)?;
                    }
                    self.key(event)?
                }
            };
            let event = self.next()?;
            let value = self.node(event)?;
            match key {
                Key::Name(name) => {
                    map.insert(name, value);
                }
                Key::Merge => self.merge(&mut map, value)?,
            }
        }
    }

    fn merge(&self, map: &mut Map<String, Value>, value: Value) -> Composed<()> {
        match value {
            Value::Object(entries) => map.extend(entries),
            Value::Array(items) => {
                // Earlier maps of the list win over later ones.
                for item in items.into_iter().rev() {
                    match item {
                        Value::Object(entries) => map.extend(entries),
                        _ => return self.error(YamlProblem::Merge),
                    }
                }
            }
            _ => return self.error(YamlProblem::Merge),
        }
        Ok(())
    }

    fn key(&mut self, event: Event<'t>) -> Composed<Key> {
        self.charge(made::ENTRY)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(text.len())?;
                let scalar = self.scalar(&text, style, tag.as_deref())?;
                if anchor != 0 {
                    let value = self.json(scalar.clone(), &text)?;
                    self.keep(anchor, &value, made::VALUE + text.len())?;
                }
                self.key_name(scalar, &text)
            }
            Event::Alias(id) => match self.alias(id)? {
                Value::String(text) => Ok(Key::Name(text)),
                Value::Bool(value) => Ok(Key::Name(value.to_string())),
                Value::Number(number) => Ok(Key::Name(number.to_string())),
                Value::Null => self.error(YamlProblem::Key("null")),
                Value::Array(_) => self.error(YamlProblem::Key("sequence")),
                Value::Object(_) => self.error(YamlProblem::Key("map")),
            },
            Event::SequenceStart(..) => self.error(YamlProblem::Key("sequence")),
            _ => self.error(YamlProblem::Key("map")),
        }
    }

    fn key_name(&self, scalar: Resolved<'_>, text: &str) -> Composed<Key> {
        Ok(Key::Name(match scalar {
            Resolved::Plain(Scalar::Null) => return self.error(YamlProblem::Key("null")),
            Resolved::Plain(Scalar::Uint(_)) => return self.error(YamlProblem::Key("uint64")),
            Resolved::Plain(Scalar::Bool(value)) => value.to_string(),
            Resolved::Plain(Scalar::Int(value)) => value.to_string(),
            Resolved::Plain(Scalar::Float(value)) => match value {
                value if value.is_nan() => ".nan".to_owned(),
                f64::INFINITY => ".inf".to_owned(),
                f64::NEG_INFINITY => "-.inf".to_owned(),
                // Go formats float keys with 32 bits.
                value => shortest(rounded_to_f32(value)),
            },
            Resolved::Plain(Scalar::Text) if text == "<<" => return Ok(Key::Merge),
            Resolved::Plain(Scalar::Text) => text.to_owned(),
            Resolved::Text(text) => text.into_owned(),
        }))
    }

    fn scalar<'s>(&self, text: &'s str, style: ScalarStyle, tag: Option<&Tag>) -> Composed<Resolved<'s>> {
        let Some(suffix) = tag.and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:")) else {
            let plain = style == ScalarStyle::Plain && tag.is_none();
            return Ok(if plain { Resolved::Plain(resolve(text)) } else { Resolved::Text(text.into()) });
        };
        if suffix == "binary" {
            return match base64_text(text) {
                Some(text) => Ok(Resolved::Text(text.into())),
                None => {
                    self.error(YamlProblem::Syntax("!!binary value contains invalid base64 data".to_owned()))
                }
            };
        }
        let resolved = resolve(text);
        let fits = match (suffix.as_ref(), &resolved) {
            ("str", _) => return Ok(Resolved::Text(text.into())),
            ("float", Scalar::Int(value)) => return Ok(Resolved::Plain(Scalar::Float(*value as f64))),
            ("int", Scalar::Int(_) | Scalar::Uint(_))
            | ("float", Scalar::Float(_))
            | ("bool", Scalar::Bool(_))
            | ("null", Scalar::Null)
            | ("timestamp", Scalar::Text) => true,
            ("int" | "float" | "bool" | "null" | "timestamp", _) => false,
            _ => return Ok(Resolved::Text(text.into())),
        };
        if fits {
            return Ok(Resolved::Plain(resolved));
        }
        let mut value: String = text.chars().take(SHOWN).collect();
        if value.len() < text.len() {
            value.push_str("...");
        }
        self.error(YamlProblem::Tag { value, tag: format!("!!{suffix}") })
    }

    fn json(&self, scalar: Resolved<'_>, text: &str) -> Composed<Value> {
        Ok(match scalar {
            Resolved::Text(text) => Value::String(text.into_owned()),
            Resolved::Plain(Scalar::Null) => Value::Null,
            Resolved::Plain(Scalar::Bool(value)) => Value::Bool(value),
            Resolved::Plain(Scalar::Int(value)) => Value::Number(value.into()),
            Resolved::Plain(Scalar::Uint(value)) => Value::Number(value.into()),
            Resolved::Plain(Scalar::Float(value)) => match float(value) {
                Some(number) => Value::Number(number),
                None => return self.error(YamlProblem::NotFinite(text.to_owned())),
            },
            Resolved::Plain(Scalar::Text) => Value::String(text.to_owned()),
        })
    }
}

/// A scalar with its type.
#[derive(Clone)]
enum Resolved<'s> {
    Plain(Scalar),
    /// A string, whatever its text resembles.
    Text(Cow<'s, str>),
}

/// A float that passed through JSON text, in which Go's reader turns integral floats into integers.
fn float(value: f64) -> Option<Number> {
    if value.fract() == 0.0
        && value.abs() < 1e21
        && let Ok(integer) = format!("{value}").parse::<i64>()
    {
        return Some(integer.into());
    }
    Number::from_f64(value)
}

fn base64_text(text: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&base64_bytes(text.as_bytes()).ok()?).into_owned())
}
