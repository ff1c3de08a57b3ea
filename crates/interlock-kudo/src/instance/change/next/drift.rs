//! Drift: the spec against the baseline, where nothing is scheduled and nothing runs.

use super::created::created;
use super::facts::{FoundStamp, InstanceFacts};
use super::start::await_version;
use super::step::{DriftRefusal, Next, SpecSource};
use crate::instance::change::baseline::Baseline;
use crate::instance::change::drift;
use crate::instance::change::validate::ChangedPackages;

/// Decides about drift where nothing is scheduled and nothing runs.
pub(super) fn decide(facts: &InstanceFacts<'_>) -> Next {
    let Some(baseline) = facts.baseline else {
        return if facts.has_run() { Next::Adopt } else { created(facts) };
    };
    let queue = drift::queue(baseline);
    if baseline.hash == facts.spec.hash() {
        return match (facts.stamp, queue.into_iter().next()) {
            (Some(stamp), None) if *stamp.hash == baseline.hash => Next::Idle,
            (None, None) if !facts.stampable => Next::Idle,
            (_, None) => Next::Restamp,
            (_, Some(plan)) => Next::Schedule { plan, source: SpecSource::Spec },
        };
    }
    // Plans accepted before still run, on the accepted spec.
    let accepted = match (queue.first(), facts.stamp) {
        (Some(plan), Some(FoundStamp { hash, spec: Some(_) })) if *hash == baseline.hash => {
            Some(Next::Schedule { plan: plan.clone(), source: SpecSource::Stamp })
        }
        _ => None,
    };
    match carried_out(facts, baseline, queue) {
        Ok(waits @ Next::AwaitVersion(_)) => accepted.unwrap_or(waits),
        Ok(next) => next,
        Err(refusal) => accepted.unwrap_or(Next::Report(refusal)),
    }
}

fn carried_out(
    facts: &InstanceFacts<'_>,
    baseline: &Baseline,
    queue: Vec<String>,
) -> Result<Next, DriftRefusal> {
    if let Some(refusal) = (facts.refusal)(SpecSource::Spec) {
        return Err(refusal);
    }
    let Some(package) = (facts.package)(&facts.spec.operator_version) else {
        return Ok(await_version(&facts.spec.operator_version));
    };
    let old = (facts.package_of_baseline)();
    let packages = ChangedPackages { new: &package, old: old.as_deref() };
    let plans = drift::triggered_by_drift(baseline, facts.spec, packages).map_err(|error| DriftRefusal {
        rule: "trigger".to_owned(),
        message: error.to_string(),
        passes: false,
    })?;
    let all = drift::in_order(plans.into_iter().chain(queue));
    Ok(match all.into_iter().next() {
        Some(plan) => Next::Schedule { plan, source: SpecSource::Spec },
        None => Next::Adopt,
    })
}
