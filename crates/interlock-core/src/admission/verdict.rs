//! What rules come to: allowed with a patch, refused with a text for people, or not yet known.

use json_patch::Patch;

use super::door::VerdictKind;
use super::refusal::{Denial, one_line, shortened};
use crate::api::object::NamespacedName;
use crate::api::rule::Rule;

/// Longest warning.
const WARNING_LIMIT: usize = 120;
/// Longest warning in a rule's own words; the API server cuts longer ones.
const ADMITTED_LIMIT: usize = 256;

/// What a request comes to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The decision.
    pub outcome: Outcome,
    /// One line each.
    pub warnings: Vec<String>,
    /// Rules that led to a warning.
    pub noted: Vec<Rule>,
    /// Rules that would have refused, where the settings let that pass.
    pub admitted: Vec<Rule>,
    /// The plan that is scheduled, or that holds the lock.
    pub plan: Option<String>,
}

/// The decision.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Allowed as it is or with a patch.
    Allow {
        /// Empty when nothing is to be changed.
        patch: Patch,
    },
    /// Not judged: Interlock's own bookkeeping.
    Skip,
    /// Refused.
    Refuse(Box<Denial>),
    /// An OperatorVersion that the view does not show yet decides.
    Wait(NamespacedName),
}

impl Verdict {
    /// Allowed as it is.
    pub fn allow() -> Self {
        Self::of(Outcome::Allow { patch: Patch(Vec::new()) })
    }

    /// A decision with nothing beside it.
    pub fn of(outcome: Outcome) -> Self {
        let plan = match &outcome {
            Outcome::Refuse(refusal) => refusal.plan.clone(),
            _ => None,
        };
        Self { outcome, warnings: Vec::new(), noted: Vec::new(), admitted: Vec::new(), plan }
    }

    /// Adds a warning that a rule leads to.
    pub fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.remark(text);
        self.note(rule);
    }

    /// Adds a warning: one line, as the API server drops others, and short.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.warnings.push(shortened(one_line(&text.into()).into_owned(), WARNING_LIMIT));
    }

    /// Adds a warning in a rule's own words, with its id.
    pub fn tell(&mut self, rule: Rule, sentence: &str) {
        let tail = format!(" [{}]", rule.id());
        let room = ADMITTED_LIMIT - tail.len();
        self.warnings.push(shortened(one_line(sentence).into_owned(), room) + &tail);
        self.note(rule);
    }

    /// Tells what a rule would have refused, in the words of the refusal.
    pub fn admit(&mut self, rule: Rule, sentence: &str) {
        let tail = format!(" [{}] (admitted: group {} warns here)", rule.id(), rule.group().id());
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

    /// The refusal, when it is one.
    pub fn refusal(&self) -> Option<&Denial> {
        match &self.outcome {
            Outcome::Refuse(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Ids of the rules that spoke.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        let refused = self.refusal().into_iter().flat_map(Denial::rules);
        refused.chain(self.noted.iter().copied()).map(Rule::id)
    }

    /// In one word.
    pub fn kind(&self) -> VerdictKind {
        match &self.outcome {
            Outcome::Allow { patch } if patch.0.is_empty() => VerdictKind::Allowed,
            Outcome::Allow { .. } => VerdictKind::Patched,
            Outcome::Skip => VerdictKind::Skipped,
            Outcome::Refuse(_) | Outcome::Wait(_) => VerdictKind::Denied,
        }
    }
}

impl From<Denial> for Verdict {
    fn from(refusal: Denial) -> Self {
        Self::of(Outcome::Refuse(Box::new(refusal)))
    }
}
