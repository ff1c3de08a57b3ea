//! KUDO's words for the status of an execution.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Status of an execution (of a plan, a phase or a step).
///
/// A free string in the schema; a word that is not KUDO's is kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ExecutionStatus {
    /// Never executed, or not since the plan was last scheduled.
    #[default]
    NeverRun,
    /// Scheduled, not begun.
    Pending,
    /// Being executed.
    InProgress,
    /// A task failed and is tried again.
    Error,
    /// Ended by an error.
    FatalError,
    /// Ended successfully.
    Complete,
    /// A word that KUDO does not know.
    Other(String),
}

impl ExecutionStatus {
    /// The string on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::NeverRun => "NEVER_RUN",
            Self::Pending => "PENDING",
            Self::InProgress => "IN_PROGRESS",
            Self::Error => "ERROR",
            Self::FatalError => "FATAL_ERROR",
            Self::Complete => "COMPLETE",
            Self::Other(word) => word,
        }
    }

    /// `COMPLETE` or `FATAL_ERROR`.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Complete | Self::FatalError)
    }

    /// `PENDING`, `IN_PROGRESS` or `ERROR`.
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Pending | Self::InProgress | Self::Error)
    }
}

impl From<&str> for ExecutionStatus {
    fn from(word: &str) -> Self {
        match word {
            "" | "NEVER_RUN" => Self::NeverRun,
            "PENDING" => Self::Pending,
            "IN_PROGRESS" => Self::InProgress,
            "ERROR" => Self::Error,
            "FATAL_ERROR" => Self::FatalError,
            "COMPLETE" => Self::Complete,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl From<String> for ExecutionStatus {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<ExecutionStatus> for String {
    fn from(status: ExecutionStatus) -> Self {
        status.as_str().to_owned()
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl JsonSchema for ExecutionStatus {
    fn schema_name() -> Cow<'static, str> {
        "ExecutionStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }

    fn inline_schema() -> bool {
        true
    }
}
