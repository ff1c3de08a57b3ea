//! The next step for an Instance: a protocol between spec, last-applied spec, baseline and runs.
//!
//! Pure, and called again after every write. It first repairs running entries that `planExecution`
//! does not name, regardless of the lock; then it handles a deletion, scheduled plans, and drift.
//! Every case ends in a variant of [`Next`]. No run uses a spec that neither the status vouches for
//! nor the rules of admission accept, nor a reference into another namespace that its packages may
//! not follow.

use interlock_core::api::object::NamespacedName;

use crate::api::PlanStatus;

mod created;
mod deleting;
mod drift;
mod facts;
mod request;
mod running;
mod scheduled;
mod start;
mod step;

pub use facts::{Deletion, FoundStamp, InstanceFacts, ReferenceAccess};
pub use step::{DriftRefusal, Next, RequestAnswer, SpecSource};

/// The next step for an Instance.
pub fn next(facts: &InstanceFacts<'_>) -> Next {
    let next = wanted(facts);
    let Some(source) = next.source() else { return next };
    if let Some(refusal) = facts.refusal_of(source) {
        return Next::Report(refusal);
    }
    let version = &facts.spec_of(source).operator_version;
    match (facts.reference)(version) {
        ReferenceAccess::Allowed => next,
        ReferenceAccess::Unknown => {
            Next::CheckAccess(NamespacedName::new(version.namespace.as_ref(), version.name.as_ref()))
        }
        ReferenceAccess::Refused(refusal) => Next::Report(refusal),
    }
}

/// The next step, before the check that its spec may run.
fn wanted(facts: &InstanceFacts<'_>) -> Next {
    if let Some(deletion) = &facts.deletion {
        return deleting::deleting(facts, deletion);
    }
    if let Some(answer) = request::answer(facts) {
        return Next::Answer(answer);
    }
    let running: Vec<(&String, &PlanStatus)> =
        facts.entries.iter().filter(|(_, e)| e.status.is_running()).collect();
    match running.as_slice() {
        [] if !facts.plan.is_empty() => scheduled::scheduled(facts),
        [] => drift::decide(facts),
        [(plan, entry)] => running::one(facts, plan, entry),
        several => running::several(facts, several),
    }
}

#[cfg(test)]
mod tests;
