//! What an Instance needs next: one step of the protocol between spec, stamp, basis and runs.
//!
//! Pure, and asked again after every write. First, whatever the lock says, running entries that
//! `planExecution` does not name are put right; then a deletion; then what is scheduled; then
//! drift. No case is silent: each ends in a variant of [`Next`]. Whatever it is, nothing runs on a
//! spec that neither status vouches for nor the rules of admission let pass, nor on a reference
//! into another namespace that its packages may not follow.

use crate::api::kudo::PlanStatus;
use crate::api::object::NamespacedName;

mod asked;
mod created;
mod deleting;
mod facts;
mod running;
mod scheduled;
mod settled;
mod start;
mod step;

pub use facts::{Deletion, FoundStamp, InstanceFacts, ReferenceAccess};
pub use step::{DriftRefusal, Next, RequestAnswer, SpecSource};

/// The next step for an Instance.
pub fn next(facts: &InstanceFacts<'_>) -> Next {
    let next = wanted(facts);
    let Some(source) = next.source() else { return next };
    if let Some(refusal) = facts.objection(source) {
        return Next::Report(refusal);
    }
    let version = &facts.spec_of(source).operator_version;
    match (facts.reference)(version) {
        ReferenceAccess::Allowed => next,
        ReferenceAccess::Unknown => {
            Next::Ask(NamespacedName::new(version.namespace.as_ref(), version.name.as_ref()))
        }
        ReferenceAccess::Refused(refusal) => Next::Report(refusal),
    }
}

/// The next step, if the spec that it runs on may be run.
fn wanted(facts: &InstanceFacts<'_>) -> Next {
    if let Some(deletion) = &facts.deletion {
        return deleting::deleting(facts, deletion);
    }
    if let Some(answer) = asked::answer(facts) {
        return Next::Answer(answer);
    }
    let running: Vec<(&String, &PlanStatus)> =
        facts.entries.iter().filter(|(_, e)| e.status.is_running()).collect();
    match running.as_slice() {
        [] if !facts.plan.is_empty() => scheduled::scheduled(facts),
        [] => settled::settled(facts),
        [(plan, entry)] => running::one(facts, plan, entry),
        several => running::several(facts, several),
    }
}

#[cfg(test)]
mod tests;
