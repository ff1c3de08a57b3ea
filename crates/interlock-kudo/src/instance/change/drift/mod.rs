//! Drift: the difference between the spec and the baseline, and the plans that it makes pending.
//!
//! The baseline is [`Baseline`]; the annotation only holds the text of the spec.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::meta::plan::{CLEANUP, DEPLOY, UPDATE, UPGRADE};
use interlock_core::api::stamp::Applied;

use super::baseline::{Baseline, PendingPlan};
use super::spec_change::SpecChange;
use super::validate;
use super::validate::ChangedPackages;
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
/// Parameters without a trigger are carried out by a plan of their own beside those with one. A different OperatorVersion triggers `upgrade` or its fallbacks; as in admission, parameters
/// that are new with it do not count, and `deploy` for the others is discarded. Where only a bare
/// hash is known, the plan is `deploy`. Never `cleanup`: only a deletion runs that.
pub fn triggered_by_drift(
    baseline: &Baseline,
    spec: &Applied<'_>,
    packages: ChangedPackages<'_>,
) -> Result<BTreeSet<String>, TriggerError> {
    let Some(change) = SpecChange::since(baseline, spec) else {
        let deploy = packages.new.plan(DEPLOY).map(|_| DEPLOY.to_owned());
        return Ok(BTreeSet::from([deploy.ok_or(TriggerError::NoPlan)?]));
    };
    let counted = validate::counted(&change, packages);
    let mut plans = trigger::plans(packages.new, counted.iter().copied())?;
    plans.extend(trigger::without_trigger(packages.new, counted).map(|(plan, _)| plan.to_owned()));
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
pub fn pending_at_start(
    baseline: Option<&Baseline>,
    spec: &Applied<'_>,
    packages: ChangedPackages<'_>,
    plan: &str,
) -> BTreeMap<String, PendingPlan> {
    let Some(baseline) = baseline else {
        return BTreeMap::from([(plan.to_owned(), PendingPlan::Queued)]);
    };
    let mut pending = baseline.pending.clone();
    if baseline.hash == spec.hash() {
        return pending;
    }
    let failed = pending.values_mut().filter(|state| **state == PendingPlan::Failed);
    failed.for_each(|state| *state = PendingPlan::Queued);
    // Where no plan can be named, the plan that runs is pending at least.
    let plans =
        triggered_by_drift(baseline, spec, packages).unwrap_or_else(|_| BTreeSet::from([plan.to_owned()]));
    pending.extend(plans.into_iter().map(|plan| (plan, PendingPlan::Queued)));
    pending
}

/// How a run ended, for the pending plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    Complete,
    /// FATAL_ERROR, not on request.
    Failed,
    /// Aborted on request.
    Aborted,
}

/// The pending plans once a run of `plan` has ended: removes it when complete, else marks it.
pub fn pending_at_end(
    pending: &BTreeMap<String, PendingPlan>,
    plan: &str,
    end: RunEnd,
) -> BTreeMap<String, PendingPlan> {
    let mut pending = pending.clone();
    let mark = match end {
        RunEnd::Complete => {
            pending.remove(plan);
            return pending;
        }
        RunEnd::Failed => PendingPlan::Failed,
        RunEnd::Aborted => PendingPlan::Aborted,
    };
    if let Some(state) = pending.get_mut(plan) {
        *state = mark;
    }
    pending
}

/// The queue: pending plans that wait for their run.
pub fn queue(baseline: &Baseline) -> Vec<String> {
    in_order(
        baseline
            .pending
            .iter()
            .filter(|(_, state)| **state == PendingPlan::Queued)
            .map(|(plan, _)| plan.clone()),
    )
}

/// Pending plans that failed or were aborted.
pub fn failed(baseline: &Baseline) -> Vec<String> {
    in_order(
        baseline
            .pending
            .iter()
            .filter(|(_, state)| **state != PendingPlan::Queued)
            .map(|(plan, _)| plan.clone()),
    )
}

#[cfg(test)]
mod tests;
