//! The object as it must be: a mutating door patches what differs, a validating door refuses it.

use std::borrow::Cow;

use super::ask::{Ask, Stop};
use super::refusals;
use crate::admission::patch::Operations;
use crate::admission::review::{Annotations, Object};
use crate::admission::spec::Spec;
use crate::admission::stamp::Draft;
use crate::admission::verdict::{Outcome, Verdict};
use crate::admission::{room, stamp};
use crate::api::meta;
use crate::api::rule::Rule;

/// The stamp that an object must carry.
pub enum Stamp<'a> {
    /// What the old object carries, or none.
    Kept(&'a Annotations<'a>),
    /// That of the spec as it now is.
    Made {
        /// Its text; `None` where it does not fit.
        text: Option<String>,
        /// What it is made from, all of which need not have fitted.
        draft: Draft<'a>,
        /// What the old object carries, which is another.
        before: Option<&'a str>,
    },
}

/// `planExecution` as it must be.
pub struct Execution<'a> {
    /// Plan, empty for none.
    pub plan: Cow<'a, str>,
    /// Id, empty for none.
    pub uid: Cow<'a, str>,
    /// Status, empty for none.
    pub status: Cow<'a, str>,
}

/// The object as it must be, as far as it is ours.
pub struct Desired<'a> {
    /// `None` leaves planExecution as it is written.
    pub execution: Option<Execution<'a>>,
    /// Whether our finalizer must be there.
    pub finalizer: bool,
    /// The stamp.
    pub stamp: Stamp<'a>,
    /// Defaults of immutable parameters that must be written out.
    pub defaults: Vec<(String, String)>,
    /// Parameters that must go.
    pub dropped: Vec<String>,
}

/// Whether an object has our finalizer.
pub fn has_finalizer(object: &Object<'_>) -> bool {
    object.metadata.finalizers.iter().flatten().any(|f| f.as_str() == meta::FINALIZER)
}

/// A difference between the object and what it must be.
struct Difference {
    rule: Rule,
    field: &'static str,
    detail: String,
}

/// The first difference that is found, where somebody asks: a patch tells them all.
struct Differences {
    asked: bool,
    first: Option<Difference>,
}

impl Differences {
    fn found(&mut self, rule: Rule, field: &'static str, detail: impl FnOnce() -> String) {
        if self.asked && self.first.is_none() {
            self.first = Some(Difference { rule, field, detail: detail() });
        }
    }
}

impl Desired<'_> {
    /// Decides on an object that no rule refuses; `given` is its spec as it came.
    pub fn settle(self, ask: &Ask<'_>, object: &Object<'_>, given: &Spec<'_>) -> Result<Verdict, Stop> {
        let mut operations = Operations::default();
        let patches = ask.context.door.patches();
        let mut differences = Differences { asked: !patches, first: None };
        self.compare(object, given, &mut operations, &mut differences);
        if patches {
            return Ok(Verdict::of(Outcome::Allow { patch: operations.finish() }));
        }
        match differences.first {
            None => Ok(Verdict::allow()),
            Some(Difference { rule, field, detail }) => {
                Err(refusals::not_mutated(rule, &ask.instance(object), field, &detail).into())
            }
        }
    }

    fn compare(
        self,
        object: &Object<'_>,
        given: &Spec<'_>,
        operations: &mut Operations,
        differences: &mut Differences,
    ) {
        self.parameters(given, operations, differences);
        if let Some(execution) = &self.execution {
            let written = &given.execution;
            let same = written.plan == execution.plan
                && written.uid == execution.uid
                && written.status == execution.status;
            if !same {
                operations.execution(&execution.plan, &execution.uid, &execution.status);
                differences.found(Rule::PlanUid, "spec.planExecution", || {
                    format!("must be plan '{}' with uid '{}'", execution.plan, execution.uid)
                });
            }
        }
        if self.finalizer && !has_finalizer(object) {
            operations.finalizer(&object.metadata);
            differences.found(Rule::FinalizerKept, "metadata.finalizers", || {
                format!("must hold {:?}", meta::FINALIZER)
            });
        }
        if !self.stamp(object, operations) {
            differences.found(Rule::StampMismatch, "metadata.annotations", || {
                format!("{} is not the stamp of this spec", meta::LAST_APPLIED_SPEC)
            });
        }
    }

    fn parameters(&self, given: &Spec<'_>, operations: &mut Operations, differences: &mut Differences) {
        let defaults = self.defaults.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        operations.parameters(defaults, given.has_parameters);
        self.dropped.iter().for_each(|name| operations.drop_parameter(name));
        if self.defaults.is_empty() && self.dropped.is_empty() {
            return;
        }
        differences.found(Rule::MutationMissing, "spec.parameters", || {
            let defaults = self.defaults.iter().map(|(name, _)| name.as_str());
            let names: Vec<&str> = defaults.chain(self.dropped.iter().map(String::as_str)).collect();
            format!("{} must be filled in or taken out", names.join(", "))
        });
    }

    /// Puts the stamp right; whether what was written says the same.
    fn stamp(self, object: &Object<'_>, operations: &mut Operations) -> bool {
        let annotations = &object.metadata.annotations;
        let written = || annotations.stamp_text();
        let (wanted, same, patched) = match self.stamp {
            Stamp::Kept(before)
                if annotations.stamp_json() == before.stamp_json() && annotations.surely_fit() =>
            {
                return true;
            }
            Stamp::Kept(before) => {
                let before = before.stamp_text();
                let kept = before.as_deref().and_then(|text| stamp::kept(text, annotations.others));
                let same = written().as_deref() == kept.as_deref();
                (kept.map(Cow::into_owned), same, !same)
            }
            // Another spec's stamp, as it was.
            Stamp::Made { text, before, .. } if before.is_some() && annotations.stamp_json() == before => {
                (text, false, true)
            }
            Stamp::Made { text, draft, .. } => {
                let written = written();
                let patched = written.as_deref() != text.as_deref();
                let same = !patched || written.as_deref().is_some_and(|found| stamp::says(found, &draft));
                (text, same, patched)
            }
        };
        if annotations.history > 0 && !room::holds(annotations.others, wanted.as_deref(), annotations.history)
        {
            operations.drop_history();
        }
        if patched {
            operations.stamp(&object.metadata, wanted);
        }
        same
    }
}
