//! UPDATE of an unlocked Instance.

use std::sync::Arc;

use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::api::meta::plan::CLEANUP;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::suggest;
use interlock_core::api::violation::{InstanceCommand, SpecViolation};

use super::context::Rejection;
use super::denials;
use super::plan_intent::PlanIntent;
use super::update::{ChangeEffect, InstanceUpdate};
use crate::api::ExecutionStatus;
use crate::instance::change::creation;
use crate::instance::change::creation::Creation;
use crate::instance::change::spec_change::SpecChange;
use crate::instance::change::validate;
use crate::instance::change::validate::{Before, ChangedPackages, Triggered};
use crate::instance::rules::ids::{PLAN_AND_EDIT, PLAN_MULTIPLE, PLAN_UID, PLAN_UNKNOWN, SPEC_DRIFT};
use crate::instance::spec::SpecView;
use crate::instance::status::BaselineHead;
use crate::operator_version::packages;
use crate::package::{Package, trigger};

/// Unlocked: a change of the spec runs the plan that it triggers, and a named plan runs.
impl<'a> InstanceUpdate<'a, '_> {
    pub(super) fn unlocked(&self, asked: PlanIntent<'_>) -> Result<ChangeEffect<'a>, Rejection> {
        if self.is_uncreated() {
            return self.uncreated(asked);
        }
        if let PlanIntent::Trigger(plan) = asked {
            return self.trigger(plan);
        }
        let as_written = asked == PlanIntent::Clear || asked == PlanIntent::Same;
        let effect = if self.changed { self.edit()? } else { ChangeEffect::nothing() };
        let effect = if self.is_left(asked) { ChangeEffect::nothing() } else { effect };
        Ok(ChangeEffect { as_written, ..effect })
    }

    /// Whether nothing of it was ever scheduled: its OperatorVersion was not there. The leader completes it.
    fn is_uncreated(&self) -> bool {
        let metadata = &self.change.old.metadata;
        let ran = self.status.entries().any(|entry| !matches!(entry.status, ExecutionStatus::NeverRun));
        // A manifest that `interlock check` is given may lack what the API server has.
        let is_stored = metadata.uid.is_some();
        let is_new = self.old.execution.plan.is_empty() && !ran;
        is_stored && is_new && self.basis().is_none()
    }

    /// An Instance that waits for its OperatorVersion: any edit may mend it.
    fn uncreated(&self, asked: PlanIntent<'_>) -> Result<ChangeEffect<'a>, Rejection> {
        if let Some(package) = self.evaluation.package(&self.new, &self.instance)? {
            let given = &self.new.applied.parameters;
            let spec = Creation::new(&package, given).spec(&self.new.applied);
            self.violated(creation::violations(&package, given, &spec.parameters));
        }
        let warning = matches!(asked, PlanIntent::Trigger(_)).then(|| {
            (PLAN_UID, "spec.planExecution is replaced: a new Instance runs plan 'deploy'".to_owned())
        });
        // That of a reference into another namespace proves that its user may read it.
        let elsewhere = self.new.applied.operator_version.namespace != self.evaluation.request.namespace;
        Ok(ChangeEffect { warning, stamped: elsewhere, ..ChangeEffect::nothing() })
    }

    /// Whether mutation did not know the new OperatorVersion, and left the change to the leader.
    fn is_left(&self, asked: PlanIntent<'_>) -> bool {
        let (object, old) = (self.change.object, self.change.old);
        !self.evaluation.context.endpoint.patches()
            && matches!(asked, PlanIntent::Nothing | PlanIntent::Same)
            && self.new.applied.operator_version != self.old.applied.operator_version
            && object.metadata.annotations.stamp_json() == old.metadata.annotations.stamp_json()
    }

    /// The baseline, if the old spec differs from it.
    fn drifted(&self) -> Option<&BaselineHead<'a>> {
        self.basis().filter(|head| head.hash != self.old.hash().as_str())
    }

    /// The OperatorVersion of a plan, which must exist in it.
    pub(super) fn package_of(&self, plan: &str) -> Result<Option<Arc<Package>>, Rejection> {
        let found = self.evaluation.package(&self.new, &self.instance)?;
        self.has_plan(found.as_deref(), plan);
        Ok(found)
    }

    /// The OperatorVersion of the last-applied spec, where that is another one.
    fn of_stamp(&self) -> Option<NamespacedName> {
        let envelope = self.envelope()?;
        let version = &envelope.kept.inline()?.operator_version;
        (*version != self.new.applied.operator_version)
            .then(|| NamespacedName::new(version.namespace.as_ref(), version.name.as_ref()))
    }

    /// A plan must exist in its OperatorVersion.
    fn has_plan(&self, package: Option<&Package>, plan: &str) {
        let Some(package) = package.filter(|package| package.plan(plan).is_none()) else { return };
        let names: Vec<&str> = package.plan_names().filter(|name| *name != CLEANUP).collect();
        let objection = SpecViolation::new(
            PLAN_UNKNOWN,
            format!("plan {plan} does not exist"),
            vec![ViolationField::new(
                "spec.planExecution.planName",
                FieldReason::NotFound,
                format!("OperatorVersion {} has the plans [{}]", package.key.name, names.join(" ")),
            )],
        )
        .next(format!(
            "{} (`kubectl get operatorversion {} -n {} -o yaml` shows them)",
            suggest::did_you_mean(plan, &names).unwrap_or("name one of these plans".to_owned()),
            package.key.name,
            package.key.namespace
        ));
        self.violated([objection]);
    }

    /// A plan is triggered directly.
    fn trigger(&self, plan: &str) -> Result<ChangeEffect<'a>, Rejection> {
        let field = || vec![denials::execution_field("planName", &self.old.execution.plan, plan)];
        if self.changed {
            self.evaluation.violations.push(self.trigger_and_edit(plan));
            return self.edit();
        }
        let drifted = self.drifted().is_some();
        let package = match self.of_stamp().filter(|_| drifted) {
            Some(key) => {
                let package = packages(self.evaluation.context).operator_version(&key);
                self.has_plan(package.as_deref(), plan);
                package
            }
            None => self.package_of(plan)?,
        };
        if package.is_none()
            && self.evaluation.awaited.get().is_some()
            && self.evaluation.context.endpoint.patches()
        {
            return Ok(ChangeEffect::nothing());
        }
        if plan == CLEANUP {
            self.violated([validate::cleanup_triggered(field())]);
        }
        if let Some(package) = package {
            self.violated(validate::invalid_values(&package, &self.new.applied.parameters));
        }
        if !drifted {
            return Ok(ChangeEffect::run(plan));
        }
        if self.envelope().is_none() {
            let refusal = self
                .failed(
                    SPEC_DRIFT,
                    "an edit that was never admitted has to be judged before another plan runs",
                    field(),
                )
                .why("the spec differs from what was last carried out, and that is not known any more")
                .next(denials::next(
                    "wait until condition SpecDrift is gone, or undo the edit that it names",
                    InstanceCommand::Describe,
                    &self.instance,
                ));
            self.evaluation.violations.push(refusal);
        }
        // The plan runs on the last-applied spec, and the unseen edit is validated after it.
        Ok(ChangeEffect { stamped: false, ..ChangeEffect::run(plan) })
    }

    fn trigger_and_edit(&self, plan: &str) -> Denial {
        let upgrade = self.new.applied.operator_version != self.old.applied.operator_version;
        let packages = packages(self.evaluation.context);
        let package = packages.operator_version(&self.new.version());
        let sentence = if upgrade {
            let name = &self.new.applied.operator_version.name;
            format!(
                "upgrade to new OperatorVersion {} and triggering new plan '{plan}' is not allowed",
                validate::go_reference(name, None)
            )
        } else {
            format!(
                "triggering one plan '{}' directly and through parameter update '{plan}' is not allowed",
                self.old.execution.plan
            )
        };
        let mut fields = vec![denials::execution_field("planName", &self.old.execution.plan, plan)];
        fields.extend(self.delta_fields(package.as_deref()));
        self.failed(PLAN_AND_EDIT, &sentence, fields).why("a change of the spec runs its own plan").next(
            denials::next(
                "change the spec first, and trigger the plan when that run has ended; or the other way round",
                InstanceCommand::Await,
                &self.instance,
            ),
        )
    }

    /// The spec changes. The plan for it is unknown if its OperatorVersion is, or if several plans
    /// would run: the reconciler decides then.
    pub(super) fn edit(&self) -> Result<ChangeEffect<'a>, Rejection> {
        let Some((new, old)) = self.packages()? else { return Ok(ChangeEffect::nothing()) };
        let packages = ChangedPackages { new: &new, old: old.as_deref() };
        if let Some(basis) = self.drifted() {
            return self.edit_drifted(basis, packages);
        }
        let delta = SpecChange::between(&self.old.applied, &self.new.applied);
        if delta.upgrade && !self.goes_back() {
            self.violated(validate::upgrade_path(&self.old.applied.operator_version, packages));
        }
        let (dropped, spec) = self.without_dropped(&delta, packages);
        let applied = &spec.as_ref().unwrap_or(&self.new).applied;
        self.violated(validate::invalid_parameters(&delta, applied, packages));
        let mut violations = Vec::new();
        let triggered = validate::triggered_plan(&delta, packages, &mut violations);
        self.violated(violations);
        let plan = match triggered {
            Triggered::Nothing => None,
            Triggered::Plan(plan) => Some(plan),
            Triggered::Several | Triggered::Unknown => return Ok(ChangeEffect::nothing()),
        };
        let owed = plan.as_deref().and_then(|plan| owed(plan, &delta, packages));
        Ok(ChangeEffect {
            plan,
            stamped: true,
            dropped,
            spec,
            as_written: false,
            warning: owed.map(|owed| (PLAN_MULTIPLE, owed)),
        })
    }

    fn without_dropped(
        &self,
        delta: &SpecChange<'_>,
        packages: ChangedPackages<'_>,
    ) -> (Vec<String>, Option<SpecView<'a>>) {
        let dropped: Vec<String> =
            validate::dropped_parameters(packages, &self.new.applied.parameters, delta)
                .into_iter()
                .map(str::to_owned)
                .collect();
        if dropped.is_empty() {
            return (dropped, None);
        }
        let mut spec = self.new.clone();
        spec.remove(&dropped);
        (dropped, Some(spec))
    }

    /// Whether the change returns to the last spec that was carried out in full.
    fn goes_back(&self) -> bool {
        validate::is_revert(self.envelope().as_ref(), &self.new.applied)
    }

    /// The old spec holds an edit that admission never saw: the change is validated against the
    /// baseline, and left to the reconciler, as a plan for it would carry out the unseen edit as well.
    fn edit_drifted(
        &self,
        head: &BaselineHead<'_>,
        packages: ChangedPackages<'_>,
    ) -> Result<ChangeEffect<'a>, Rejection> {
        let mended = head.hash == self.new.hash().as_str();
        let own = SpecChange::between(&self.old.applied, &self.new.applied);
        if mended {
            return Ok(ChangeEffect::nothing());
        }
        let mut violations = Vec::new();
        validate::triggered(&own, packages, &mut violations);
        self.violated(violations);
        let Some(basis) = self.status.basis() else { return Ok(ChangeEffect::nothing()) };
        let together = |found: Vec<SpecViolation>| {
            for objection in found {
                let denial = denials::from_objection(objection, &self.instance);
                self.evaluation.violations.push(denial.why(
                    "the spec already holds an edit that was never admitted; this change is judged together with it",
                ));
            }
        };
        let envelope = self.envelope();
        let stamp =
            envelope.as_ref().and_then(|e| e.kept.inline()).filter(|stamp| stamp.hash() == basis.hash);
        let goes_back = self.goes_back();
        if own.upgrade
            && stamp.is_none()
            && !goes_back
            && !basis.is_of_version(&self.new.applied.operator_version)
        {
            // Only the old reference still shows where the upgrade starts.
            together(validate::upgrade_path(&self.old.applied.operator_version, packages));
        }
        let carried_out = stamp
            .map(|stamp| &stamp.operator_version)
            .filter(|version| **version != self.old.applied.operator_version)
            .map(|version| {
                let key = NamespacedName::new(version.namespace.as_ref(), version.name.as_ref());
                crate::operator_version::packages(self.evaluation.context).operator_version(&key)
            });
        let old = match &carried_out {
            Some(found) => found.as_deref(),
            None => packages.old,
        };
        let before = Before { baseline: &basis, stamp, version: None, is_revert: goes_back };
        together(validate::edit_past_admission(
            before,
            &self.new.applied,
            ChangedPackages { old, ..packages },
        ));
        Ok(ChangeEffect::nothing())
    }
}

/// What is owed to changed parameters without a trigger, beside the plan of those with one.
fn owed(plan: &str, change: &SpecChange<'_>, packages: ChangedPackages<'_>) -> Option<String> {
    let counted = validate::counted(change, packages);
    let (after, parameters) = trigger::without_trigger(packages.new, counted)?;
    (!change.upgrade && after != plan).then(|| {
        format!(
            "no trigger names a plan for {}: plan '{after}' carries them out after plan '{plan}'",
            parameters.join(", ")
        )
    })
}
