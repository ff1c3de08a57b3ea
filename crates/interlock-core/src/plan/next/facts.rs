//! What is known of an Instance when its next step is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::step::{DriftRefusal, SpecSource};
use crate::api::kudo::{ExecutionStatus, PlanStatus};
use crate::api::stamp::{Applied, SpecHash, VersionRef};
use crate::plan::basis::Basis;
use crate::plan::lock::LockEntry;
use crate::plan::package::Package;
use crate::plan::verb::PendingRequest;

/// The stamp as it was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundStamp<'a> {
    /// Its hash.
    pub hash: &'a SpecHash,
    /// Its spec, wherever it was kept; `None` when it cannot be had.
    pub spec: Option<&'a Applied<'a>>,
}

/// A deletion that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Deletion {
    /// Whether the namespace goes as well.
    pub namespace_terminating: bool,
    /// How many cleanup runs have failed in a row, by the status.
    pub failures: usize,
    /// Whether the definition of Instances is being deleted and waits for this one longer than
    /// it should.
    pub overdue: bool,
    /// Whether it is too early to give the cleanup up for a right that is missing.
    pub patient: bool,
}

/// Whether an OperatorVersion may be used where it is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceAccess {
    /// It may.
    Allowed,
    /// It is one of another namespace, and the API server has not been asked lately.
    Unknown,
    /// It may not.
    Refused(DriftRefusal),
}

/// What is known of an Instance.
pub struct InstanceFacts<'a> {
    /// Its spec without `planExecution`.
    pub spec: &'a Applied<'a>,
    /// `spec.planExecution.planName`, empty when absent.
    pub plan: &'a str,
    /// `spec.planExecution.uid`, empty when absent.
    pub uid: &'a str,
    /// `status.planStatus`.
    pub entries: &'a BTreeMap<String, PlanStatus>,
    /// The durable basis.
    pub basis: Option<&'a Basis>,
    /// The stamp.
    pub stamp: Option<FoundStamp<'a>>,
    /// Whether the object has room for a stamp; where it has none, the spec itself is run.
    pub stampable: bool,
    /// Whether our finalizer is on.
    pub finalizer: bool,
    /// Whether all that a creation through admission adds is there: `deploy` scheduled, the
    /// finalizer where the package has `cleanup`, defaults of immutable parameters.
    pub created_whole: bool,
    /// The deletion, when there is one.
    pub deletion: Option<Deletion>,
    /// What somebody asks of a run, where that can be carried out.
    pub asked: Option<&'a PendingRequest>,
    /// Looks a package up.
    pub package: &'a dyn Fn(&VersionRef<'_>) -> Option<Arc<Package>>,
    /// Looks up the package that the basis is of.
    pub package_of_basis: &'a dyn Fn() -> Option<Arc<Package>>,
    /// What admission would say to the spec of that source, compared with the basis.
    pub refusal: &'a dyn Fn(SpecSource) -> Option<DriftRefusal>,
    /// Whether the packages of the Instance's namespace may use an OperatorVersion.
    pub reference: &'a dyn Fn(&VersionRef<'_>) -> ReferenceAccess,
}

impl<'a> InstanceFacts<'a> {
    /// The entries as the lock sees them.
    pub(super) fn lock_entries(&self) -> Vec<LockEntry<'a>> {
        self.entries.iter().map(|(plan, e)| LockEntry { plan, uid: &e.uid, status: &e.status }).collect()
    }

    /// Whether `planExecution` names the execution of an entry.
    pub(super) fn names(&self, plan: &str, entry: &PlanStatus) -> bool {
        self.plan == plan && self.uid == entry.uid && !entry.uid.is_empty()
    }

    /// Whether anything ever ran.
    pub(super) fn has_run(&self) -> bool {
        self.entries.values().any(|e| !matches!(e.status, ExecutionStatus::NeverRun))
    }

    /// Which spec a run is carried out on: that of the stamp, where it can be had.
    pub(super) fn source(&self) -> SpecSource {
        match self.stamp {
            Some(FoundStamp { spec: Some(_), .. }) => SpecSource::Stamp,
            _ => SpecSource::Spec,
        }
    }

    /// What speaks against a run on the spec of that source. A stamp is text that anybody may have
    /// written while nothing guarded it: where status does not vouch for its hash, it is judged by the
    /// rules of admission.
    pub(super) fn objection(&self, source: SpecSource) -> Option<DriftRefusal> {
        let vouched = self.basis.is_some_and(|basis| match (source, self.stamp) {
            (SpecSource::Stamp, Some(stamp)) => basis.vouches_for(stamp.hash),
            _ => basis.hash == self.spec.hash(),
        });
        if vouched { None } else { (self.refusal)(source) }
    }

    /// The spec of that source.
    pub(super) fn spec_of(&self, source: SpecSource) -> &'a Applied<'a> {
        match (source, self.stamp) {
            (SpecSource::Stamp, Some(FoundStamp { spec: Some(spec), .. })) => spec,
            _ => self.spec,
        }
    }
}
