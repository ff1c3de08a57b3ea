//! The baseline: the spec last carried out, kept in `status`, where a PUT cannot drop it.
//!
//! It is the JSON in the message of the condition `SpecStamped`: the hash of the spec, a short hash
//! of each parameter and of the reference, and the pending plans. Where the short hashes do not
//! fit, only the bare hash is kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::api::condition::{self, Condition};
use crate::api::kudo::Instance;
use crate::api::meta;
use crate::api::object::NamespacedName;
use crate::api::stamp::{Applied, SpecHash, VersionRef, hex};
use crate::package::PackageHash;

/// The message of a condition is limited to 32,768 bytes; the rest is for `pending`.
const MESSAGE_LIMIT: usize = 30 * 1024;

/// State of a pending plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PendingPlan {
    /// Waits for its run.
    Queued,
    /// Ran and failed; reported until it completes.
    Failed,
    /// Ran and was aborted; reported as failed, and run again only on request.
    Aborted,
}

/// First eight hexadecimal digits of the SHA-256 of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShortHash(String);

impl ShortHash {
    /// Of one value.
    pub fn of(text: &str) -> Self {
        Self(hex(&Sha256::digest(text.as_bytes())[..4]))
    }

    fn of_version(namespace: &str, name: &str) -> Self {
        Self::of(&format!("{namespace}/{name}"))
    }
}

/// The spec that was carried out, as far as it fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// Hash of the spec.
    pub hash: SpecHash,
    /// The run that was started last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<CarriedOutRun>,
    /// The spec carried out in full before, while it differs; users can edit the annotation's copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Earlier>,
    /// Short hashes; absent where they did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Detail>,
    /// Plans triggered since the last run's start that have not reached COMPLETE.
    #[serde(default, rename = "owed", skip_serializing_if = "BTreeMap::is_empty")]
    pub pending: BTreeMap<String, PendingPlan>,
}

/// Data of a run that its history and a retry need after its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedOutRun {
    /// Id of the execution.
    pub uid: String,
    /// Hash of its package; a retry resumes only where that is the same.
    pub package: PackageHash,
    /// When it started.
    pub started: Timestamp,
    /// Number of the attempt, from 1; higher for a cleanup that follows a failed one. It bounds the
    /// attempts of cleanup, so only Interlock may write it.
    #[serde(default = "first_attempt", skip_serializing_if = "is_first_attempt")]
    pub attempt: usize,
}

fn first_attempt() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_first_attempt(attempt: &usize) -> bool {
    *attempt == first_attempt()
}

/// A spec that was carried out in full before another one was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Earlier {
    /// Hash of the spec.
    pub hash: SpecHash,
    /// Short hash of namespace and name of its OperatorVersion; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<ShortHash>,
}

/// Short hashes of the parts of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// Of namespace and name of the OperatorVersion.
    pub operator_version: ShortHash,
    /// Of each parameter.
    #[serde(default)]
    pub parameters: BTreeMap<String, ShortHash>,
}

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
        ShortHash::of_version(&version.namespace, &version.name)
    }

    /// The one among OperatorVersions that it is known to be of.
    pub fn version_among<'k>(
        &self,
        mut versions: impl Iterator<Item = &'k NamespacedName>,
    ) -> Option<&'k NamespacedName> {
        let known = &self.detail.as_ref()?.operator_version;
        versions.find(|key| ShortHash::of_version(&key.namespace, &key.name) == *known)
    }

    /// Reads it from the conditions of an Instance; `None` also where the message is not ours.
    pub fn read(conditions: &[Condition]) -> Option<Self> {
        Self::parse(&condition::find(conditions, meta::condition::SPEC_STAMPED)?.message)
    }

    /// Reads the message of the condition.
    pub fn parse(message: &str) -> Option<Self> {
        serde_json::from_str(message).ok()
    }

    /// The message of the condition; the short hashes are left out where they do not fit.
    pub fn message(&self) -> String {
        // Maps with string keys always serialise.
        let full = serde_json::to_string(self).unwrap_or_default();
        if full.len() <= MESSAGE_LIMIT {
            return full;
        }
        let bare = Self { detail: None, ..self.clone() };
        serde_json::to_string(&bare).unwrap_or_default()
    }
}
