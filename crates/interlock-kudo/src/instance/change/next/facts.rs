//! The facts about an Instance that decide its next step.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::stamp::{Applied, SpecHash, VersionRef};

use super::step::{DriftRefusal, SpecSource};
use crate::api::{ExecutionStatus, PlanStatus, RunRequests};
use crate::instance::change::baseline::Baseline;
use crate::instance::change::lock::{self, LockEntry};
use crate::instance::change::plan_request::{PendingRequest, Runs};
use crate::package::Package;

/// The last-applied spec as found in the annotation.
#[derive(Clone, Copy, Debug)]
pub struct FoundStamp<'a> {
    pub hash: &'a SpecHash,
    /// Its spec, wherever it is kept; `None` when it is not available.
    pub spec: Option<&'a Applied<'a>>,
}

/// A deletion that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Deletion {
    /// Whether the namespace is being deleted, too.
    pub namespace_terminating: bool,
    /// Number of cleanup runs that failed in a row, according to the status.
    pub failures: usize,
    /// Whether the CustomResourceDefinition of Instances is being deleted and has waited for this
    /// one too long.
    pub overdue: bool,
    /// Whether it is too early to give the cleanup up for a missing permission.
    pub patient: bool,
}

/// Whether an Instance may use the OperatorVersion that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceAccess {
    /// It may.
    Allowed,
    /// It is one of another namespace, and the access check is not recent.
    Unknown,
    /// It may not.
    Refused(DriftRefusal),
}

/// The facts about an Instance.
pub struct InstanceFacts<'a> {
    /// Its spec without `planExecution`.
    pub spec: &'a Applied<'a>,
    /// `spec.planExecution.planName`, empty when absent.
    pub plan: &'a str,
    /// `spec.planExecution.uid`, empty when absent.
    pub uid: &'a str,
    /// `status.planStatus`.
    pub entries: &'a BTreeMap<String, PlanStatus>,
    /// `status.requests`.
    pub requests: Option<&'a RunRequests>,
    pub baseline: Option<&'a Baseline>,
    /// The last-applied spec.
    pub stamp: Option<FoundStamp<'a>>,
    /// Whether the last-applied spec fits on the object; where it does not, the spec itself is run.
    pub stampable: bool,
    /// Whether our finalizer is set.
    pub finalizer: bool,
    /// Whether the object has all that admission adds at creation: `deploy` scheduled, the
    /// finalizer where the package has `cleanup`, defaults of immutable parameters.
    pub created_whole: bool,
    /// The deletion, when there is one.
    pub deletion: Option<Deletion>,
    /// The pending request, where it can be executed.
    pub request: Option<&'a PendingRequest>,
    /// Looks up a package.
    pub package: &'a dyn Fn(&VersionRef<'_>) -> Option<Arc<Package>>,
    /// Looks up the package of the baseline.
    pub package_of_baseline: &'a dyn Fn() -> Option<Arc<Package>>,
    /// The denial by admission of the spec of that source, compared with the baseline.
    pub refusal: &'a dyn Fn(SpecSource) -> Option<DriftRefusal>,
    /// Whether the packages of the Instance's namespace may use an OperatorVersion.
    pub reference: &'a dyn Fn(&VersionRef<'_>) -> ReferenceAccess,
}

impl<'a> InstanceFacts<'a> {
    /// The entries as the lock sees them.
    pub(super) fn lock_entries(&self) -> Vec<LockEntry<'a>> {
        self.entries.iter().map(|(plan, e)| LockEntry { plan, uid: &e.uid, status: &e.status }).collect()
    }

    /// The runs as a request sees them, of these entries.
    pub(super) fn runs<'e>(&'e self, entries: &'e [LockEntry<'e>]) -> Runs<'e> {
        Runs { plan: self.plan, uid: self.uid, entries, requests: self.requests }
    }

    /// Whether `planExecution` names the execution of an entry.
    pub(super) fn names(&self, plan: &str, entry: &PlanStatus) -> bool {
        self.plan == plan && lock::records(&entry.uid, self.uid)
    }

    /// Whether anything ever ran.
    pub(super) fn has_run(&self) -> bool {
        self.entries.values().any(|e| !matches!(e.status, ExecutionStatus::NeverRun))
    }

    /// The spec that a run uses: the last-applied one, where it is available.
    pub(super) fn source(&self) -> SpecSource {
        match self.stamp {
            Some(FoundStamp { spec: Some(_), .. }) => SpecSource::Stamp,
            _ => SpecSource::Spec,
        }
    }

    /// Why no run may use the spec of that source. Any user may have written the last-applied spec
    /// while no admission ran: where the status does not vouch for its hash, the rules of admission
    /// validate it.
    pub(super) fn refusal_of(&self, source: SpecSource) -> Option<DriftRefusal> {
        let vouched = self.baseline.is_some_and(|baseline| match (source, self.stamp) {
            (SpecSource::Stamp, Some(stamp)) => baseline.has_validated(stamp.hash),
            _ => baseline.hash == self.spec.hash(),
        });
        if vouched { None } else { (self.refusal)(source) }
    }

    pub(super) fn spec_of(&self, source: SpecSource) -> &'a Applied<'a> {
        match (source, self.stamp) {
            (SpecSource::Stamp, Some(FoundStamp { spec: Some(spec), .. })) => spec,
            _ => self.spec,
        }
    }
}
