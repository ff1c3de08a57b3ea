//! What a change of an Instance's spec comes to: the plan it triggers, and what violates a rule.
//!
//! Rules collect: each returns all violations that it finds, and none ends the work that follows.
//! The caller decides which of them are enforced.
//!
//! The webhook asks this about `oldObject` and `object`, the reconciler about the basis and a
//! spec that admission never saw: what is admitted is what is executed.

use super::basis::Basis;
use super::objection::Objection;
use crate::api::rule::Rule;
use crate::api::stamp::{Applied, VersionRef};

mod delta;
mod immutable;
mod triggered;
mod upgrade;
mod values;

#[cfg(test)]
mod tests;

pub use delta::{Delta, Was};
pub use triggered::{Triggered, cleanup, go_reference, plan, triggered};
pub use upgrade::{ChangedPackages, dropped, goes_back, path};
pub use values::{defined, valid, values};

/// What was before an edit that admission never saw.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    /// What was carried out.
    pub basis: &'a Basis,
    /// The spec of the stamp, where it is to be had.
    pub stamp: Option<&'a Applied<'a>>,
    /// The OperatorVersion of what was carried out, where it is known without its spec.
    pub version: Option<&'a VersionRef<'a>>,
    /// Whether the edit goes back to an OperatorVersion as [`goes_back`] says.
    pub goes_back: bool,
}

/// What admission would say to a spec that it never saw, compared with the basis.
///
/// Several triggers are no objection here: the reconciler runs the plans one after another.
pub fn unseen(before: Before<'_>, spec: &Applied<'_>, packages: ChangedPackages<'_>) -> Vec<Objection> {
    let Before { basis, stamp, version, goes_back } = before;
    let known = stamp.filter(|stamp| stamp.hash() == basis.hash);
    let delta = match known {
        Some(before) => Some(Delta::between(before, spec)),
        None => Delta::since(basis, spec),
    };
    let Some(delta) = delta else { return valid(packages.new, &spec.parameters) };
    let mut violations = Vec::new();
    if delta.upgrade
        && !goes_back
        && let Some(from) = known.map(|before| &before.operator_version).or(version)
    {
        violations.extend(path(from, packages));
    }
    violations.extend(values(&delta, spec, packages));
    triggered(&delta, packages, &mut violations);
    violations.retain(|violation| violation.rule != Rule::PlanMultiple);
    violations
}
