//! An object that needs a person: the reason, since when, and what to do.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// What is wrong, the most pressing first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TroubleState {
    /// The last plan failed or was aborted.
    Failed,
    /// Only a person can help.
    Stalled,
    /// The spec differs from what was carried out.
    Drifted,
    /// An object is not healthy, or its health is unknown.
    NotReady,
    /// A plan waits, or sends a request again.
    Waiting,
}

impl TroubleState {
    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Stalled => "stalled",
            Self::Drifted => "drifted",
            Self::NotReady => "not ready",
            Self::Waiting => "waiting",
        }
    }
}

impl Serialize for TroubleState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An object in trouble.
#[derive(Debug, Serialize)]
pub struct TroubleRow {
    /// Kind of the object.
    pub kind: &'static str,
    /// Its namespace; empty without one.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What is wrong, in a word.
    pub state: TroubleState,
    /// The reason of a condition.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    /// Further conditions of it that report a problem.
    pub also: Vec<Also>,
    /// What to do.
    pub next: String,
    /// A command for it.
    pub command: String,
}

/// A further condition.
#[derive(Debug, Serialize)]
pub struct Also {
    /// The reason of a condition.
    pub reason: String,
    /// For people.
    pub message: String,
}
