//! The plan that a change triggers.

use interlock_core::api::meta::plan::{CLEANUP, DEPLOY};
use interlock_core::api::violation::{FieldReason, InstanceCommand, SpecViolation, ViolationField};

use super::upgrade::ChangedPackages;
use crate::instance::change::spec_change::SpecChange;
use crate::instance::rules::ids::{PLAN_CLEANUP, PLAN_MULTIPLE, PLAN_UNKNOWN, UPGRADE_AND_EDIT};
use crate::package::Package;
use crate::package::trigger;
use crate::package::trigger::TriggerError;

/// The plan that a change triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Triggered {
    /// None: only parameters changed that the package does not define.
    Nothing,
    Plan(String),
    /// Several plans: where the settings admit that, the reconciler runs them one after another.
    Several,
    /// A plan that does not exist, or `cleanup`, which only the reconciler runs.
    Unknown,
}

/// The plan that a change triggers.
pub fn triggered_plan(
    change: &SpecChange<'_>,
    packages: ChangedPackages<'_>,
    violations: &mut Vec<SpecViolation>,
) -> Triggered {
    let triggered = triggered(change, packages, violations);
    if !change.upgrade {
        return triggered;
    }
    match triggered {
        Triggered::Several | Triggered::Unknown => return triggered,
        Triggered::Plan(plan) if plan != DEPLOY => {
            violations.push(upgrade_and_edit(&plan, change, packages));
            return Triggered::Several;
        }
        Triggered::Plan(_) | Triggered::Nothing => {}
    }
    if let Some(plan) = trigger::upgrade_plan(packages.new) {
        return Triggered::Plan(plan.to_owned());
    }
    violations.push(
        SpecViolation::new(
            PLAN_UNKNOWN,
            "couldn't find any suitable plan that would be triggered by an OperatorVersion upgrade",
            vec![ViolationField::new(
                "spec.operatorVersion.name",
                FieldReason::Invalid,
                format!("OperatorVersion {} has no plan upgrade, update or deploy", packages.new.key.name),
            )],
        )
        .next(format!(
            "name an OperatorVersion with a plan 'upgrade', 'update' or 'deploy', or add one to this (`kubectl get \
             operatorversions -n {}` lists them)",
            packages.new.key.namespace
        )),
    );
    Triggered::Unknown
}

fn upgrade_and_edit(plan: &str, change: &SpecChange<'_>, packages: ChangedPackages<'_>) -> SpecViolation {
    SpecViolation::new(
        UPGRADE_AND_EDIT,
        format!(
            "upgrade to new OperatorVersion {} together with a parameter update triggering '{plan}' is not \
             allowed",
            go_reference(&packages.new.key.name, None)
        ),
        changed_fields(change),
    )
    .next("upgrade first; change these parameters when the upgrade has ended")
    .command(InstanceCommand::Await)
}

/// Changed and removed parameters that trigger plans, in order of name.
pub fn counted<'c>(change: &'c SpecChange<'_>, packages: ChangedPackages<'_>) -> Vec<&'c str> {
    // Each of them either changed or is gone.
    let changed = change.changed.iter().map(|(key, _)| *key);
    let mut counted: Vec<&str> = changed
        .filter(|key| trigger::counts(change.upgrade, packages.old, key))
        .chain(change.removed.iter().map(|(key, _)| key.as_ref()))
        .collect();
    counted.sort_unstable();
    counted
}

/// The plan that changed and removed parameters trigger.
pub fn triggered(
    change: &SpecChange<'_>,
    packages: ChangedPackages<'_>,
    violations: &mut Vec<SpecViolation>,
) -> Triggered {
    let plans = match trigger::plans(packages.new, counted(change, packages)) {
        Ok(plans) => plans,
        Err(error) => {
            violations.push(undefined_trigger(&error, change, packages.new));
            return Triggered::Unknown;
        }
    };
    if plans.contains(CLEANUP) {
        violations.push(cleanup_triggered(changed_fields(change)));
        return Triggered::Unknown;
    }
    if plans.len() > 1 {
        let names: Vec<&str> = plans.iter().map(String::as_str).collect();
        let violation = SpecViolation::new(
            PLAN_MULTIPLE,
            format!("triggering multiple plans: [[{}]] at once is not allowed", names.join(" ")),
            changed_fields(change),
        );
        let next = "make one change per plan, each when the plan of the one before has ended";
        violations.push(violation.next(next).command(InstanceCommand::Await));
        return Triggered::Several;
    }
    plans.into_iter().next().map_or(Triggered::Nothing, Triggered::Plan)
}

/// Only the controller runs `cleanup`, when the Instance is deleted.
pub fn cleanup_triggered(fields: Vec<ViolationField>) -> SpecViolation {
    SpecViolation::new(
        PLAN_CLEANUP,
        "only the controller schedules the 'cleanup' plan when the instance is deleted",
        fields,
    )
    .next("delete the Instance to have 'cleanup' run")
    .command(InstanceCommand::Delete)
}

fn undefined_trigger(error: &TriggerError, change: &SpecChange<'_>, package: &Package) -> SpecViolation {
    SpecViolation::new(PLAN_UNKNOWN, error.to_string(), changed_fields(change)).next(format!(
        "correct the OperatorVersion: a trigger must name one of its plans (`kubectl get operatorversion {} -n {} -o \
         yaml`)",
        package.key.name, package.key.namespace
    ))
}

fn changed_fields(change: &SpecChange<'_>) -> Vec<ViolationField> {
    let mut fields: Vec<ViolationField> =
        change.keys().map(|key| ViolationField::parameter(key, FieldReason::Forbidden, "")).collect();
    if fields.is_empty() {
        fields.push(ViolationField::new("spec", FieldReason::Forbidden, "is changed by this request"));
    }
    fields
}

/// A reference as KUDO prints it: a Go struct of seven strings.
pub fn go_reference(name: &str, namespace: Option<&str>) -> String {
    format!("{{ {} {name}    }}", namespace.unwrap_or_default())
}
