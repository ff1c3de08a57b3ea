//! UPDATE: the permitted changes, the plan that they run, and the restored fields.

use std::borrow::Cow;
use std::sync::Arc;

use interlock_core::admission::decision::Decision;
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::ids::STAMP_MISMATCH;
use interlock_core::admission::request::ObjectChange;
use interlock_core::admission::review::Annotations;
use interlock_core::admission::{CacheWait, DecisionKind};
use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use interlock_core::api::stamp::{Beginning, Envelope};
use interlock_core::api::violation::{InstanceCommand, SpecViolation};
use interlock_core::last_applied;
use interlock_core::last_applied::LastAppliedDraft;

use super::context::{Evaluation, Rejection};
use super::denials;
use super::mutation::{Finalizer, Mutation, WantedExecution, WantedInstanceStamp, has_finalizer};
use super::plan_intent::{PlanIntent, asked};
use crate::instance::change::lock::Lock;
use crate::instance::change::spec_change::SpecChange;
use crate::instance::change::uid::plan_uid;
use crate::instance::previous_spec;
use crate::instance::rules::ids::{
    FINALIZER_KEPT, HISTORY_OWNER, PARAMETER_UNKNOWN, PLAN_OVERRIDE, PLAN_STATUS,
};
use crate::instance::spec::SpecView;
use crate::instance::status::{BaselineHead, StatusView};
use crate::operator_version::packages;
use crate::package::Package;

/// An UPDATE with its specs and its old status read.
pub(super) struct InstanceUpdate<'a, 'r> {
    pub(super) evaluation: &'r Evaluation<'a>,
    pub(super) change: ObjectChange<'a>,
    pub(super) instance: String,
    pub(super) new: SpecView<'a>,
    pub(super) old: SpecView<'a>,
    pub(super) status: StatusView<'a>,
    /// Whether the carried out part of the spec differs.
    pub(super) changed: bool,
}

/// The package of the new spec, and that of the old one if it still exists.
pub(super) type UpdatePackages = (Arc<Package>, Option<Arc<Package>>);

/// The effect of an allowed update.
pub(super) struct ChangeEffect<'a> {
    /// The plan that is scheduled.
    pub(super) plan: Option<String>,
    /// Whether the last-applied annotation gets this spec.
    pub(super) stamped: bool,
    /// Parameters that an upgrade drops.
    pub(super) dropped: Vec<String>,
    /// The spec without them.
    pub(super) spec: Option<SpecView<'a>>,
    /// Whether planExecution stays as written if no plan is scheduled.
    pub(super) as_written: bool,
    /// What else people should know of it.
    pub(super) warning: Option<(Rule, String)>,
}

impl ChangeEffect<'_> {
    pub(super) fn nothing() -> Self {
        Self { plan: None, stamped: false, dropped: Vec::new(), spec: None, as_written: false, warning: None }
    }

    pub(super) fn run(plan: impl Into<String>) -> Self {
        Self { plan: Some(plan.into()), stamped: true, ..Self::nothing() }
    }
}

impl<'a> Evaluation<'a> {
    /// Decides on an UPDATE.
    pub(super) fn update(&self, change: ObjectChange<'a>) -> Result<Decision, Rejection> {
        let ObjectChange { object, old } = change;
        let same_spec = object.spec == old.spec;
        let finalizer_lost = has_finalizer(old) && !has_finalizer(object);
        if same_spec && !finalizer_lost {
            return Ok(self.metadata_only(change));
        }
        let status = StatusView::read(old).map_err(|_| Rejection::unreadable_status(old))?;
        let new = self.spec(object)?;
        let before = self.spec(old)?;
        self.refers(&new, Some(&before));
        let changed = !new.same(&before);
        let instance = self.instance(old);
        InstanceUpdate { evaluation: self, change, instance, new, old: before, status, changed }.decide()
    }

    /// The spec is unchanged, byte for byte: only our annotations may need restoring.
    fn metadata_only(&self, change: ObjectChange<'a>) -> Decision {
        let before = &change.old.metadata.annotations;
        let own = &change.object.metadata.annotations;
        if own.stamp_json() == before.stamp_json()
            && own.own(meta::HISTORY) == before.own(meta::HISTORY)
            && own.surely_fit()
        {
            return Decision::allow();
        }
        let mut verdict = Mutation::restoring(before).finish(self, change.object, &SpecView::default());
        warn_restored(&mut verdict, own, before);
        verdict
    }
}

/// Warns of a changed annotation that is restored; one that was merely left out is restored silently.
pub(super) fn warn_restored(verdict: &mut Decision, written: &Annotations<'_>, before: &Annotations<'_>) {
    warn_restored_annotation(verdict, written, before);
    warn_history(verdict, written, before);
}

fn warn_restored_annotation(verdict: &mut Decision, written: &Annotations<'_>, before: &Annotations<'_>) {
    let undone = written.stamp_json().is_some() && written.stamp_json() != before.stamp_json();
    if undone && verdict.kind() == DecisionKind::Patched {
        verdict.warn(
            STAMP_MISMATCH,
            "annotation interlock.dev/last-applied-spec is Interlock's own; the change of it was undone",
        );
    }
}

fn warn_history(verdict: &mut Decision, written: &Annotations<'_>, before: &Annotations<'_>) {
    let undone =
        written.own(meta::HISTORY).is_some() && written.own(meta::HISTORY) != before.own(meta::HISTORY);
    if undone && verdict.kind() == DecisionKind::Patched {
        verdict.warn(
            HISTORY_OWNER,
            "annotation plan.interlock.dev/history is Interlock's own; the change of it was undone",
        );
    }
}

impl<'a> InstanceUpdate<'a, '_> {
    fn decide(&self) -> Result<Decision, Rejection> {
        let lock = self.status.lock(&self.old.execution);
        let asked = asked(
            &self.new.execution,
            &self.old,
            self.evaluation.subject(Some(self.change), self.change.object),
        );
        let deleting = self.change.old.metadata.deletion_timestamp.is_some()
            || self.change.object.metadata.deletion_timestamp.is_some();
        match asked {
            PlanIntent::Status => self.evaluation.violations.push(self.status_written(lock.as_ref())),
            PlanIntent::Stray => self.evaluation.violations.push(self.stray()),
            _ => {}
        }
        let effect = match &lock {
            _ if deleting => self.deleting(lock.as_ref(), asked)?,
            Some(lock) => self.locked(lock, asked)?,
            None => self.unlocked(asked)?,
        };
        // A denied request needs no completed object. If a call leaves the denial to the next one, that
        // one has to find the same violations.
        if self.evaluation.violations.refuse() {
            return Ok(Decision::allow());
        }
        self.finish(effect, asked, lock.as_ref())
    }

    /// Computes the object as it must be.
    fn finish(
        &self,
        effect: ChangeEffect<'a>,
        asked: PlanIntent<'_>,
        lock: Option<&Lock<'_>>,
    ) -> Result<Decision, Rejection> {
        let spec = effect.spec.as_ref().unwrap_or(&self.new);
        let hash = spec.hash();
        let before = &self.old.execution;
        let uid = effect.plan.as_ref().map(|plan| {
            plan_uid(self.evaluation.subject(Some(self.change), self.change.object), plan, hash).to_string()
        });
        let execution = match (&effect.plan, uid) {
            (Some(plan), Some(uid)) => Some(WantedExecution {
                plan: Cow::Owned(plan.clone()),
                uid: Cow::Owned(uid),
                status: Cow::Borrowed("NEVER_RUN"),
            }),
            _ if effect.as_written => None,
            _ => Some(WantedExecution {
                plan: before.plan.as_ref().into(),
                uid: before.uid.as_ref().into(),
                status: before.status.as_ref().into(),
            }),
        };
        let stamp = self.stamp(&effect, spec);
        let finalizer = match lock.is_some() && has_finalizer(self.change.old) {
            true => Finalizer::Required,
            false => Finalizer::AsWritten,
        };
        let lost = finalizer == Finalizer::Required && !has_finalizer(self.change.object);
        let desired = Mutation {
            execution,
            finalizer,
            stamp,
            history: Some(&self.change.old.metadata.annotations),
            defaults: Vec::new(),
            dropped: effect.dropped.clone(),
        };
        let mut verdict = desired.finish(self.evaluation, self.change.object, &self.new);
        let (written, old) =
            (&self.change.object.metadata.annotations, &self.change.old.metadata.annotations);
        if asked != PlanIntent::Stale {
            warn_restored_annotation(&mut verdict, written, old);
        }
        warn_history(&mut verdict, written, old);
        if lost {
            verdict.warn(
                FINALIZER_KEPT,
                "finalizer kudo.dev.instance.cleanup is kept while a plan is scheduled or runs",
            );
        }
        if !effect.dropped.is_empty() {
            verdict.warn(
                PARAMETER_UNKNOWN,
                format!(
                    "dropped, as the new OperatorVersion does not define them: {}",
                    effect.dropped.join(", ")
                ),
            );
        }
        if let Some((rule, text)) = effect.warning {
            verdict.warn(rule, text);
        }
        verdict.plan = effect.plan.or_else(|| lock.map(|l| l.plan.to_owned()));
        Ok(verdict)
    }

    /// The last-applied annotation that the object must carry.
    fn stamp<'s>(&'s self, effect: &ChangeEffect<'_>, spec: &'s SpecView<'_>) -> WantedInstanceStamp<'s> {
        let metadata = &self.change.old.metadata;
        let annotations = &metadata.annotations;
        let json = annotations.stamp_json();
        let hash = spec.hash();
        // A direct trigger runs on the last-applied spec.
        let stamped = || match json.and_then(Beginning::of) {
            Some(beginning) => beginning.hash == hash.as_str(),
            None => {
                annotations.stamp_text().as_deref().and_then(Envelope::parse).is_some_and(|e| e.hash == *hash)
            }
        };
        if !effect.stamped || stamped() {
            return WantedInstanceStamp::Kept(annotations);
        }
        // A change that runs no plan keeps the last spec that was carried out in full.
        let basis = if effect.plan.is_some() { self.basis() } else { None };
        let previous = previous_spec::replaced(annotations, &self.old, basis, spec);
        let uid = metadata.uid.as_deref();
        let draft =
            LastAppliedDraft { hash, spec: Some(spec.canonical()), previous, uid, more: &[], excerpt: None };
        let room = self.change.object.metadata.annotations.room(self.evaluation.request.size);
        WantedInstanceStamp::Made { text: last_applied::write(&draft, room), draft, before: json }
    }

    /// The baseline in the status.
    pub(super) fn basis(&self) -> Option<&BaselineHead<'a>> {
        self.status.baseline_head()
    }

    /// The last-applied annotation of the old object.
    pub(super) fn envelope(&self) -> Option<Envelope<'static>> {
        let text = self.change.old.metadata.annotations.stamp_text()?;
        Envelope::parse(&text).map(Envelope::into_owned)
    }

    /// `failed to update Instance <ns>/<name>: SENTENCE`
    pub(super) fn failed(&self, rule: Rule, sentence: &str, fields: Vec<ViolationField>) -> Denial {
        let beginning = ["failed to update Instance ", &self.instance, ": "].concat();
        let denial = Denial::invalid(rule, [beginning.as_str(), sentence].concat(), fields);
        Denial { beginning: beginning.len(), ..denial }
    }

    pub(super) fn because_of(&self, lock: &Lock<'_>, denial: Denial) -> Denial {
        let request = self.change.old.metadata.annotations.own_text(meta::REQUEST);
        let state = (&self.status, request.as_deref());
        denials::locked(denial, lock, state, &self.instance, self.evaluation.context.now)
    }

    pub(super) fn violated(&self, found: impl IntoIterator<Item = SpecViolation>) {
        self.evaluation.violated(found, &self.instance);
    }

    /// The OperatorVersions of the change: none without the new one; validation continues without a
    /// missing old one.
    pub(super) fn packages(&self) -> Result<Option<UpdatePackages>, Rejection> {
        let Some(new) = self.evaluation.package(&self.new, &self.instance)? else { return Ok(None) };
        if self.new.applied.operator_version == self.old.applied.operator_version {
            return Ok(Some((Arc::clone(&new), Some(new))));
        }
        let key = self.old.version();
        let waits = !key.name.is_empty() && !self.evaluation.violations.refuse();
        match (packages(self.evaluation.context).operator_version(&key), self.evaluation.context.wait) {
            (None, CacheWait::Wait) if waits => Err(Rejection::Wait(key)),
            (old, _) => Ok(Some((new, old))),
        }
    }

    pub(super) fn delta_fields(&self, package: Option<&Package>) -> Vec<ViolationField> {
        let delta = SpecChange::between(&self.old.applied, &self.new.applied);
        delta.fields(&self.new.applied, Some(&self.old.applied.operator_version), package)
    }

    fn status_written(&self, lock: Option<&Lock<'_>>) -> Denial {
        let (before, after) = (&self.old.execution.status, &self.new.execution.status);
        let refusal = self.failed(
            PLAN_STATUS,
            "planExecution.status is written by Interlock only",
            vec![denials::execution_field("status", before, after)],
        );
        match lock {
            Some(lock) => self.because_of(lock, refusal),
            None => refusal.next(denials::next(
                "leave planExecution.status out; to trigger a plan set planExecution.planName",
                InstanceCommand::Trigger,
                &self.instance,
            )),
        }
    }

    fn stray(&self) -> Denial {
        self.failed(
            PLAN_OVERRIDE,
            "planExecution.planName is missing",
            vec![ViolationField::new(
                "spec.planExecution.planName",
                FieldReason::Required,
                "is needed beside a uid or a status",
            )],
        )
        .next(denials::next(
            "leave planExecution out, or name the plan to run",
            InstanceCommand::Trigger,
            &self.instance,
        ))
    }
}
