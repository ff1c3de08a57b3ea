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
    /// A finding. It stays one line whatever the names in it hold: custom resources may call a
    /// container anything, and a warning with a line break is lost on its way.
    pub fn new(rule: Rule, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = match text.contains(char::is_control) {
            true => text.split(char::is_control).collect::<Vec<_>>().join("?"),
            false => text,
        };
        Self { rule, text }
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
    pub(in crate::rollout) fn deny(&mut self, rule: Rule, text: impl Into<String>) {
        self.denied.push(Finding::new(rule, text));
    }

    pub(in crate::rollout) fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.warned.push(Finding::new(rule, text));
    }
}
