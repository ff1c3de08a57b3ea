//! Types of values, as far as they are known before a request.

use std::fmt;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It is not known, or any is taken.
    Any,
    /// `true` or `false`.
    Bool,
    /// A signed integer.
    Int,
    /// An unsigned integer, such as `7u`.
    Uint,
    /// A number with a fraction.
    Double,
    /// In a signature: an integer, signed or not, or a double.
    Number,
    /// A text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A span of time.
    Duration,
    /// A list.
    List,
    /// A map.
    Map,
    /// A map whose values are texts.
    StringMap,
    /// `null`.
    Null,
    /// The type of a value, as a value.
    Kind,
}

impl Type {
    /// Whether an argument of a type can be passed here.
    pub(super) fn takes(self, argument: Self) -> bool {
        match (self, argument) {
            (Self::Any, _) | (_, Self::Any) | (Self::Map, Self::StringMap) => true,
            (Self::Number, of) => of.is_number(),
            (own, of) => own == of,
        }
    }

    /// Whether values of the two types can be equal.
    pub(super) fn can_equal(self, other: Self) -> bool {
        self.takes(other) || other.takes(self) || self.is_number() && other.is_number()
    }

    /// Its name in a sentence.
    pub(super) fn with_article(self) -> String {
        let article = if matches!(self, Self::Any | Self::Int) { "an" } else { "a" };
        format!("{article} {self}")
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double | Self::Number)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Number => "number",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::List => "list",
            Self::Map => "map",
            Self::StringMap => "map of strings",
            Self::Null => "null",
            Self::Kind => "type",
        })
    }
}
