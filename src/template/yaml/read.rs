//! YAML text to JSON values, the way `sigs.k8s.io/yaml` and `gopkg.in/yaml.v2` go.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag, options};

use super::scalar::{Scalar, resolve};
use crate::template::go::float::shortest;

/// Nodes of one document, aliases counted where they are used: room for any manifest, and none
/// for a document whose aliases multiply.
pub const MAX_NODES: usize = 400_000;

/// Lists and maps within each other.
pub const MAX_DEPTH: usize = 120;

/// Why a text is not YAML that means a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("yaml: line {line}: {problem}")]
pub struct YamlError {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 0.
    pub column: usize,
    /// What is wrong.
    pub problem: YamlProblem,
}

/// What is wrong with a YAML text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlProblem {
    /// Not YAML.
    #[error("{0}")]
    Syntax(String),
    /// A key that JSON objects cannot have.
    #[error("a {0} cannot be a key")]
    Key(&'static str),
    /// `<<` of something else.
    #[error("map merge requires map or sequence of maps as the value")]
    Merge,
    /// `.nan` or `.inf`.
    #[error("{0} is not a number that JSON has")]
    NotFinite(String),
    /// A tag that contradicts the value.
    #[error("cannot decode `{value}` as a {tag}")]
    Tag {
        /// The scalar.
        value: String,
        /// The tag, `!!int`.
        tag: String,
    },
    /// More than [`MAX_NODES`].
    #[error("more than {MAX_NODES} values, or excessive aliasing")]
    TooLarge,
    /// More than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The first document of a text; an empty one is `null`.
pub fn read(text: &str) -> Result<Value, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parser = Parser::new_from_str_with_options(text, options! { emit_comments: false });
    let mut composer =
        Composer { text, parser, anchors: HashMap::new(), nodes: 0, depth: 0, last: (1, 0), end: 0 };
    composer.document()
}

/// The objects of a rendered template: it is split at every line that starts with `---`, as KUDO
/// splits it, and chunks that hold nothing are skipped.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    let mut values = Vec::new();
    let mut lines_before = 0;
    for chunk in text.split("\n---") {
        if !chunk.trim().is_empty() {
            let value =
                read(chunk).map_err(|error| YamlError { line: error.line + lines_before, ..error })?;
            if !value.is_null() {
                values.push(value);
            }
        }
        // The line break before the mark.
        lines_before += chunk.matches('\n').count() + 1;
    }
    Ok(values)
}

type Composed<T> = Result<T, YamlError>;

struct Composer<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, (Value, usize)>,
    nodes: usize,
    depth: usize,
    /// Line and column of the last event.
    last: (usize, usize),
    /// Byte where the last event ends.
    end: usize,
}

/// A key as it stands in the text.
enum Key {
    Name(String),
    Merge,
}

impl<'t> Composer<'t> {
    fn error<T>(&self, problem: YamlProblem) -> Composed<T> {
        let (line, column) = self.last;
        Err(YamlError { line, column, problem })
    }

    /// The next event that means something.
    fn next(&mut self) -> Composed<Event<'t>> {
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

    fn document(&mut self) -> Composed<Value> {
        loop {
            match self.next()? {
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
                event => {
                    let value = self.node(event)?;
                    // What follows belongs to the next document, unless it is a mistake.
                    self.next()?;
                    return Ok(value);
                }
            }
        }
    }

    fn count(&mut self, nodes: usize) -> Composed<()> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES { self.error(YamlProblem::TooLarge) } else { Ok(()) }
    }

    fn node(&mut self, event: Event<'t>) -> Composed<Value> {
        let before = self.nodes;
        self.count(1)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
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
            self.anchors.insert(anchor, (value.clone(), self.nodes - before));
        }
        Ok(value)
    }

    /// A block scalar that the end of the text cuts off has no final line break in Go, and one in
    /// YAML 1.2. Chunks of a rendered template end so: the mark between two documents takes the
    /// line break before it.
    fn without_unwritten_break<'s>(&self, value: &'s str, style: ScalarStyle) -> &'s str {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if !is_block || self.end < self.text.len() {
            return value;
        }
        let last_line = self.text.rsplit('\n').next().unwrap_or_default();
        let body = value.strip_suffix('\n').unwrap_or(value);
        let last_value_line = body.rsplit('\n').next().unwrap_or_default();
        // A line of spaces is content only where it is indented further than the scalar.
        let is_blank = |line: &str| line.bytes().all(|byte| byte == b' ');
        let is_content = !is_blank(last_line) || !last_value_line.is_empty() && is_blank(last_value_line);
        if is_content && !last_line.is_empty() { body } else { value }
    }

    fn alias(&mut self, id: usize) -> Composed<Value> {
        let Some((value, nodes)) = self.anchors.get(&id).cloned() else {
            return self.error(YamlProblem::Syntax("an anchor's value contains itself".to_owned()));
        };
        self.count(nodes)?;
        Ok(value)
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
                event => items.push(self.node(event)?),
            }
        }
    }

    /// Of keys that occur twice the last one counts, also against those that a merge brings.
    fn mapping(&mut self) -> Composed<Value> {
        let mut map = Map::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(Value::Object(map)),
                event => self.key(event)?,
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
        self.count(1)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = self.scalar(&text, style, tag.as_deref())?;
                if anchor != 0 {
                    let value = self.json(scalar.clone(), &text)?;
                    self.anchors.insert(anchor, (value, 1));
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
                value => shortest(f64_of_shortest_f32(value)),
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
        self.error(YamlProblem::Tag { value: text.to_owned(), tag: format!("!!{suffix}") })
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

/// A scalar with its meaning.
#[derive(Clone)]
enum Resolved<'s> {
    Plain(Scalar),
    /// A string whatever it looks like.
    Text(Cow<'s, str>),
}

/// A float on its way through JSON text, where Go's reader makes an integer of an integral one.
fn float(value: f64) -> Option<Number> {
    if value.fract() == 0.0
        && value.abs() < 1e21
        && let Ok(integer) = format!("{value}").parse::<i64>()
    {
        return Some(integer.into());
    }
    Number::from_f64(value)
}

/// The number whose shortest text is that of the value rounded to 32 bits.
fn f64_of_shortest_f32(value: f64) -> f64 {
    format!("{:e}", value as f32).parse().unwrap_or(value)
}

fn base64_text(text: &str) -> Option<String> {
    use base64::Engine as _;
    let plain: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(plain).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
