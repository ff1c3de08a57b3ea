//! Validates a change of an Instance's spec: the plan that it triggers, and violated rules.
//!
//! Each rule returns all violations that it finds, and stops no other rule. The caller decides
//! which of them are enforced.
//!
//! The webhook compares `oldObject` with `object`, the reconciler the baseline with a spec that
//! bypassed admission: both apply the same rules.

use super::baseline::Baseline;
use super::spec_change::SpecChange;
use crate::api::rule::Rule;
use crate::api::stamp::{Applied, VersionRef};
use crate::api::violation::SpecViolation;

mod immutable;
mod triggered;
mod upgrade;
mod values;

#[cfg(test)]
mod tests;

pub use triggered::{Triggered, cleanup, counted, go_reference, plan, triggered};
pub use upgrade::{ChangedPackages, dropped, goes_back, path};
pub use values::{defined, valid, values};

/// The state before an edit that bypassed admission.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    /// The baseline.
    pub basis: &'a Baseline,
    /// The last-applied spec, where it is available.
    pub stamp: Option<&'a Applied<'a>>,
    /// The OperatorVersion of the baseline, where it is known without its spec.
    pub version: Option<&'a VersionRef<'a>>,
    /// Whether the edit reverts to an OperatorVersion according to [`goes_back`].
    pub goes_back: bool,
}

/// The violations that admission would find in a spec that bypassed it, compared with the baseline.
///
/// Several triggers are no violation here: the reconciler runs the plans one after another.
pub fn unseen(before: Before<'_>, spec: &Applied<'_>, packages: ChangedPackages<'_>) -> Vec<SpecViolation> {
    let Before { basis, stamp, version, goes_back } = before;
    let known = stamp.filter(|stamp| stamp.hash() == basis.hash);
    let change = match known {
        Some(before) => Some(SpecChange::between(before, spec)),
        None => SpecChange::since(basis, spec),
    };
    let Some(change) = change else { return valid(packages.new, &spec.parameters) };
    let mut violations = Vec::new();
    if change.upgrade
        && !goes_back
        && let Some(from) = known.map(|before| &before.operator_version).or(version)
    {
        violations.extend(path(from, packages));
    }
    violations.extend(values(&change, spec, packages));
    triggered(&change, packages, &mut violations);
    violations.retain(|violation| violation.rule != Rule::PLAN_MULTIPLE);
    violations
}
