//! The baseline: the spec last carried out, kept in `status`, where a PUT cannot drop it.
//!
//! It is `status.lastApplied`: the hash of the spec, a short hash of each parameter and of the reference, and
//! the pending plans. Where the short hashes do not fit, only the bare hash is kept.

use std::collections::BTreeMap;

pub use crate::api::{Baseline, CarriedOutRun, Detail, Earlier, PendingPlan, ShortHash};
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::{Applied, SpecHash, VersionRef};

use crate::api::Instance;

/// The size of the short hashes, as JSON. A status is part of the object, which etcd limits to 1.5 MiB.
const SIZE_LIMIT: usize = 30 * 1024;

/// The part of an Instance's spec that is carried out.
pub fn carried_out(instance: &Instance, namespace: &str) -> Applied<'static> {
    let reference = instance.spec.operator_version.clone().unwrap_or_default();
    let parameters = instance.spec.parameters.iter().flatten();
    Applied {
        operator_version: VersionRef {
            name: reference.name().to_owned().into(),
            namespace: reference.namespace_or(namespace).to_owned().into(),
        },
        parameters: parameters.map(|(k, v)| (k.clone().into(), v.clone().into())).collect(),
    }
}

/// Short hash of namespace and name of an OperatorVersion.
fn short(namespace: &str, name: &str) -> ShortHash {
    ShortHash::of(&format!("{namespace}/{name}"))
}

impl Baseline {
    /// The baseline of a spec, with its pending plans.
    pub fn new(spec: &Applied<'_>, pending: BTreeMap<String, PendingPlan>) -> Self {
        let parameters = spec.parameters.iter().map(|(k, v)| (k.to_string(), ShortHash::of(v))).collect();
        let detail = Detail { operator_version: Self::short(&spec.operator_version), parameters };
        Self { hash: spec.hash(), detail: Some(detail), run: None, previous: None, pending }
    }

    /// The same as successor of `before`: it keeps the spec that was carried out in full before,
    /// while that differs.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let previous =
            before.and_then(|before| match before.pending.is_empty() && before.hash != self.hash {
                true => Some(Earlier {
                    hash: before.hash.clone(),
                    operator_version: before.detail.as_ref().map(|detail| detail.operator_version.clone()),
                }),
                false => before.previous.clone(),
            });
        Self { previous: previous.filter(|previous| previous.hash != self.hash), ..self }
    }

    /// The same with these pending plans; without any, it has no spec to revert to.
    #[must_use]
    pub fn with_pending(&self, pending: BTreeMap<String, PendingPlan>) -> Self {
        let previous = self.previous.clone().filter(|_| !pending.is_empty());
        Self { pending, previous, ..self.clone() }
    }

    /// Whether a spec of this hash was validated before it was carried out: it is the one started
    /// last, or the one carried out in full before that.
    pub fn has_validated(&self, hash: &SpecHash) -> bool {
        self.hash == *hash || self.previous.as_ref().is_some_and(|previous| previous.hash == *hash)
    }

    /// Whether a spec reverts to the one carried out in full before, or to its OperatorVersion.
    pub fn reverts_to(&self, spec: &Applied<'_>) -> bool {
        let Some(previous) = &self.previous else { return false };
        previous.hash == spec.hash()
            || previous.operator_version.as_ref() == Some(&Self::short(&spec.operator_version))
    }

    /// The same, after the start of a run.
    #[must_use]
    pub fn ran(self, run: Option<CarriedOutRun>) -> Self {
        Self { run, ..self }
    }

    /// Whether it is known to be of this OperatorVersion.
    pub fn is_of_version(&self, version: &VersionRef<'_>) -> bool {
        self.detail.as_ref().is_some_and(|detail| detail.operator_version == Self::short(version))
    }

    fn short(version: &VersionRef<'_>) -> ShortHash {
        short(&version.namespace, &version.name)
    }

    /// The one among OperatorVersions that it is known to be of.
    pub fn version_among<'k>(
        &self,
        mut versions: impl Iterator<Item = &'k NamespacedName>,
    ) -> Option<&'k NamespacedName> {
        let known = &self.detail.as_ref()?.operator_version;
        versions.find(|key| short(&key.namespace, &key.name) == *known)
    }

    /// The same where there is next to no room: without the short hashes, unless they are few.
    #[must_use]
    pub fn shortened(self) -> Self {
        Self { detail: self.detail.filter(|detail| detail.parameters.len() <= 32), ..self }
    }

    /// The same as it is recorded: the short hashes are left out where they do not fit.
    #[must_use]
    pub fn within_limit(self) -> Self {
        let size = |detail: &Detail| serde_json::to_string(detail).map_or(usize::MAX, |json| json.len());
        let detail = self.detail.filter(|detail| size(detail) <= SIZE_LIMIT);
        Self { detail, ..self }
    }
}
