//! Drift: the difference between the spec and the baseline, and the plans that it makes pending.
//!
//! The baseline is [`Baseline`]; the annotation only holds the text of the spec.

use std::collections::{BTreeMap, BTreeSet};

use super::baseline::{Baseline, PendingPlan};
use super::spec_change::SpecChange;
use super::validate;
use super::validate::ChangedPackages;
use crate::api::meta::plan::{CLEANUP, DEPLOY, UPDATE, UPGRADE};
use crate::api::stamp::Applied;
use crate::package::trigger;
use crate::package::trigger::TriggerError;

/// Plans in the order in which they are run one after another: upgrade, deploy, update, then by
/// name.
pub fn in_order(plans: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut sorted: Vec<String> = plans.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    sorted.sort_by_key(|plan| [UPGRADE, DEPLOY, UPDATE].iter().position(|p| p == plan).unwrap_or(usize::MAX));
    sorted
}

/// Plans that the difference between a baseline and a spec triggers, in no particular order.
///
/// A different OperatorVersion triggers `upgrade` or its fallbacks; as in admission, parameters
/// that are new with it do not count, and `deploy` for the others is discarded. Where only a bare
/// hash is known, the plan is `deploy`. Never `cleanup`: only a deletion runs that.
pub fn triggered(
    basis: &Baseline,
    spec: &Applied<'_>,
    packages: ChangedPackages<'_>,
) -> Result<BTreeSet<String>, TriggerError> {
    let Some(change) = SpecChange::since(basis, spec) else {
        let deploy = packages.new.plan(DEPLOY).map(|_| DEPLOY.to_owned());
        return Ok(BTreeSet::from([deploy.ok_or(TriggerError::NoPlan)?]));
    };
    let mut plans = trigger::plans(packages.new, validate::counted(&change, packages))?;
    plans.remove(CLEANUP);
    if change.upgrade {
        plans.remove(DEPLOY);
        plans.insert(trigger::upgrade_plan(packages.new).ok_or(TriggerError::NoPlan)?.to_owned());
    }
    Ok(plans)
}

/// The pending plans once a run of `plan` on `spec` has started.
///
/// Adds the plans that the difference triggers, or the plan itself where there is no baseline yet;
/// an accepted change requeues failed plans. A plan triggered directly changes nothing, as the spec
/// is that of the baseline.
pub fn owed_at_start(
    basis: Option<&Baseline>,
    spec: &Applied<'_>,
    packages: ChangedPackages<'_>,
    plan: &str,
) -> BTreeMap<String, PendingPlan> {
    let Some(basis) = basis else {
        return BTreeMap::from([(plan.to_owned(), PendingPlan::Queued)]);
    };
    let mut owed = basis.owed.clone();
    if basis.hash == spec.hash() {
        return owed;
    }
    let failed = owed.values_mut().filter(|state| **state == PendingPlan::Failed);
    failed.for_each(|state| *state = PendingPlan::Queued);
    // Where no plan can be named, the plan that runs is pending at least.
    let plans = triggered(basis, spec, packages).unwrap_or_else(|_| BTreeSet::from([plan.to_owned()]));
    owed.extend(plans.into_iter().map(|plan| (plan, PendingPlan::Queued)));
    owed
}

/// How a run ended, for the pending plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// COMPLETE.
    Complete,
    /// FATAL_ERROR, not on request.
    Failed,
    /// Aborted on request.
    Aborted,
}

/// The pending plans once a run of `plan` has ended: removes it when complete, else marks it.
pub fn owed_at_end(
    owed: &BTreeMap<String, PendingPlan>,
    plan: &str,
    end: RunEnd,
) -> BTreeMap<String, PendingPlan> {
    let mut owed = owed.clone();
    let mark = match end {
        RunEnd::Complete => {
            owed.remove(plan);
            return owed;
        }
        RunEnd::Failed => PendingPlan::Failed,
        RunEnd::Aborted => PendingPlan::Aborted,
    };
    if let Some(state) = owed.get_mut(plan) {
        *state = mark;
    }
    owed
}

/// The queue: pending plans that wait for their run.
pub fn queue(basis: &Baseline) -> Vec<String> {
    in_order(
        basis.owed.iter().filter(|(_, state)| **state == PendingPlan::Queued).map(|(plan, _)| plan.clone()),
    )
}

/// Pending plans that failed or were aborted.
pub fn failed(basis: &Baseline) -> Vec<String> {
    in_order(
        basis.owed.iter().filter(|(_, state)| **state != PendingPlan::Queued).map(|(plan, _)| plan.clone()),
    )
}

#[cfg(test)]
mod tests;
