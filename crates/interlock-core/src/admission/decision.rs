//! The decision of the rules: allowed with a patch, denied with a text for people, or undecided yet.

use json_patch::Patch;

use super::denial::{Denial, shortened};
use super::endpoint::DecisionKind;
use crate::api::display::one_line;
use crate::api::object::NamespacedName;
use crate::api::rule::Rule;

/// Longest warning.
const WARNING_LIMIT: usize = 120;
/// Longest warning in a rule's own words; the API server truncates longer ones.
const ADMITTED_LIMIT: usize = 256;

/// The decision on a request, with its warnings.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The decision.
    pub outcome: Outcome,
    /// Warnings, one line each.
    pub warnings: Vec<String>,
    /// Rules that warned.
    pub noted: Vec<Rule>,
    /// Rules whose denials the settings or an Override admit.
    pub admitted: Vec<Rule>,
    /// The plan that is scheduled, or that holds the lock.
    pub plan: Option<String>,
}

/// The decision.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Allowed as it is or with a patch.
    Allow {
        /// Empty if there are no changes.
        patch: Patch,
    },
    /// Not validated: Interlock's own bookkeeping.
    Skip,
    /// Denied.
    Refuse(Box<Denial>),
    /// The decision needs an OperatorVersion that the lister lacks.
    Wait(NamespacedName),
}

impl Decision {
    /// Allowed unchanged.
    pub fn allow() -> Self {
        Self::of(Outcome::Allow { patch: Patch(Vec::new()) })
    }

    /// A decision without warnings.
    pub fn of(outcome: Outcome) -> Self {
        let plan = match &outcome {
            Outcome::Refuse(refusal) => refusal.plan.clone(),
            _ => None,
        };
        Self { outcome, warnings: Vec::new(), noted: Vec::new(), admitted: Vec::new(), plan }
    }

    /// Adds a rule's warning.
    pub fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.add_warning(text);
        self.note(rule);
    }

    /// Adds a short warning of one line, as the API server drops others.
    pub fn add_warning(&mut self, text: impl Into<String>) {
        self.warnings.push(shortened(one_line(&text.into()).into_owned(), WARNING_LIMIT));
    }

    /// Adds a warning in a rule's own words, with its id.
    pub fn warn_in_full(&mut self, rule: Rule, sentence: &str) {
        let tail = format!(" [{}]", rule.id());
        let room = ADMITTED_LIMIT - tail.len();
        self.warnings.push(shortened(one_line(sentence).into_owned(), room) + &tail);
        self.note(rule);
    }

    /// Adds the sentence of a denial that the settings admit, as a warning.
    pub fn admit(&mut self, rule: Rule, sentence: &str) {
        let tail = format!(" [{}] (admitted: group {} warns here)", rule.id(), rule.group().id());
        let room = ADMITTED_LIMIT - tail.len();
        self.warnings.push(shortened(one_line(sentence).into_owned(), room) + &tail);
        self.note(rule);
        self.admitted.push(rule);
    }

    /// Adds the sentence of a denial that an Override admits, as a warning.
    pub fn admit_by(&mut self, rule: Rule, sentence: &str, name: &str) {
        let tail = shortened(format!(" [{}] (admitted: Override {name})", rule.id()), WARNING_LIMIT);
        let room = ADMITTED_LIMIT - tail.len();
        self.warnings.push(shortened(one_line(sentence).into_owned(), room) + &tail);
        self.note(rule);
        self.admitted.push(rule);
    }

    fn note(&mut self, rule: Rule) {
        if !self.noted.contains(&rule) {
            self.noted.push(rule);
        }
    }

    /// The denial, if there is one.
    pub fn refusal(&self) -> Option<&Denial> {
        match &self.outcome {
            Outcome::Refuse(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Ids of the rules that denied or warned.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        let refused = self.refusal().into_iter().flat_map(Denial::rules);
        refused.chain(self.noted.iter().copied()).map(Rule::id)
    }

    /// The kind of the decision.
    pub fn kind(&self) -> DecisionKind {
        match &self.outcome {
            Outcome::Allow { patch } if patch.0.is_empty() => DecisionKind::Allowed,
            Outcome::Allow { .. } => DecisionKind::Patched,
            Outcome::Skip => DecisionKind::Skipped,
            Outcome::Refuse(_) | Outcome::Wait(_) => DecisionKind::Denied,
        }
    }
}

impl From<Denial> for Decision {
    fn from(refusal: Denial) -> Self {
        Self::of(Outcome::Refuse(Box::new(refusal)))
    }
}
