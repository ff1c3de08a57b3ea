//! What Interlock records of its own in the status of an Instance: the spec last carried out, the progress
//! of the run, and what requests have changed about it. It is in the status, where a PUT of the object cannot drop it.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::stamp::{SpecHash, hex};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 of an OperatorVersion's spec; a run records the one it started with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PackageHash(String);

impl PackageHash {
    /// Of the canonical JSON of a spec.
    pub fn of(json: &[u8]) -> Self {
        Self(format!("sha256:{}", hex(&Sha256::digest(json))))
    }

    /// `sha256:` and 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// State of a pending plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ShortHash(String);

impl ShortHash {
    /// Of one value.
    pub fn of(text: &str) -> Self {
        Self(hex(&Sha256::digest(text.as_bytes())[..4]))
    }
}

/// The spec that was carried out, as far as it fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// Hash of the spec.
    #[schemars(with = "String")]
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
    #[schemars(with = "BTreeMap<String, String>")]
    pub pending: BTreeMap<String, PendingPlan>,
}

/// Data of a run that its history and a retry need after its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedOutRun {
    /// Id of the execution.
    pub uid: String,
    /// Hash of its package; a retry resumes only where that is the same.
    pub package: PackageHash,
    /// When it started.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Number of the attempt, from 1; higher for a cleanup that follows a failed one. It bounds the
    /// attempts of cleanup, so only Interlock may write it.
    #[serde(default = "first_attempt", skip_serializing_if = "is_first_attempt")]
    #[schemars(with = "i64")]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Earlier {
    /// Hash of the spec.
    #[schemars(with = "String")]
    pub hash: SpecHash,
    /// Short hash of namespace and name of its OperatorVersion; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<ShortHash>,
}

/// Short hashes of the parts of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// Of namespace and name of the OperatorVersion.
    pub operator_version: ShortHash,
    /// Of each parameter.
    #[serde(default)]
    pub parameters: BTreeMap<String, ShortHash>,
}

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Plan.
    pub plan: String,
    /// Id of the execution.
    pub uid: String,
    /// Hash of the package that the run started with; a run never mixes two.
    pub package: PackageHash,
    /// When it started.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Since when every attempt has failed with an error that may pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub retrying_since: Option<Timestamp>,
    /// Finished tasks of unfinished steps, by `phase/step`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub done: BTreeMap<String, BTreeSet<String>>,
    /// When unfinished steps began, by `phase/step`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub begun: BTreeMap<String, Timestamp>,
}

/// What plan requests have changed about a run, and what they may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRequests {
    /// Id of the execution.
    pub run: String,
    /// Nonce of the last request that was executed while the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
    /// The pause; absent while the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// Objects that ended the run, as no Instance made them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub held_by: BTreeSet<HeldObject>,
    /// Objects that no Instance made and that the run takes over, as one before was held by them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub adopts: BTreeSet<HeldObject>,
}

/// An object in the namespace of the Instance that no Instance made.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct HeldObject {
    /// API group, absent for core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`: another object of that name is not meant.
    pub uid: String,
}

impl HeldObject {
    /// `KIND NAME, KIND NAME`, of the first few.
    pub fn list<'a>(objects: impl IntoIterator<Item = &'a Self>) -> String {
        let all: Vec<&Self> = objects.into_iter().collect();
        let named = all.iter().take(SHOWN).map(|object| format!("{} {}", object.kind, object.name));
        let more = all.len().saturating_sub(SHOWN);
        let rest = (more > 0).then(|| format!("{more} more"));
        named.chain(rest).collect::<Vec<_>>().join(", ")
    }
}

/// Objects that a message names.
const SHOWN: usize = 8;

/// A pause of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// When it began.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// The user who asked for it, as the webhook recorded; empty where it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The reason.
    pub reason: String,
}

/// Reads a record of ours; one that cannot be read counts as absent, as anybody may have written it while the
/// guards were away, and an Instance stays readable.
pub(super) fn record<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}
