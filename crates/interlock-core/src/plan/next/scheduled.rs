//! A plan that `planExecution` names and that does not run: it starts, or its execution has ended.

use super::created::created;
use super::facts::{Facts, Stamp};
use super::start::start;
use super::step::{Answer, Next, Source};
use crate::api::kudo::ExecutionStatus;
use crate::plan::verb::Verb;

/// A plan is scheduled, or its execution has ended.
pub(super) fn scheduled(facts: &Facts<'_>) -> Next {
    if let Some(entry) = facts.entries.get(facts.plan)
        && facts.names(facts.plan, entry)
        && entry.status.is_terminal()
    {
        let back = facts.asked.is_some_and(|asked| {
            asked.request.verb == (Verb::Abort { revert: true }) && asked.request.run == entry.uid
        });
        return if back && entry.status == ExecutionStatus::FatalError {
            Next::Answer(Answer::Revert)
        } else {
            Next::Clear
        };
    }
    match facts.basis {
        None if !facts.has_run() => created(facts),
        Some(basis) if facts.uid.is_empty() => match facts.stamp {
            // Triggered past admission: an execution without a uid could never be told to end.
            Some(Stamp { spec: Some(_), .. }) => {
                Next::Schedule { plan: facts.plan.to_owned(), source: Source::Stamp }
            }
            _ if facts.spec.hash() == basis.hash => {
                Next::Schedule { plan: facts.plan.to_owned(), source: Source::Spec }
            }
            _ => Next::Drop,
        },
        None if facts.uid.is_empty() => {
            Next::Schedule { plan: facts.plan.to_owned(), source: facts.source() }
        }
        None => match facts.stamp {
            Some(Stamp { spec: Some(_), .. }) => start(facts, Source::Stamp),
            _ => Next::Schedule { plan: facts.plan.to_owned(), source: Source::Spec },
        },
        Some(basis) => match facts.stamp {
            Some(Stamp { spec: Some(_), .. }) => start(facts, Source::Stamp),
            _ if facts.spec.hash() == basis.hash || !facts.stampable => start(facts, Source::Spec),
            _ => Next::Drop,
        },
    }
}
