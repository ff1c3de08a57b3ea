//! An Instance without basis and run: created through admission, or unseen, or copied.

use super::facts::InstanceFacts;
use super::start::{absent, start};
use super::step::{Next, SpecSource};
use crate::api::meta::plan::DEPLOY;

/// `deploy` starts, or what admission would have added is added first.
pub(super) fn created(facts: &InstanceFacts<'_>) -> Next {
    if (facts.package)(&facts.spec.operator_version).is_none() {
        return absent(&facts.spec.operator_version);
    }
    let stamped = facts.stamp.map_or(!facts.stampable, |s| *s.hash == facts.spec.hash());
    if facts.plan == DEPLOY && !facts.uid.is_empty() && stamped && facts.created_whole {
        return Next::Start { source: SpecSource::Spec };
    }
    if facts.plan == DEPLOY && facts.created_whole && facts.stamp.is_some_and(|s| s.spec.is_some()) {
        // Accepted, then edited unseen before the run began: it runs on what was accepted.
        return start(facts, SpecSource::Stamp);
    }
    match (facts.refusal)(SpecSource::Spec) {
        Some(refusal) => Next::Report(refusal),
        None => Next::Create,
    }
}
