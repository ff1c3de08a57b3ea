//! What an Instance needs next: one step of the protocol between spec, stamp, basis and runs.
//!
//! Pure, and asked again after every write. First, whatever the lock says, running entries that
//! `planExecution` does not name are put right; then a deletion; then what is scheduled; then
//! drift. No case is silent: each ends in a variant of [`Next`].

use crate::api::kudo::PlanStatus;

mod asked;
mod created;
mod deleting;
mod facts;
mod running;
mod scheduled;
mod settled;
mod start;
mod step;

pub use facts::{Deletion, Facts, Stamp};
pub use step::{Answer, Next, Refusal, Source};

/// The next step for an Instance.
pub fn next(facts: &Facts<'_>) -> Next {
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
