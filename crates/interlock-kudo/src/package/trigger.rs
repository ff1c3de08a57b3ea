//! Which plans a change of parameters or of the OperatorVersion triggers.
//!
//! The webhook and the reconciler share these functions, so that the plan admitted is the one run.

use std::collections::BTreeSet;

use interlock_core::api::meta::plan::{DEPLOY, UPDATE, UPGRADE};
use thiserror::Error;

use super::Package;
use crate::api::OperatorVersionSpec;

/// Why no plan can be named for a change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TriggerError {
    /// A parameter names a plan that the package does not have. The text is KUDO's.
    #[error("param {parameter} defined trigger plan {plan}, but plan not defined in operatorversion")]
    UndefinedPlan {
        parameter: String,
        /// The plan it names.
        plan: String,
    },
    /// No trigger, and neither `update` nor `deploy` exists. The text is KUDO's.
    #[error("couldn't find any plans that would be triggered by the update")]
    NoPlan,
}

/// Plans that a change of these parameters triggers, in order of name.
///
/// Skips parameters that the package does not define: admission denies them where that matters. Changed
/// parameters without a trigger count only where none has one: they run `update`, else `deploy`
/// (KUDO `instance_admission.go`); else [`without_trigger`] says what is owed to them.
pub fn plans<'k>(
    package: &Package,
    keys: impl IntoIterator<Item = &'k str>,
) -> Result<BTreeSet<String>, TriggerError> {
    let mut known = 0_usize;
    let mut named = BTreeSet::new();
    for definition in keys.into_iter().filter_map(|key| package.parameter(key)) {
        known += 1;
        let Some(plan) = definition.trigger.as_deref().filter(|t| !t.is_empty()) else { continue };
        if package.plan(plan).is_none() {
            return Err(TriggerError::UndefinedPlan {
                parameter: definition.name.clone().unwrap_or_default(),
                plan: plan.to_owned(),
            });
        }
        named.insert(plan.to_owned());
    }
    if known > 0 && named.is_empty() {
        let fallback = first_of(&package.spec, [UPDATE, DEPLOY]).ok_or(TriggerError::NoPlan)?;
        named.insert(fallback.to_owned());
    }
    Ok(named)
}

/// The plan that carries out those of the changed parameters that have no trigger, and these parameters; `None` where
/// each has one, or no plan is there. KUDO forgets them where another parameter of the change has a trigger.
pub fn without_trigger<'k>(
    package: &Package,
    keys: impl IntoIterator<Item = &'k str>,
) -> Option<(&'static str, Vec<&'k str>)> {
    let has_none = |key: &&str| {
        package.parameter(key).is_some_and(|found| found.trigger.as_deref().unwrap_or_default().is_empty())
    };
    let keys: Vec<&str> = keys.into_iter().filter(has_none).collect();
    let plan = first_of(&package.spec, [UPDATE, DEPLOY]).filter(|_| !keys.is_empty())?;
    Some((plan, keys))
}

/// Whether a change of a parameter counts. An upgrade sets parameters that are new with it, so that
/// only those of the old OperatorVersion count (KUDO `instance_admission.go`). Without that one,
/// all count.
pub fn counts(upgrade: bool, old: Option<&Package>, key: &str) -> bool {
    !upgrade || old.is_none_or(|old| old.parameter(key).is_some())
}

/// The plan that a change of the OperatorVersion runs: `upgrade`, else `update`, else `deploy`.
pub fn upgrade_plan(package: &Package) -> Option<&'static str> {
    upgrade_plan_of(&package.spec)
}

/// The same for a package that is no more than its spec yet.
pub fn upgrade_plan_of(spec: &OperatorVersionSpec) -> Option<&'static str> {
    first_of(spec, [UPGRADE, UPDATE, DEPLOY])
}

fn first_of<const N: usize>(spec: &OperatorVersionSpec, names: [&'static str; N]) -> Option<&'static str> {
    names.into_iter().find(|name| spec.plans.as_ref().is_some_and(|plans| plans.contains_key(*name)))
}
