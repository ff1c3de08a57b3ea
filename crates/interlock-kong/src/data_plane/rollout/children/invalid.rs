//! Why a child cannot be made from the spec of a DataPlane.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

/// The most characters of a name that a path shows.
const SHOWN: usize = 63;

/// A field of a DataPlane from which no child can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} {problem}")]
pub struct InvalidTemplate {
    /// Path of the field.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub problem: TemplateProblem,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateProblem {
    /// It has another type.
    #[error("must be {0}")]
    Type(&'static str),
    /// It is needed, and not there.
    #[error("is not set: set it")]
    Absent,
    /// An element of a list lacks its key.
    #[error("has no {0}: set it")]
    NoKey(&'static str),
    /// A list has two elements with one key.
    #[error("is listed twice: keep one of the two")]
    Twice,
    /// A variable is listed twice, and something refers to the first of its values.
    #[error("is listed twice, and $(...) refers to it in between: name each variable once")]
    Repeated,
    /// It is no directive of a strategic merge.
    #[error("is no directive: use \"$patch\" with \"delete\" or \"replace\"")]
    Directive,
    /// It is no name of a Service.
    #[error("must be at most 63 lowercase letters, digits and dashes, with a letter first and no dash last")]
    ServiceName,
    /// It is too long for a label.
    #[error("is longer than 63 characters, the longest value of a label: choose a shorter name")]
    TooLong,
    /// It is no port.
    #[error("must be a number from 1 to 65535")]
    Port,
    /// It is no selector.
    #[error("must be KEY=VALUE, or several between commas: correct or remove it")]
    Selector,
}

/// A place in the spec; its path is written only for an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldPlace<'a> {
    above: Option<&'a FieldPlace<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Field(&'a str),
    Element(&'a str),
    Index(usize),
}

impl<'a> FieldPlace<'a> {
    pub fn root(path: &'a str) -> Self {
        Self { above: None, segment: Segment::Field(path) }
    }

    /// A member.
    pub fn field(&'a self, name: &'a str) -> Self {
        Self { above: Some(self), segment: Segment::Field(name) }
    }

    pub fn element(&'a self, key: &'a str) -> Self {
        Self { above: Some(self), segment: Segment::Element(key) }
    }

    /// An element by its position.
    pub fn index(&'a self, index: usize) -> Self {
        Self { above: Some(self), segment: Segment::Index(index) }
    }

    /// Name of the field, if it is one.
    pub fn name(&self) -> Option<&'a str> {
        match self.segment {
            Segment::Field(name) => Some(name),
            Segment::Element(_) | Segment::Index(_) => None,
        }
    }

    /// The error that this place has a problem.
    pub fn has(&self, problem: TemplateProblem) -> InvalidTemplate {
        InvalidTemplate { field: self.to_string(), problem }
    }

    /// The value as an object.
    pub fn object<'v>(
        &self,
        value: &'v Value,
    ) -> Result<&'v serde_json::Map<String, Value>, InvalidTemplate> {
        value.as_object().ok_or_else(|| self.has(TemplateProblem::Type("an object")))
    }

    pub fn list<'v>(&self, value: &'v Value) -> Result<&'v [Value], InvalidTemplate> {
        value.as_array().map(Vec::as_slice).ok_or_else(|| self.has(TemplateProblem::Type("a list")))
    }

    pub fn string<'v>(&self, value: &'v Value) -> Result<&'v str, InvalidTemplate> {
        value.as_str().ok_or_else(|| self.has(TemplateProblem::Type("a string")))
    }
}

impl fmt::Display for FieldPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.segment {
            Segment::Field(name) => {
                f.write_str(if self.above.is_some() { "." } else { "" })?;
                shown(f, name)
            }
            Segment::Element(key) => {
                f.write_str("[")?;
                shown(f, key)?;
                f.write_str("]")
            }
            Segment::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => write!(f, "{}...", &name[..end]),
        None => f.write_str(name),
    }
}

/// A member of an object by its path; `null` is absent.
pub(super) fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name)).filter(|value| !value.is_null())
}
