//! UPDATE of an Instance that is locked by a plan or is being deleted.

use interlock_core::admission::denial::Denial;
use interlock_core::admission::endpoint::Freeze;
use interlock_core::api::meta::plan::CLEANUP;
use interlock_core::api::violation::InstanceCommand;

use super::context::Rejection;
use super::denials;
use super::plan_intent::PlanIntent;
use super::update::{ChangeEffect, InstanceUpdate};
use crate::instance::change::lock::Lock;
use crate::instance::change::spec_change::SpecChange;
use crate::instance::change::validate;
use crate::instance::change::validate::{ChangedPackages, Triggered};
use crate::instance::rules::ids::{INSTANCE_DELETING, PLAN_CANCEL, PLAN_OVERRIDE, PLAN_RUNNING};
use crate::operator_version::packages;

/// Locked: nothing that a plan carries out changes, except as the freeze mode permits.
impl<'a> InstanceUpdate<'a, '_> {
    pub(super) fn locked(
        &self,
        lock: &Lock<'_>,
        asked: PlanIntent<'_>,
    ) -> Result<ChangeEffect<'a>, Rejection> {
        let violated = |rule, sentence: String, fields| {
            let denial = self.failed(rule, &sentence, fields);
            self.evaluation.violations.push(self.because_of(lock, denial));
        };
        let before = &self.old.execution;
        let cancels = match asked {
            PlanIntent::Clear => {
                violated(
                    PLAN_CANCEL,
                    format!(
                        "cancelling currently scheduled (or running) plan '{}' is not supported",
                        lock.plan
                    ),
                    vec![denials::execution_field("planName", &before.plan, "")],
                );
                true
            }
            PlanIntent::Trigger(plan) if plan != lock.plan => {
                violated(
                    PLAN_OVERRIDE,
                    format!(
                        "overriding currently scheduled (or running) plan '{}' with '{plan}' is not supported",
                        lock.plan
                    ),
                    vec![denials::execution_field("planName", &before.plan, plan)],
                );
                true
            }
            _ => false,
        };
        if self.evaluation.context.config.freeze == Freeze::SamePlan && !cancels {
            return self.same_plan(lock, asked);
        }
        if self.changed {
            return self.after_the_plan(lock);
        }
        match asked {
            PlanIntent::Trigger(plan) if !cancels => violated(
                PLAN_OVERRIDE,
                format!("restarting currently scheduled (or running) plan '{plan}' is not supported"),
                vec![denials::execution_field("uid", &before.uid, &self.new.execution.uid)],
            ),
            _ => {}
        }
        Ok(ChangeEffect::nothing())
    }

    /// Denies a change of the spec. If the settings admit it, it is validated like any other and left
    /// to the reconciler, which finds it when the plan has ended.
    fn after_the_plan(&self, lock: &Lock<'_>) -> Result<ChangeEffect<'a>, Rejection> {
        self.evaluation.violations.push(self.frozen(lock));
        self.edit()?;
        Ok(ChangeEffect::nothing())
    }

    /// The denial of a change of the spec: KUDO's sentence if it has one for this change.
    fn frozen(&self, lock: &Lock<'_>) -> Denial {
        let packages = packages(self.evaluation.context);
        let package = packages.operator_version(&self.new.version());
        let old = match self.new.applied.operator_version == self.old.applied.operator_version {
            true => package.clone(),
            false => packages.operator_version(&self.old.version()),
        };
        let delta = SpecChange::between(&self.old.applied, &self.new.applied);
        let triggered = package.as_deref().map(|new| {
            validate::triggered(&delta, ChangedPackages { new, old: old.as_deref() }, &mut Vec::new())
        });
        let sentence = match triggered {
            Some(Triggered::Plan(plan)) if plan != lock.plan => format!(
                "plan '{}' is scheduled (or running) and an update would trigger a different plan '{plan}'",
                lock.plan
            ),
            _ if delta.upgrade => format!(
                "upgrade to new OperatorVersion {} while a plan '{}' is scheduled (or running) is not allowed",
                validate::go_reference(&self.new.applied.operator_version.name, None),
                lock.plan
            ),
            _ => format!("the spec is frozen while plan '{}' is scheduled (or running)", lock.plan),
        };
        let fields = self.delta_fields(package.as_deref());
        let refusal = self.failed(PLAN_RUNNING, &sentence, fields);
        self.because_of(lock, refusal)
    }

    /// `--freeze=same-plan`: a change that triggers the running plan restarts it, and so does a
    /// changed or emptied uid.
    fn same_plan(&self, lock: &Lock<'_>, asked: PlanIntent<'_>) -> Result<ChangeEffect<'a>, Rejection> {
        if !self.changed {
            return Ok(match asked {
                PlanIntent::Trigger(plan) => ChangeEffect::run(plan),
                _ => ChangeEffect::nothing(),
            });
        }
        let Some((new, old)) = self.packages()? else { return self.after_the_plan(lock) };
        let delta = SpecChange::between(&self.old.applied, &self.new.applied);
        let packages = ChangedPackages { new: &new, old: old.as_deref() };
        if delta.upgrade {
            return self.after_the_plan(lock);
        }
        self.violated(validate::invalid_parameters(&delta, &self.new.applied, packages));
        let mut violations = Vec::new();
        let triggered = validate::triggered(&delta, packages, &mut violations);
        self.violated(violations);
        match triggered {
            Triggered::Plan(plan) if plan == lock.plan => Ok(ChangeEffect::run(plan)),
            // `Nothing`: the change removes undefined parameters. The policies, which see no package,
            // require a restart for any change of parameters.
            Triggered::Plan(_) | Triggered::Several | Triggered::Unknown | Triggered::Nothing => {
                self.after_the_plan(lock)
            }
        }
    }

    /// The Instance is being deleted: its spec stays, and the controller runs `cleanup`.
    pub(super) fn deleting(
        &self,
        lock: Option<&Lock<'_>>,
        asked: PlanIntent<'_>,
    ) -> Result<ChangeEffect<'a>, Rejection> {
        let same_plan = self.evaluation.context.config.freeze == Freeze::SamePlan;
        let violated = |rule, sentence: &str, fields| {
            let denial =
                self.failed(rule, sentence, fields).why("the Instance is being deleted").next(denials::next(
                    "let the deletion end, then create the Instance anew",
                    InstanceCommand::AwaitDeletion,
                    &self.instance,
                ));
            self.evaluation.violations.push(denial);
        };
        let before = &self.old.execution;
        if self.changed {
            let package = packages(self.evaluation.context).operator_version(&self.new.version());
            violated(
                INSTANCE_DELETING,
                "parameter update and/or upgrade is not allowed when an instance is being deleted",
                self.delta_fields(package.as_deref()),
            );
        }
        let cleaning = lock.is_some_and(|lock| lock.plan == CLEANUP);
        match asked {
            PlanIntent::Trigger(plan) if plan != CLEANUP && cleaning => violated(
                INSTANCE_DELETING,
                "'cleanup' plan can not be cancelled or overridden by another plan since the instance is being deleted",
                vec![denials::execution_field("planName", &before.plan, plan)],
            ),
            PlanIntent::Clear if cleaning => violated(
                INSTANCE_DELETING,
                "'cleanup' plan can not be cancelled or overridden by another plan since the instance is being deleted",
                vec![denials::execution_field("planName", &before.plan, "")],
            ),
            PlanIntent::Clear => match lock {
                Some(lock) => return self.locked(lock, asked),
                None => return Ok(ChangeEffect { as_written: true, ..ChangeEffect::nothing() }),
            },
            PlanIntent::Trigger(CLEANUP) if same_plan => {
                self.package_of(CLEANUP)?;
                return Ok(ChangeEffect { stamped: false, ..ChangeEffect::run(CLEANUP) });
            }
            PlanIntent::Trigger(CLEANUP) => {
                let field = denials::execution_field("planName", &before.plan, CLEANUP);
                let violation = validate::cleanup_triggered(vec![field]);
                self.violated([violation
                    .next("wait: Interlock schedules it by itself")
                    .command(InstanceCommand::AwaitDeletion)]);
            }
            PlanIntent::Trigger(plan) => violated(
                INSTANCE_DELETING,
                "only 'cleanup' plan can be scheduled when an instance is being deleted",
                vec![denials::execution_field("planName", &before.plan, plan)],
            ),
            _ => {}
        }
        Ok(ChangeEffect::nothing())
    }
}
