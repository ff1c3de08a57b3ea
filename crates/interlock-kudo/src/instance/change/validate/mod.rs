//! Validates a change of an Instance's spec: the plan that it triggers, and violated rules.
//!
//! Each rule returns all violations that it finds, and stops no other rule. The caller decides
//! which of them are enforced.
//!
//! The webhook compares `oldObject` with `object`, the reconciler the baseline with a spec that
//! bypassed admission: both apply the same rules.

use interlock_core::api::stamp::{Applied, VersionRef};
use interlock_core::api::violation::SpecViolation;

use super::baseline::Baseline;
use super::spec_change::SpecChange;
use crate::instance::rules::ids::PLAN_MULTIPLE;

mod immutable;
mod triggered;
mod upgrade;
mod values;

#[cfg(test)]
mod tests;

pub use triggered::{Triggered, cleanup_triggered, counted, go_reference, triggered, triggered_plan};
pub use upgrade::{ChangedPackages, dropped_parameters, is_revert, upgrade_path};
pub use values::{invalid_parameters, invalid_values, unknown_parameters};

/// The state before an edit that bypassed admission.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    pub baseline: &'a Baseline,
    /// The last-applied spec, where it is available.
    pub stamp: Option<&'a Applied<'a>>,
    /// The OperatorVersion of the baseline, where it is known without its spec.
    pub version: Option<&'a VersionRef<'a>>,
    /// Whether the edit reverts to an OperatorVersion according to [`is_revert`].
    pub is_revert: bool,
}

/// The violations that admission would find in a spec that bypassed it, compared with the baseline.
///
/// Several triggers are no violation here: the reconciler runs the plans one after another.
pub fn edit_past_admission(
    before: Before<'_>,
    spec: &Applied<'_>,
    packages: ChangedPackages<'_>,
) -> Vec<SpecViolation> {
    let Before { baseline, stamp, version, is_revert } = before;
    let known = stamp.filter(|stamp| stamp.hash() == baseline.hash);
    let change = match known {
        Some(before) => Some(SpecChange::between(before, spec)),
        None => SpecChange::since(baseline, spec),
    };
    let Some(change) = change else { return invalid_values(packages.new, &spec.parameters) };
    let mut violations = Vec::new();
    if change.upgrade
        && !is_revert
        && let Some(from) = known.map(|before| &before.operator_version).or(version)
    {
        violations.extend(upgrade_path(from, packages));
    }
    violations.extend(invalid_parameters(&change, spec, packages));
    triggered(&change, packages, &mut violations);
    violations.retain(|violation| violation.rule != PLAN_MULTIPLE);
    violations
}
