//! An Instance without baseline and run: created through admission, past it, or copied.

use interlock_core::api::meta::plan::DEPLOY;

use super::facts::InstanceFacts;
use super::start::{await_version, start};
use super::step::{Next, SpecSource};

/// Starts `deploy`, or first adds the fields that admission would have added.
pub(super) fn created(facts: &InstanceFacts<'_>) -> Next {
    if (facts.package)(&facts.spec.operator_version).is_none() {
        return await_version(&facts.spec.operator_version);
    }
    let stamped = facts.stamp.map_or(!facts.stampable, |s| *s.hash == facts.spec.hash());
    if facts.plan == DEPLOY && !facts.uid.is_empty() && stamped && facts.created_whole {
        return Next::Start { source: SpecSource::Spec };
    }
    if facts.plan == DEPLOY && facts.created_whole && facts.stamp.is_some_and(|s| s.spec.is_some()) {
        if facts.uid.is_empty() {
            // Triggered past admission: the end of an execution without a uid could not be recognised.
            return Next::Schedule { plan: DEPLOY.to_owned(), source: SpecSource::Stamp };
        }
        // Accepted, then edited past admission before the run began: it runs on the accepted spec.
        return start(facts, SpecSource::Stamp);
    }
    match (facts.refusal)(SpecSource::Spec) {
        Some(refusal) => Next::Report(refusal),
        None => Next::Create,
    }
}
