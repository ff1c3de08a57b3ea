//! Why a text cannot be decoded, and the bounds that may be the reason.

use crate::limits::Interrupted;

/// Bytes that the values of one decoder may take together.
pub const MAX_MADE: usize = 8 << 20;

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
