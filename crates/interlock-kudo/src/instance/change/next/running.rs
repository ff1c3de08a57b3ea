//! Running entries: one continues or is put back, the others end.

use std::collections::BTreeMap;

use super::facts::InstanceFacts;
use super::step::{Next, SpecSource};
use crate::api::PlanStatus;
use crate::instance::change::uid;

/// Two plans cannot run at once: keeps the one that `planExecution` names, else the newest.
pub(super) fn several(facts: &InstanceFacts<'_>, running: &[(&String, &PlanStatus)]) -> Next {
    let named = running.iter().find(|(plan, e)| facts.names(plan, e));
    let kept =
        named.or_else(|| running.iter().max_by_key(|(_, e)| e.last_updated_timestamp.as_ref().map(|t| t.0)));
    let message = |kept: &str| format!("ended: plan {kept} is the one that runs; two cannot run at once");
    Next::End(
        running
            .iter()
            .filter(|(plan, _)| kept.is_some_and(|(k, _)| k != plan))
            .map(|(plan, _)| ((*plan).clone(), message(kept.map_or("", |(k, _)| k.as_str()))))
            .collect(),
    )
}

/// A plan runs.
pub(super) fn one(facts: &InstanceFacts<'_>, plan: &str, entry: &PlanStatus) -> Next {
    let anew_on = facts.source();
    let scheduled_anew = facts.plan == plan && facts.uid != entry.uid && uid::is_version_5(facts.uid);
    if scheduled_anew && facts.refusal_of(anew_on).is_none() {
        // The same plan was scheduled anew, by us below or by admission with `--freeze=same-plan`.
        return Next::Start { source: anew_on };
    }
    let entries = facts.lock_entries();
    if facts.runs(&entries).is_paused(&entry.uid) {
        return match facts.names(plan, entry) {
            true => Next::AwaitResume,
            false => Next::Restore { plan: plan.to_owned(), uid: entry.uid.clone() },
        };
    }
    let anew = || Next::Schedule { plan: plan.to_owned(), source: SpecSource::Spec };
    let Some(baseline) = facts.baseline else {
        // KUDO left a run in progress: Interlock stamps it and starts it at its first step.
        return anew();
    };
    let stamp_holds = facts.stamp.is_some_and(|s| s.hash == &baseline.hash && s.spec.is_some());
    if facts.names(plan, entry) {
        if stamp_holds {
            return Next::Continue { source: SpecSource::Stamp };
        }
        if facts.spec.hash() == baseline.hash {
            return Next::Continue { source: SpecSource::Spec };
        }
    } else if stamp_holds {
        return Next::Restore { plan: plan.to_owned(), uid: entry.uid.clone() };
    }
    // The spec that the run started with is lost.
    match facts.refusal_of(SpecSource::Spec) {
        None => anew(),
        Some(refusal) => Next::End(BTreeMap::from([(
            plan.to_owned(),
            format!(
                "ended: the spec it started with is lost, and the spec that is there is refused: {}",
                refusal.message
            ),
        )])),
    }
}
