//! Which plan a change runs.

use super::delta::Delta;
use super::upgrade::Packages;
use crate::api::meta::plan::{CLEANUP, DEPLOY};
use crate::api::rule::Rule;
use crate::plan::bench::Bench;
use crate::plan::objection::{Field, FieldReason, Objection};
use crate::plan::trigger::{self, TriggerError};

/// What a change runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Triggered {
    /// Nothing: only parameters changed that nobody defines.
    Nothing,
    /// A plan.
    Plan(String),
    /// Several plans, and the settings let that pass: the reconciler runs them one after another.
    Several,
}

/// What a change runs.
pub fn plan(delta: &Delta<'_>, packages: Packages<'_>, bench: &Bench) -> Result<Triggered, Objection> {
    let triggered = triggered(delta, packages, bench)?;
    if !delta.upgrade {
        return Ok(triggered);
    }
    match triggered {
        Triggered::Several => return Ok(Triggered::Several),
        Triggered::Plan(plan) if plan != DEPLOY => {
            bench.object(upgrade_and_edit(&plan, delta, packages))?;
            return Ok(Triggered::Several);
        }
        Triggered::Plan(_) | Triggered::Nothing => {}
    }
    match trigger::upgrade_plan(packages.new) {
        Some(plan) => Ok(Triggered::Plan(plan.to_owned())),
        None => Err(Objection::new(
            Rule::PlanUnknown,
            "couldn't find any suitable plan that would be triggered by an OperatorVersion upgrade",
            vec![Field::new(
                "spec.operatorVersion.name",
                FieldReason::Invalid,
                format!("OperatorVersion {} has no plan upgrade, update or deploy", packages.new.key.name),
            )],
        )
        .next("name an OperatorVersion with a plan 'upgrade', 'update' or 'deploy', or add one to this")),
    }
}

fn upgrade_and_edit(plan: &str, delta: &Delta<'_>, packages: Packages<'_>) -> Objection {
    Objection::new(
        Rule::UpgradeAndEdit,
        format!(
            "upgrade to new OperatorVersion {} together with a parameter update triggering '{plan}' is not \
             allowed",
            go_reference(&packages.new.key.name, None)
        ),
        changed_fields(delta),
    )
    .next("upgrade first; change these parameters when the upgrade has ended")
}

/// What changed and removed parameters run.
pub fn triggered(delta: &Delta<'_>, packages: Packages<'_>, bench: &Bench) -> Result<Triggered, Objection> {
    // Each of them either changed or is gone.
    let mut counted: Vec<&str> = delta
        .changed
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| trigger::counts(delta.upgrade, packages.old, key))
        .chain(delta.removed.iter().map(|(key, _)| key.as_ref()))
        .collect();
    counted.sort_unstable();
    let plans = trigger::plans(packages.new, counted).map_err(|error| undefined_trigger(&error, delta))?;
    if plans.contains(CLEANUP) {
        return Err(cleanup(changed_fields(delta)));
    }
    if plans.len() > 1 {
        let names: Vec<&str> = plans.iter().map(String::as_str).collect();
        let objection = Objection::new(
            Rule::PlanMultiple,
            format!("triggering multiple plans: [[{}]] at once is not allowed", names.join(" ")),
            changed_fields(delta),
        );
        bench.object(
            objection.next("make one change per plan, each when the plan of the one before has ended"),
        )?;
        return Ok(Triggered::Several);
    }
    Ok(plans.into_iter().next().map_or(Triggered::Nothing, Triggered::Plan))
}

/// Only the controller runs `cleanup`, when the Instance is deleted.
pub fn cleanup(fields: Vec<Field>) -> Objection {
    Objection::new(
        Rule::PlanCleanup,
        "only the controller schedules the 'cleanup' plan when the instance is deleted",
        fields,
    )
    .next("delete the Instance to have 'cleanup' run")
}

fn undefined_trigger(error: &TriggerError, delta: &Delta<'_>) -> Objection {
    Objection::new(Rule::PlanUnknown, error.to_string(), changed_fields(delta))
        .next("correct the OperatorVersion: a trigger must name one of its plans")
}

fn changed_fields(delta: &Delta<'_>) -> Vec<Field> {
    let mut fields: Vec<Field> = delta
        .keys()
        .map(|key| Field::parameter(key, FieldReason::Forbidden, "is changed by this request"))
        .collect();
    if fields.is_empty() {
        fields.push(Field::new("spec", FieldReason::Forbidden, "is changed by this request"));
    }
    fields
}

/// A reference as KUDO prints it: a Go struct of seven strings.
pub fn go_reference(name: &str, namespace: Option<&str>) -> String {
    format!("{{ {} {name}    }}", namespace.unwrap_or_default())
}
