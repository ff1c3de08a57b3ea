//! A plan that `planExecution` names and that does not run: it starts, or its execution has ended.

use super::created::created;
use super::facts::{FoundStamp, InstanceFacts};
use super::start::start;
use super::step::{Next, RequestAnswer, SpecSource};
use crate::api::ExecutionStatus;
use crate::instance::change::plan_request::PlanVerb;

/// A plan is scheduled, or its execution has ended.
pub(super) fn scheduled(facts: &InstanceFacts<'_>) -> Next {
    if let Some(entry) = facts.entries.get(facts.plan)
        && facts.names(facts.plan, entry)
        && entry.status.is_terminal()
    {
        let back = facts.request.is_some_and(|pending| {
            pending.request.verb == (PlanVerb::Abort { revert: true }) && pending.request.run == entry.uid
        });
        return if back && entry.status == ExecutionStatus::FatalError {
            Next::Answer(RequestAnswer::Revert)
        } else {
            Next::Clear
        };
    }
    match facts.baseline {
        None if !facts.has_run() => created(facts),
        Some(baseline) if facts.uid.is_empty() => match facts.stamp {
            // Triggered past admission: the end of an execution without a uid could not be recognised.
            Some(FoundStamp { spec: Some(_), .. }) => {
                Next::Schedule { plan: facts.plan.to_owned(), source: SpecSource::Stamp }
            }
            _ if facts.spec.hash() == baseline.hash => {
                Next::Schedule { plan: facts.plan.to_owned(), source: SpecSource::Spec }
            }
            _ => Next::DropTrigger,
        },
        None if facts.uid.is_empty() => {
            Next::Schedule { plan: facts.plan.to_owned(), source: facts.source() }
        }
        None => match facts.stamp {
            Some(FoundStamp { spec: Some(_), .. }) => start(facts, SpecSource::Stamp),
            _ => Next::Schedule { plan: facts.plan.to_owned(), source: SpecSource::Spec },
        },
        Some(baseline) => match facts.stamp {
            Some(FoundStamp { spec: Some(_), .. }) => start(facts, SpecSource::Stamp),
            _ if facts.spec.hash() == baseline.hash || !facts.stampable => start(facts, SpecSource::Spec),
            _ => Next::DropTrigger,
        },
    }
}
