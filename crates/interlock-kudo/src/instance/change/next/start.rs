//! Whether a scheduled plan can start, and at which step.

use interlock_core::api::stamp::{Applied, VersionRef};

use super::facts::InstanceFacts;
use super::step::{Next, SpecSource};
use crate::package::Package;

/// Starts the plan on that spec, where its package exists.
pub(super) fn start(facts: &InstanceFacts<'_>, source: SpecSource) -> Next {
    let spec = facts.spec_of(source);
    match (facts.package)(&spec.operator_version) {
        Some(package) if resumes(facts, spec, &package) => Next::Retry { source },
        Some(_) => Next::Start { source },
        None => await_version(&spec.operator_version),
    }
}

/// A retry resumes at the failed step only if the failed run is the newest, and was on the same
/// spec and package; otherwise, and without a retry, a run starts at its first step.
fn resumes(facts: &InstanceFacts<'_>, spec: &Applied<'_>, package: &Package) -> bool {
    let Some(pending) =
        facts.request.filter(|pending| pending.request.verb.retries() && pending.new_run == facts.uid)
    else {
        return false;
    };
    let failed = pending.request.run.as_str();
    let baseline = facts.baseline.filter(|baseline| baseline.hash == spec.hash());
    let newest = baseline.and_then(|baseline| baseline.run.as_ref());
    newest.is_some_and(|run| run.uid == failed && run.package == package.hash)
        && facts.entries.get(facts.plan).is_some_and(|entry| entry.uid == failed)
}

/// Waits for the OperatorVersion.
pub(super) fn await_version(version: &VersionRef<'_>) -> Next {
    Next::AwaitVersion(format!("{}/{}", version.namespace, version.name))
}
