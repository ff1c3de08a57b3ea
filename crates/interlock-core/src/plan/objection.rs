//! What rules object to, as data: the rule, KUDO's sentence where it has one, and the fields.

use crate::api::rule::Rule;

/// Why a field is objected to, in metav1's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldReason {
    /// The change is not allowed now.
    Forbidden,
    /// The value is wrong.
    Invalid,
    /// A value is missing.
    Required,
    /// What it names does not exist.
    NotFound,
}

impl FieldReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "FieldValueForbidden",
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::NotFound => "FieldValueNotFound",
        }
    }
}

/// A field that an objection is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectionField {
    /// Path such as `spec.parameters.NODES`.
    pub path: String,
    /// Why.
    pub reason: FieldReason,
    /// `old -> new`, or what is wrong; one line.
    pub detail: String,
}

impl ObjectionField {
    /// A field.
    pub fn new(path: impl Into<String>, reason: FieldReason, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason, detail: detail.into() }
    }

    /// A parameter of an Instance.
    pub fn parameter(name: &str, reason: FieldReason, detail: impl Into<String>) -> Self {
        Self::new(format!("spec.parameters.{name}"), reason, detail)
    }
}

/// What KUDO's sentence begins with, before the name of the Instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prelude {
    /// `failed to create an Instance <ns>/<name>: `
    Create,
    /// `failed to update Instance <ns>/<name>: `
    Update,
    /// `failed to check immutable parameters for Instance <ns>/<name>: `
    Immutable,
    /// `failed to validate parameters for Instance <ns>/<name>: `
    Validate,
    /// Nothing.
    None,
}

/// An objection to a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The rule.
    pub rule: Rule,
    /// What the sentence begins with.
    pub prelude: Prelude,
    /// What is refused, without the prelude; KUDO's own words where it has them.
    pub sentence: String,
    /// The fields concerned.
    pub fields: Vec<ObjectionField>,
    /// What to do.
    pub next: Option<String>,
    /// How many more like it there are, beyond those that are kept.
    pub more: usize,
}

/// How many violations of one rule are kept; more are counted.
const KEPT: usize = 16;

/// The first of many violations; the last one that is kept counts the rest, none of which is made.
pub fn first_of<T>(found: impl Iterator<Item = T>, violation: impl FnMut(T) -> Objection) -> Vec<Objection> {
    let mut found = found;
    let mut violations: Vec<Objection> = found.by_ref().take(KEPT).map(violation).collect();
    if let Some(last) = violations.last_mut() {
        last.more = found.count();
    }
    violations
}

impl Objection {
    /// An objection that KUDO begins with `failed to update Instance`.
    pub fn new(rule: Rule, sentence: impl Into<String>, fields: Vec<ObjectionField>) -> Self {
        Self { rule, prelude: Prelude::Update, sentence: sentence.into(), fields, next: None, more: 0 }
    }

    /// With another beginning.
    #[must_use]
    pub fn prelude(mut self, prelude: Prelude) -> Self {
        self.prelude = prelude;
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn next(mut self, text: impl Into<String>) -> Self {
        self.next = Some(text.into());
        self
    }

    /// What stands before the sentence, for the Instance of that name.
    pub fn beginning(&self, instance: &str) -> String {
        match self.prelude {
            Prelude::Create => format!("failed to create an Instance {instance}: "),
            Prelude::Update => format!("failed to update Instance {instance}: "),
            Prelude::Immutable => format!("failed to check immutable parameters for Instance {instance}: "),
            Prelude::Validate => format!("failed to validate parameters for Instance {instance}: "),
            Prelude::None => String::new(),
        }
    }
}
