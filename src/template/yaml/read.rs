//! YAML text to JSON values, the way `sigs.k8s.io/yaml` and `gopkg.in/yaml.v2` go.

use serde_json::Value;

use super::compose::Composer;
use super::made::{MAX_MADE, Made};
use crate::template::limits::{Interrupt, Interrupted, Never};

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

impl YamlError {
    /// Whether the same text may be decoded at another time.
    pub fn is_transient(&self) -> bool {
        matches!(self.problem, YamlProblem::Interrupted(_))
    }
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
    /// An alias where none may be.
    #[error("aliases (*name) are not allowed here; write the value out")]
    Alias,
    /// More than [`MAX_MADE`].
    #[error(
        "the decoded values take more than the budget of {MAX_MADE} bytes, what aliases copy included: make the \
         document smaller, or write out what its aliases stand for"
    )]
    TooLarge,
    /// More than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Ended from outside; says nothing about the text.
    #[error("decoding {0}")]
    Interrupted(#[from] Interrupted),
}

/// Whether a text may say `*name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aliases {
    /// They count as what they copy.
    Counted,
    /// They are an error.
    Refused,
}

/// Decodes texts; the values of all of them share one budget of [`MAX_MADE`] bytes.
#[derive(Debug)]
pub struct Reader<'i> {
    made: Made<'i>,
    aliases: Aliases,
}

impl<'i> Reader<'i> {
    /// Nothing made so far.
    pub fn new(aliases: Aliases, interrupt: &'i dyn Interrupt) -> Self {
        Self { made: Made::new(interrupt), aliases }
    }

    /// Bytes that the values made so far take, nearly.
    pub fn made(&self) -> usize {
        self.made.spent()
    }

    /// The first document of a text; an empty one is `null`.
    pub fn read(&self, text: &str) -> Result<Value, YamlError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Composer::new(text, self.aliases, &self.made).document()
    }

    /// The objects of a rendered template: it is split at every line that starts with `---`, as
    /// KUDO splits it, and chunks that hold nothing are skipped.
    pub fn documents(&self, text: &str) -> Result<Vec<Value>, YamlError> {
        let mut values = Vec::new();
        let mut lines_before = 0;
        for chunk in text.split("\n---") {
            if !chunk.trim().is_empty() {
                let value = self
                    .read(chunk)
                    .map_err(|error| YamlError { line: error.line + lines_before, ..error })?;
                if !value.is_null() {
                    values.push(value);
                }
            }
            // The line break before the mark.
            lines_before += chunk.matches('\n').count() + 1;
        }
        Ok(values)
    }
}

/// The first document of a text, with a budget of its own.
pub fn read(text: &str) -> Result<Value, YamlError> {
    Reader::new(Aliases::Counted, &Never).read(text)
}

/// The objects of a text ([`Reader::documents`]), with a budget of their own.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    Reader::new(Aliases::Counted, &Never).documents(text)
}
