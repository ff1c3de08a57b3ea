//! What the rules say: an id and one sentence.

use std::fmt;

use crate::api::rule::Rule;

/// What a rule says about a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// One sentence.
    pub text: String,
}

impl Finding {
    /// A finding.
    pub fn new(rule: Rule, text: impl Into<String>) -> Self {
        Self { rule, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.rule.id(), self.text)
    }
}

/// What all rules say about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Why it is refused; it is allowed where nothing is here.
    pub denied: Vec<Finding>,
    /// What is to be known about it.
    pub warned: Vec<Finding>,
}

impl Findings {
    pub(super) fn deny(&mut self, rule: Rule, text: impl Into<String>) {
        self.denied.push(Finding::new(rule, text));
    }

    pub(super) fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.warned.push(Finding::new(rule, text));
    }
}
