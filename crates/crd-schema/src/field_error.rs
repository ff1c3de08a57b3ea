//! What a validation finds.

use std::fmt;

/// The API server's kinds of field errors, and the two of its decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// A required field is missing.
    Required,
    /// The value has another type.
    Type,
    /// The value is none of an enumeration.
    NotSupported,
    /// A text is too long, or a list or map has too many entries.
    TooLong,
    /// An entry of a set, or a key of a map list, appears twice.
    Duplicate,
    /// The value must not be there.
    Forbidden,
    /// Any other violation of the schema.
    Invalid,
    /// A rule of `x-kubernetes-validations` is violated.
    Rule,
    /// The schema has no such field.
    UnknownField,
    /// The value of a metadata field cannot be decoded.
    Undecodable,
}

impl ErrorKind {
    /// A stable id in kebab-case.
    pub fn id(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Type => "type",
            Self::NotSupported => "enum",
            Self::TooLong => "length",
            Self::Duplicate => "duplicate",
            Self::Forbidden => "forbidden",
            Self::Invalid => "invalid",
            Self::Rule => "rule",
            Self::UnknownField => "unknown-field",
            Self::Undecodable => "undecodable",
        }
    }

    /// Whether the API server evaluates no CEL rule beside an error of this kind.
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(self, Self::Required | Self::Type | Self::NotSupported | Self::TooLong)
    }

    /// Whether the API server's decoder refuses the request, before anything else is asked.
    pub fn is_of_decoder(self) -> bool {
        matches!(self, Self::UnknownField | Self::Undecodable)
    }
}

/// A violation at a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field as the API server writes it, such as `spec.rules[0].group`.
    pub path: String,
    /// Keys and indexes from the root to the field.
    pub at: Vec<PathPart>,
    /// What is violated.
    pub kind: ErrorKind,
    /// The violation and its remedy, without the field.
    pub message: String,
}

impl FieldError {
    /// A violation of the object as a whole.
    pub fn of_object(message: impl Into<String>) -> Self {
        Path::default().error(ErrorKind::Invalid, message)
    }

    /// A violation at a field of the object itself.
    pub fn of_key(key: &str, message: impl Into<String>) -> Self {
        Path::default().key(key).error(ErrorKind::NotSupported, message)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// A rule that was not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unevaluated {
    /// The field that the rule is about.
    pub path: String,
    /// The CEL expression, pattern or format.
    pub rule: String,
    /// Why it was not evaluated.
    pub reason: String,
}

impl fmt::Display for Unevaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the object" } else { &self.path };
        write!(f, "{path}: {}: {}", self.rule, self.reason)
    }
}

/// A step from a value to one in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// The value of a key.
    Key(String),
    /// The value of a key of a map with keys of its own, which CEL rules write in brackets.
    MapKey(String),
    /// The item of a list.
    Index(usize),
}

/// Where a value is in an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(pub(crate) Vec<PathPart>);

impl Path {
    pub(crate) fn key(&self, key: &str) -> Self {
        self.with(PathPart::Key(key.to_owned()))
    }

    pub(crate) fn map_key(&self, key: &str) -> Self {
        self.with(PathPart::MapKey(key.to_owned()))
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        self.with(PathPart::Index(index))
    }

    fn with(&self, part: PathPart) -> Self {
        let mut parts = self.0.clone();
        parts.push(part);
        Self(parts)
    }

    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> FieldError {
        FieldError { path: self.to_string(), at: self.0.clone(), kind, message: message.into() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            match part {
                PathPart::Key(key) if i == 0 => f.write_str(key)?,
                PathPart::Key(key) => write!(f, ".{key}")?,
                PathPart::MapKey(key) => write!(f, "[{key}]")?,
                PathPart::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The errors and unevaluated rules of a validation, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct FieldErrors {
    pub(crate) errors: Vec<FieldError>,
    pub(crate) unevaluated: Vec<Unevaluated>,
    /// Errors beyond the limit.
    pub(crate) omitted: usize,
    /// Values that were asked: of several alternatives, the one that asked most is reported.
    pub(crate) visits: usize,
}

impl FieldErrors {
    pub(crate) fn add(&mut self, path: &Path, kind: ErrorKind, message: impl Into<String>) {
        self.error(path.error(kind, message));
    }

    fn error(&mut self, error: FieldError) {
        if self.errors.len() < super::limits::MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.omitted += 1;
        }
    }

    pub(crate) fn unevaluated(&mut self, path: &Path, rule: &str, reason: impl Into<String>) {
        self.not_asked(Unevaluated { path: path.to_string(), rule: rule.to_owned(), reason: reason.into() });
    }

    fn not_asked(&mut self, found: Unevaluated) {
        if self.unevaluated.len() < super::limits::MAX_ERRORS && !self.unevaluated.contains(&found) {
            self.unevaluated.push(found);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.omitted == 0
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.omitted += other.omitted;
        self.visits += other.visits;
        other.errors.into_iter().for_each(|error| self.error(error));
        other.unevaluated.into_iter().for_each(|found| self.not_asked(found));
    }
}
