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

impl Desired<'_> {
    /// Decides on an object that no rule refuses; `given` is its spec as it came.
    pub fn settle(self, ask: &Ask<'_>, object: &Object<'_>, given: &Spec<'_>) -> Result<Verdict, Stop> {
        let mut operations = Operations::default();
        let found = self.compare(object, given, &mut operations);
        if ask.context.door.patches() {
            return Ok(Verdict::of(Outcome::Allow { patch: operations.finish() }));
        }
        match found.into_iter().next() {
            None => Ok(Verdict::allow()),
            Some(Difference { rule, field, detail }) => {
                Err(refusals::not_mutated(rule, &ask.instance(object), field, &detail).into())
            }
        }
    }

    fn compare(self, object: &Object<'_>, given: &Spec<'_>, operations: &mut Operations) -> Vec<Difference> {
        let mut found = Vec::new();
        self.parameters(given, operations, &mut found);
        if let Some(execution) = &self.execution {
            let written = &given.execution;
            let same = written.plan == execution.plan
                && written.uid == execution.uid
                && written.status == execution.status;
            if !same {
                operations.execution(&execution.plan, &execution.uid, &execution.status);
                let detail = format!("must be plan '{}' with uid '{}'", execution.plan, execution.uid);
                found.push(Difference { rule: Rule::PlanUid, field: "spec.planExecution", detail });
            }
        }
        if self.finalizer && !has_finalizer(object) {
            operations.finalizer(&object.metadata);
            let detail = format!("must hold {:?}", meta::FINALIZER);
            found.push(Difference { rule: Rule::FinalizerKept, field: "metadata.finalizers", detail });
        }
        found.extend(self.stamp(object, operations));
        found
    }

    fn parameters(&self, given: &Spec<'_>, operations: &mut Operations, found: &mut Vec<Difference>) {
        let defaults = self.defaults.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        operations.parameters(defaults, given.has_parameters);
        self.dropped.iter().for_each(|name| operations.drop_parameter(name));
        let names: Vec<&str> = self
            .defaults
            .iter()
            .map(|(name, _)| name.as_str())
            .chain(self.dropped.iter().map(String::as_str))
            .collect();
        if !names.is_empty() {
            let detail = format!("{} must be filled in or taken out", names.join(", "));
            found.push(Difference { rule: Rule::MutationMissing, field: "spec.parameters", detail });
        }
    }

    fn stamp(self, object: &Object<'_>, operations: &mut Operations) -> Option<Difference> {
        let annotations = &object.metadata.annotations;
        let written = || annotations.stamp_text();
        let (wanted, same, patched) = match self.stamp {
            Stamp::Kept(before)
                if annotations.stamp_json() == before.stamp_json() && annotations.surely_fit() =>
            {
                return None;
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
        (!same).then(|| Difference {
            rule: Rule::StampMismatch,
            field: "metadata.annotations",
            detail: format!("{} is not the stamp of this spec", meta::LAST_APPLIED_SPEC),
        })
    }
}
