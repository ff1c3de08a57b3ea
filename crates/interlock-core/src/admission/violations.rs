//! Violations as rules find them, and the decision once all rules ran and the object was completed.
//!
//! A violation never ends the work of a rule: the settings of the namespace and the state of the cache
//! decide here whether it is denied, a warning, or ignored. So nothing that admits a violation can skip
//! the completion of the object.

use std::cell::RefCell;

use jiff::Timestamp;

use super::RuleContext;
use super::decision::{Decision, Outcome};
use super::denial::Denial;
use super::lister::{Lister, Overridden};
use crate::api::interlock::{Actions, RuleAction};
use crate::api::rule::Rule;

/// The enforcement of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enforcement {
    /// The request is denied.
    Deny,
    /// The settings of the namespace admit it, with a warning.
    Admit,
    /// An Override admits it, with a warning.
    Override,
    /// It depends on other objects, which the cache lacks: a warning.
    Downgrade,
}

/// A violation and its enforcement.
#[derive(Debug)]
struct Violation {
    enforcement: Enforcement,
    denial: Denial,
}

/// Whose write of what is evaluated.
#[derive(Clone, Copy)]
struct Write<'a> {
    lister: &'a dyn Lister,
    uid: &'a str,
    user: &'a str,
    now: Timestamp,
}

/// Collects the violations of a request, in the order in which rules find them.
pub struct Violations<'a> {
    actions: Actions,
    write: Option<Write<'a>>,
    partial: Option<&'a str>,
    found: RefCell<Vec<Violation>>,
}

impl<'a> Violations<'a> {
    /// An empty collection with the settings of a namespace.
    pub fn new(actions: Actions, context: &RuleContext<'a>) -> Self {
        Self { actions, write: None, partial: context.partial, found: RefCell::default() }
    }

    /// The same about a write of the object of that uid, which an Override may admit; an unknown time is that of
    /// none.
    #[must_use]
    pub fn of_write(self, uid: &'a str, user: &'a str, context: &RuleContext<'a>) -> Self {
        let write = context.now.map(|now| Write { lister: context.lister, uid, user, now });
        Self { write: write.filter(|write| !write.uid.is_empty()), ..self }
    }

    /// The Override that admits what a rule denies.
    fn overridden(&self, rule: Rule) -> Option<String> {
        let Write { lister, uid, user, now } = self.write.filter(|_| rule.can_be_overridden())?;
        lister.overridden(Overridden { uid, rule, user: Some(user), now })
    }

    /// Adds a violation, unless the settings switch its rule off.
    pub fn push(&self, denial: Denial) {
        self.push_as(self.actions.of(denial.rule), denial);
    }

    /// Adds a violation to which other settings apply.
    pub fn push_as(&self, action: RuleAction, denial: Denial) {
        let downgraded = self.partial.is_some() && denial.reads_others();
        match action {
            RuleAction::Deny if downgraded => self.add(Enforcement::Downgrade, denial),
            RuleAction::Deny if self.overridden(denial.rule).is_some() => {
                self.add(Enforcement::Override, denial);
            }
            RuleAction::Deny => self.add(Enforcement::Deny, denial),
            RuleAction::Warn => self.add(Enforcement::Admit, denial),
            RuleAction::Off => {}
        }
    }

    fn add(&self, enforcement: Enforcement, denial: Denial) {
        let mut found = self.found.borrow_mut();
        let same =
            |known: &Violation| known.denial.rule == denial.rule && known.denial.sentence == denial.sentence;
        if !found.iter().any(same) {
            found.push(Violation { enforcement, denial });
        }
    }

    /// Whether the request is denied, whatever else rules find: then it needs no completed object.
    pub fn refuse(&self) -> bool {
        self.found.borrow().iter().any(|violation| violation.enforcement == Enforcement::Deny)
    }

    /// Removes all violations found so far.
    pub fn clear(&self) {
        self.found.borrow_mut().clear();
    }

    /// The decision: a denial that lists all violations that are enforced, or the completed object
    /// with a warning for each of the others.
    pub fn decide(self, completed: Decision) -> Decision {
        let found = self.found.take();
        if found.is_empty() || matches!(completed.outcome, Outcome::Wait(_)) {
            return completed;
        }
        let (denied, passed): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|violation| violation.enforcement == Enforcement::Deny);
        if let Some(denial) = Denial::joined(denied.into_iter().map(|violation| violation.denial)) {
            return denial.into();
        }
        let mut verdict = completed;
        let remarks = std::mem::take(&mut verdict.warnings);
        if passed.iter().any(|violation| violation.enforcement == Enforcement::Downgrade) {
            verdict.add_warning(self.partial.unwrap_or_default());
        }
        for Violation { enforcement, denial } in passed {
            match enforcement {
                Enforcement::Downgrade => verdict.warn(denial.rule, denial.counted()),
                Enforcement::Override => {
                    let name = self.overridden(denial.rule).unwrap_or_default();
                    verdict.admit_by(denial.rule, &denial.counted(), &name);
                }
                Enforcement::Deny | Enforcement::Admit => verdict.admit(denial.rule, &denial.counted()),
            }
        }
        verdict.warnings.extend(remarks);
        verdict
    }
}

impl Denial {
    /// Whether it depends on a cache that may be incomplete.
    fn reads_others(&self) -> bool {
        self.rule.depends_on_others() && !self.certain
    }

    /// The sentence, and the number of further ones like it.
    fn counted(&self) -> String {
        match self.more {
            0 => self.sentence.clone(),
            more => format!("{} (and {more} more)", self.sentence),
        }
    }

    /// One denial for several violations: the first with its whole text, a line for each of the
    /// others.
    fn joined(violations: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut violations = violations.into_iter();
        let mut denial = violations.next()?;
        violations.for_each(|violation| denial.join(violation));
        Some(denial)
    }
}
