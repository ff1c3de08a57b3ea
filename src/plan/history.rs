//! The last runs of an Instance, in one annotation, written with the clear of `planExecution`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::kudo::ExecutionStatus;
use crate::api::stamp::SpecHash;

/// How many runs are kept.
const KEPT: usize = 10;

/// One run that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Plan.
    pub plan: String,
    /// Id of the execution.
    pub uid: String,
    /// Hash of the spec that it was carried out on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<SpecHash>,
    /// `COMPLETE` or `FATAL_ERROR`.
    pub result: ExecutionStatus,
    /// When it started, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
}

/// Reads the annotation; what is not ours reads as empty, as it is for people only.
pub fn read(annotation: Option<&str>) -> Vec<Run> {
    annotation.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The annotation with one more run, newest first; a run that is in it already is not repeated.
pub fn with(mut runs: Vec<Run>, run: Run) -> String {
    if runs.first().is_none_or(|newest| newest.uid != run.uid) {
        runs.insert(0, run);
        runs.truncate(KEPT);
    }
    // A list of structs of strings always serialises.
    serde_json::to_string(&runs).unwrap_or_default()
}
