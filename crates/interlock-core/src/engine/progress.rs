//! Progress of a run that must survive a restart and has no field in KUDO's status: JSON in the
//! message of the condition `PlanRunning`, as stock CRDs prune unknown fields.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::condition::{self, Condition};
use crate::api::meta;
use crate::package::PackageHash;

/// A run in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Plan.
    pub plan: String,
    /// Id of the execution.
    pub uid: String,
    /// Hash of the package that the run started with; a run never mixes two.
    pub package: PackageHash,
    /// When it started.
    pub started: Timestamp,
    /// Finished tasks of unfinished steps, by `phase/step`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub done: BTreeMap<String, BTreeSet<String>>,
    /// When unfinished steps began, by `phase/step`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub begun: BTreeMap<String, Timestamp>,
}

impl Progress {
    /// Reads it from the conditions of an Instance.
    pub fn read(conditions: &[Condition]) -> Option<Self> {
        serde_json::from_str(&condition::find(conditions, meta::condition::PLAN_RUNNING)?.message).ok()
    }

    /// The message of the condition.
    pub fn message(&self) -> String {
        // A struct of strings and maps with string keys always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }
}
