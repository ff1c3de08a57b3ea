//! The desired object: a mutating endpoint patches the differences, a validating one denies them.

use std::borrow::Cow;

use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::ids::STAMP_MISMATCH;
use interlock_core::admission::patch::Operations;
use interlock_core::admission::review::{Annotations, ReviewObject};
use interlock_core::admission::size_budget;
use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use interlock_core::last_applied;
use interlock_core::last_applied::LastAppliedDraft;

use super::context::Evaluation;
use super::denials;
use crate::instance::rules::ids::{FINALIZER_KEPT, HISTORY_OWNER, MUTATION_MISSING, PLAN_UID};
use crate::instance::spec::SpecView;

/// The last-applied annotation that an object must carry.
pub enum WantedInstanceStamp<'a> {
    /// That of the old object, or none.
    Kept(&'a Annotations<'a>),
    /// That of the new spec.
    Made {
        /// Its text; `None` if it does not fit.
        text: Option<String>,
        /// Its source, not all of which need have fitted.
        draft: LastAppliedDraft<'a>,
        /// That of the old object, if it differs.
        before: Option<&'a str>,
    },
}

/// `planExecution` as it must be.
pub struct WantedExecution<'a> {
    /// Plan, empty for none.
    pub plan: Cow<'a, str>,
    /// Id, empty for none.
    pub uid: Cow<'a, str>,
    /// Status, empty for none.
    pub status: Cow<'a, str>,
}

/// Our finalizer as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalizer {
    /// It must be present.
    Required,
    /// It is added, as the package may have a plan `cleanup`: the cache lacks the package. Another
    /// replica that has it may know better, so validation does not require it.
    Assumed,
    /// It stays as written.
    AsWritten,
}

/// The desired state of the fields that Interlock owns.
pub struct Mutation<'a> {
    /// `None` leaves planExecution as written.
    pub execution: Option<WantedExecution<'a>>,
    /// Our finalizer.
    pub finalizer: Finalizer,
    /// The last-applied annotation.
    pub stamp: WantedInstanceStamp<'a>,
    /// The annotations that have the history of runs, if any.
    pub history: Option<&'a Annotations<'a>>,
    /// Defaults of immutable parameters that must be written out.
    pub defaults: Vec<(String, String)>,
    /// Parameters to remove.
    pub dropped: Vec<String>,
}

/// Whether an object has our finalizer.
pub fn has_finalizer(object: &ReviewObject<'_>) -> bool {
    object.metadata.finalizers.iter().flatten().any(|f| f.as_str() == meta::FINALIZER)
}

/// A difference between the object and its desired state.
struct Difference {
    rule: Rule,
    field: &'static str,
    detail: String,
}

/// Differences: a validating endpoint denies them, a mutating one patches them.
#[derive(Default)]
struct Differences {
    refused: bool,
    found: Vec<Difference>,
}

impl Differences {
    fn found(&mut self, rule: Rule, field: &'static str, detail: impl FnOnce() -> String) {
        if self.refused {
            self.found.push(Difference { rule, field, detail: detail() });
        }
    }
}

impl<'a> Mutation<'a> {
    /// The old values of the annotations that only Interlock writes: last-applied and history.
    pub fn restoring(before: &'a Annotations<'a>) -> Self {
        Self {
            execution: None,
            finalizer: Finalizer::AsWritten,
            stamp: WantedInstanceStamp::Kept(before),
            history: Some(before),
            defaults: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Completes an object, whatever the violations; `given` is its spec as received. A validating
    /// endpoint collects the differences as violations.
    pub fn finish(
        self,
        evaluation: &Evaluation<'_>,
        object: &ReviewObject<'_>,
        given: &SpecView<'_>,
    ) -> Decision {
        let mut operations = Operations::default();
        let patches = evaluation.context.endpoint.patches();
        let mut differences = Differences { refused: !patches, found: Vec::new() };
        self.compare(object, given, &mut operations, &mut differences);
        if patches {
            return Decision::of(Outcome::Allow { patch: operations.finish() });
        }
        for Difference { rule, field, detail } in differences.found {
            evaluation.violations.push(denials::not_mutated(
                rule,
                &evaluation.instance(object),
                field,
                &detail,
            ));
        }
        Decision::allow()
    }

    fn compare(
        self,
        object: &ReviewObject<'_>,
        given: &SpecView<'_>,
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
                differences.found(PLAN_UID, "spec.planExecution", || {
                    format!("must be plan '{}' with uid '{}'", execution.plan, execution.uid)
                });
            }
        }
        if self.finalizer != Finalizer::AsWritten && !has_finalizer(object) {
            operations.finalizer(&object.metadata);
        }
        if self.finalizer == Finalizer::Required && !has_finalizer(object) {
            differences
                .found(FINALIZER_KEPT, "metadata.finalizers", || format!("must hold {:?}", meta::FINALIZER));
        }
        let history = self.history;
        let (stamp, same) = self.stamp(object, operations);
        if !same {
            differences.found(STAMP_MISMATCH, "metadata.annotations", || {
                format!("{} is not the stamp of this spec", meta::LAST_APPLIED_SPEC)
            });
        }
        let annotations = &object.metadata.annotations;
        if !restore_history(history, annotations, stamp, operations) {
            differences.found(HISTORY_OWNER, "metadata.annotations", || {
                format!("{} is not the history of this Instance", meta::HISTORY)
            });
        }
    }

    fn parameters(&self, given: &SpecView<'_>, operations: &mut Operations, differences: &mut Differences) {
        let defaults = self.defaults.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        operations.parameters(defaults, given.has_parameters);
        self.dropped.iter().for_each(|name| operations.drop_parameter(name));
        if self.defaults.is_empty() && self.dropped.is_empty() {
            return;
        }
        differences.found(MUTATION_MISSING, "spec.parameters", || {
            let defaults = self.defaults.iter().map(|(name, _)| name.as_str());
            let names: Vec<&str> = defaults.chain(self.dropped.iter().map(String::as_str)).collect();
            format!("{} must be filled in or taken out", names.join(", "))
        });
    }

    /// Restores the annotation; its bytes or a few more, and whether the written one means the same.
    fn stamp(self, object: &ReviewObject<'_>, operations: &mut Operations) -> (Option<usize>, bool) {
        let annotations = &object.metadata.annotations;
        let written = || annotations.stamp_text();
        let (wanted, same, patched) = match self.stamp {
            WantedInstanceStamp::Kept(before)
                if annotations.stamp_json() == before.stamp_json() && annotations.surely_fit() =>
            {
                return (annotations.stamp_json().map(str::len), true);
            }
            WantedInstanceStamp::Kept(before) => {
                let before = before.stamp_text();
                let kept = before.as_deref().and_then(|text| last_applied::kept(text, annotations.others));
                let same = written().as_deref() == kept.as_deref();
                (kept.map(Cow::into_owned), same, !same)
            }
            // The annotation of another spec, unchanged.
            WantedInstanceStamp::Made { text, before, .. }
                if before.is_some() && annotations.stamp_json() == before =>
            {
                (text, false, true)
            }
            WantedInstanceStamp::Made { text, draft, .. } => {
                let written = written();
                let patched = written.as_deref() != text.as_deref();
                let same =
                    !patched || written.as_deref().is_some_and(|found| last_applied::says(found, &draft));
                (text, same, patched)
            }
        };
        let size = wanted.as_ref().map(String::len);
        if patched {
            operations.stamp(&object.metadata, wanted);
        }
        (size, same)
    }
}

/// Restores the history of runs, which only Interlock writes; whether the written one was right.
/// Annotations of others take precedence over it.
fn restore_history(
    before: Option<&Annotations<'_>>,
    written: &Annotations<'_>,
    stamp: Option<usize>,
    operations: &mut Operations,
) -> bool {
    let before = before.filter(|before| before.own(meta::HISTORY).is_some());
    let fits = |size: usize| size_budget::holds_bytes(written.others, stamp, size);
    let same = written.own(meta::HISTORY) == before.and_then(|before| before.own(meta::HISTORY));
    match before.filter(|before| fits(before.history)) {
        Some(_) if same => {}
        Some(kept) => {
            let text = kept.own(meta::HISTORY).and_then(|runs| runs.text().ok());
            operations.history(written.present || stamp.is_some(), text.as_ref().map(|text| &*text.0));
        }
        None if written.own(meta::HISTORY).is_some() => operations.drop_history(),
        None => return true,
    }
    same
}
