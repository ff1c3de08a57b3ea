//! Violations of rules, as data: the rule, KUDO's sentence where it has one, and the fields.

use crate::api::rule::Rule;

/// How a field violates a rule, as a metav1 cause type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldReason {
    /// The change is not allowed now.
    Forbidden,
    /// The value is wrong.
    Invalid,
    /// A value is missing.
    Required,
    /// The field names something that does not exist.
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

/// A field that violates a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationField {
    /// Path such as `spec.parameters.NODES`.
    pub path: String,
    /// Type of the cause.
    pub reason: FieldReason,
    /// `old -> new`, or the fault; one line. Empty where the value changed and is not shown.
    pub detail: String,
}

impl ViolationField {
    /// A field.
    pub fn new(path: impl Into<String>, reason: FieldReason, detail: impl Into<String>) -> Self {
        Self { path: path.into(), reason, detail: detail.into() }
    }

    /// A parameter of an Instance.
    pub fn parameter(name: &str, reason: FieldReason, detail: impl Into<String>) -> Self {
        Self::new(format!("spec.parameters.{name}"), reason, detail)
    }
}

/// Beginning of KUDO's sentence, with the name of the Instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePrefix {
    /// `failed to create an Instance <ns>/<name>: `
    Create,
    /// `failed to update Instance <ns>/<name>: `
    Update,
    /// `failed to check immutable parameters for Instance <ns>/<name>: `
    Immutable,
    /// `failed to validate parameters for Instance <ns>/<name>: `
    Validate,
    /// No beginning.
    None,
}

/// A command about the Instance that helps with a violation; denials name it with the Instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceCommand {
    /// Waits until no plan runs and all is well.
    Await,
    /// Waits until it is gone.
    AwaitDeletion,
    /// Deletes it.
    Delete,
    /// Prints its conditions.
    Describe,
    /// Prints it.
    Show,
    /// Triggers a plan.
    Trigger,
}

/// A violation of a rule by a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecViolation {
    /// The rule.
    pub rule: Rule,
    /// Beginning of the sentence.
    pub prelude: MessagePrefix,
    /// The sentence without its beginning; KUDO's own where it has one.
    pub sentence: String,
    /// The fields that violate the rule.
    pub fields: Vec<ViolationField>,
    /// Whether the sentence says all that there is to say of its only field.
    pub names_field: bool,
    /// The remedy.
    pub next: Option<String>,
    /// The command that helps with it.
    pub command: Option<InstanceCommand>,
    /// Number of further violations like it, which are not kept.
    pub more: usize,
}

/// Maximum of violations kept per rule; the rest is counted.
const KEPT: usize = 16;

/// The first violations; the last one kept counts the rest, which are never built.
pub fn first_of<T>(
    found: impl Iterator<Item = T>,
    violation: impl FnMut(T) -> SpecViolation,
) -> Vec<SpecViolation> {
    let mut found = found;
    let mut violations: Vec<SpecViolation> = found.by_ref().take(KEPT).map(violation).collect();
    if let Some(last) = violations.last_mut() {
        last.more = found.count();
    }
    violations
}

impl SpecViolation {
    /// A violation whose sentence begins with `failed to update Instance`.
    pub fn new(rule: Rule, sentence: impl Into<String>, fields: Vec<ViolationField>) -> Self {
        Self {
            rule,
            prelude: MessagePrefix::Update,
            sentence: sentence.into(),
            fields,
            names_field: false,
            next: None,
            command: None,
            more: 0,
        }
    }

    /// Sets the beginning of the sentence.
    #[must_use]
    pub fn prelude(mut self, prelude: MessagePrefix) -> Self {
        self.prelude = prelude;
        self
    }

    /// Sets the remedy.
    #[must_use]
    pub fn next(mut self, text: impl Into<String>) -> Self {
        self.next = Some(text.into());
        self
    }

    /// Sets the command that helps with the remedy.
    #[must_use]
    pub fn command(mut self, command: InstanceCommand) -> Self {
        self.command = Some(command);
        self
    }

    /// Marks the sentence as complete: it names its only field, and says what is wrong with it.
    #[must_use]
    pub fn named(mut self) -> Self {
        self.names_field = true;
        self
    }

    /// Beginning of the sentence, for the Instance of that name.
    pub fn beginning(&self, instance: &str) -> String {
        match self.prelude {
            MessagePrefix::Create => format!("failed to create an Instance {instance}: "),
            MessagePrefix::Update => format!("failed to update Instance {instance}: "),
            MessagePrefix::Immutable => {
                format!("failed to check immutable parameters for Instance {instance}: ")
            }
            MessagePrefix::Validate => format!("failed to validate parameters for Instance {instance}: "),
            MessagePrefix::None => String::new(),
        }
    }
}
