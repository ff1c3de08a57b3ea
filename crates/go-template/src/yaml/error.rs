//! Decoding errors, and the limits behind some of them.

use crate::limits::Interrupted;

/// Bytes of all values of one decoder together.
pub const MAX_MADE: usize = 8 << 20;

/// Nesting of lists and maps.
pub const MAX_DEPTH: usize = 120;

/// The text is not YAML for a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("yaml: line {line}: {problem}")]
pub struct YamlError {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 0.
    pub column: usize,
    /// The error.
    pub problem: YamlProblem,
}

impl YamlError {
    /// Whether decoding the same text later may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self.problem, YamlProblem::Interrupted(_))
    }
}

/// Errors of a YAML text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlProblem {
    /// Not YAML.
    #[error("{0}")]
    Syntax(String),
    /// A key that is invalid in JSON objects.
    #[error("a {0} cannot be a key")]
    Key(&'static str),
    /// `<<` of anything but maps.
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
    /// A forbidden alias.
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
    /// Interrupted, independent of the text.
    #[error("decoding {0}")]
    Interrupted(#[from] Interrupted),
}

/// Whether a text may use `*name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aliases {
    /// Allowed, and counted as copies.
    Counted,
    /// Forbidden.
    Refused,
}
