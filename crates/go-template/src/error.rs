//! Errors of a template, in Go's words and with their position.

use std::fmt;

use super::go::quote::quoted;
use super::limits::Interrupted;

/// A position in a template's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Byte in the line, from 0, as Go counts it.
    pub column: usize,
}

impl Place {
    /// The position of a byte offset.
    pub(super) fn of(text: &str, pos: usize) -> Self {
        let before = text.get(..pos).unwrap_or(text);
        let column = before.rfind('\n').map_or(before.len(), |newline| before.len() - newline - 1);
        Self { line: 1 + before.matches('\n').count(), column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A template that is invalid for all values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{}: {}", place.line, kind)]
pub struct ParseError {
    /// Name of the template (its file).
    pub name: String,
    /// Where the parser stopped; Go's text names the line only.
    pub place: Place,
    /// The error.
    pub kind: ParseErrorKind,
}

/// Errors in a template's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// Invalid syntax.
    #[error("{0}")]
    Syntax(String),
    /// A function that templates may not call.
    #[error("function \"{0}\" not defined")]
    UndefinedFunction(String),
    /// An undeclared variable.
    #[error("undefined variable \"{0}\"")]
    UndefinedVariable(String),
    /// A function of sprig 2.22 that this crate does not offer.
    #[error(
        "function \"{0}\" of sprig is refused: rendering reaches no network, process or path; pass its result as a value"
    )]
    UnsupportedFunction(String),
    /// Actions or parentheses nested deeper than any real template.
    #[error("nested deeper than {0} levels")]
    TooDeep(usize),
    /// More actions and operands than any real template.
    #[error("more than {0} actions and operands: divide the file")]
    TooLarge(usize),
}

/// Limit of bytes of the author's text that an error shows.
const MAX_SHOWN: usize = 1 << 10;

/// A text for an error, cut to that limit: a template can make it arbitrarily long.
pub(super) fn shown(mut text: String) -> String {
    if text.len() > MAX_SHOWN {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text.push_str("...");
    }
    text
}

impl ParseErrorKind {
    /// The rejected construct: `function "now"`.
    pub fn construct(&self) -> String {
        match self {
            Self::Syntax(_) => "syntax".to_owned(),
            Self::UndefinedFunction(name) | Self::UnsupportedFunction(name) => format!("function \"{name}\""),
            Self::UndefinedVariable(name) => format!("variable \"{name}\""),
            Self::TooDeep(_) => "nesting".to_owned(),
            Self::TooLarge(_) => "size".to_owned(),
        }
    }

    /// The same with texts of bounded length.
    pub(super) fn cut(self) -> Self {
        match self {
            Self::Syntax(text) => Self::Syntax(shown(text)),
            Self::UndefinedFunction(name) => Self::UndefinedFunction(shown(name)),
            Self::UndefinedVariable(name) => Self::UndefinedVariable(shown(name)),
            Self::UnsupportedFunction(_) | Self::TooDeep(_) | Self::TooLarge(_) => self,
        }
    }
}

/// A template that fails with the given values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// As Go's `template.ExecError`.
    #[error("template: {name}:{place}: executing {} at <{node}>: {message}", quoted(template))]
    Execution {
        /// Name of the file.
        name: String,
        /// Name of the template in execution: the file or one of its definitions.
        template: String,
        /// Position.
        place: Place,
        /// The action or operand.
        node: String,
        /// The error.
        message: String,
    },
    /// The text holds bytes that are not UTF-8, so it cannot be YAML.
    #[error(
        "template: {name}: the rendered text is not UTF-8 (byte {offset}): encode binary data, for example with b64enc"
    )]
    NotText {
        /// Name of the file.
        name: String,
        /// First offending byte of the output.
        offset: usize,
    },
    /// A function needs a [`crate::Generator`], which this rendering has not.
    #[error(
        "template: {name}:{place}: executing {} at <{node}>: error calling {function}: {message}",
        quoted(name)
    )]
    NoGenerator {
        /// Name of the file.
        name: String,
        /// Position.
        place: Place,
        /// The action or operand.
        node: String,
        /// The function.
        function: &'static str,
        /// What it needs, and the remedy.
        message: &'static str,
    },
    /// Interrupted; the same rendering may succeed later.
    #[error("template: {name}:{place}: rendering {why}")]
    Interrupted {
        /// Name of the file.
        name: String,
        /// Position at the interruption.
        place: Place,
        /// The reason.
        why: Interrupted,
    },
}

impl RenderError {
    /// Whether the same rendering may succeed at another time.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Interrupted { .. })
    }
}

/// Why a function returned no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// The function rejects its arguments; Go prefixes this with the function's name.
    #[error("{0}")]
    Refused(String),
    /// The function needs a generator; what for.
    #[error("{0}")]
    NoGenerator(&'static str),
    /// A limit of this crate, not of the function.
    #[error(transparent)]
    Limit(#[from] super::limits::LimitReached),
}

impl Failure {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }
}
