//! Findings of the rules: an id and one sentence.

use std::fmt;

use interlock_core::api::display::one_line;
use interlock_core::api::rule::Rule;

/// A finding of a rule about a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// One sentence.
    pub text: String,
}

impl Finding {
    /// A finding. It stays one line whatever names it contains: custom resources may give a container
    /// any name, and the API server drops a warning with a line break.
    pub fn new(rule: Rule, text: impl Into<String>) -> Self {
        Self { rule, text: one_line(&text.into()).into_owned() }
    }

    /// The rule, and the sentence without what it names after a colon.
    pub fn sentence(&self) -> (Rule, &str) {
        (self.rule, self.text.split(": ").next().unwrap_or_default())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.rule.id(), self.text)
    }
}

/// The findings of all rules about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Reasons to deny it; without any it is allowed.
    pub denied: Vec<Finding>,
    /// Warnings about it.
    pub warned: Vec<Finding>,
}

impl Findings {
    pub(in crate::data_plane) fn deny(&mut self, rule: Rule, text: impl Into<String>) {
        self.denied.push(Finding::new(rule, text));
    }

    pub(in crate::data_plane) fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.warned.push(Finding::new(rule, text));
    }
}
