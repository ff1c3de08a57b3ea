//! What a controller reports of a rollout: the condition `RolledOut`, and the phase that it stands for.

use std::fmt;

use interlock_core::api::meta;
use serde::Serialize;
use serde_json::Value;

use crate::data_plane::live_spec;

/// The phase of a rollout, as the condition `RolledOut` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ReportedPhase {
    /// The spec has no strategy that stages changes.
    InPlace,
    /// No controller has reported a phase.
    Unreported,
    /// The live side was never ready: a change is not staged yet.
    Starting,
    /// Nothing is staged.
    Idle,
    /// The preview's pods start.
    Staging,
    /// The preview is ready.
    AwaitingPromotion,
    /// The preview becomes live.
    Promoting,
    PromotionFailed,
    /// The preview cannot be made.
    Failed,
    /// The condition has a reason that is not known here.
    Unknown,
}

impl ReportedPhase {
    pub const ALL: [Self; 10] = [
        Self::InPlace,
        Self::Unreported,
        Self::Starting,
        Self::Idle,
        Self::Staging,
        Self::AwaitingPromotion,
        Self::Promoting,
        Self::PromotionFailed,
        Self::Failed,
        Self::Unknown,
    ];

    /// The phase that a controller has reported of a DataPlane, whatever its spec has become since.
    pub fn of(object: &Value) -> Self {
        if !live_spec::is_staged(&object["spec"]) {
            return Self::InPlace;
        }
        match ReportedRollout::of(object) {
            Some(rollout) => Self::of_reason(rollout.reason),
            None if readiness(object).is_some() => Self::Starting,
            None => Self::Unreported,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InPlace => "InPlace",
            Self::Unreported => "Unreported",
            Self::Starting => "Starting",
            Self::Idle => "Idle",
            Self::Staging => "Staging",
            Self::AwaitingPromotion => "AwaitingPromotion",
            Self::Promoting => "Promoting",
            Self::PromotionFailed => "PromotionFailed",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }

    /// What a rollout in this phase waits for, where its controller has not said more; `None` where it waits for
    /// nothing.
    pub fn waits_for(self) -> Option<&'static str> {
        match self {
            Self::InPlace | Self::Idle => None,
            Self::Unreported | Self::Starting => Some("a controller that carries out rollouts"),
            Self::Staging => Some("the pods of the preview"),
            Self::AwaitingPromotion => Some("a promotion"),
            Self::Promoting => Some("the live Services to select the promoted pods"),
            Self::PromotionFailed => Some("another attempt of the promotion"),
            Self::Failed | Self::Unknown => Some("the cause to be corrected"),
        }
    }

    /// The same, with what the controller says of it.
    pub fn waits_for_as(self, message: Option<&str>) -> Option<String> {
        let own = self.waits_for()?;
        Some(match (self, message) {
            (_, None) => own.to_owned(),
            (Self::AwaitingPromotion, Some(message)) => format!("{own}; {message}"),
            (_, Some(message)) => message.to_owned(),
        })
    }

    /// Whether nothing is staged, and nothing is waited for.
    pub fn is_at_rest(self) -> bool {
        matches!(self, Self::InPlace | Self::Idle)
    }

    fn of_reason(reason: &str) -> Self {
        match reason {
            "Progressing" => Self::Staging,
            "WaitingForChange" | "PromotionDone" => Self::Idle,
            "AwaitingPromotion" => Self::AwaitingPromotion,
            "PromotionInProgress" => Self::Promoting,
            "PromotionFailed" => Self::PromotionFailed,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }

    /// Whether the rollout does not go on by itself.
    pub fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::PromotionFailed)
    }
}

impl fmt::Display for ReportedPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The message of the condition `Ready`.
pub(super) fn readiness(object: &Value) -> Option<&str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == meta::condition::READY)?["message"].as_str()
}

/// The condition `RolledOut` of a DataPlane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedRollout<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    /// Since when it has this reason.
    pub since: Option<&'a str>,
    /// Whether it was written for the spec that is stored.
    pub is_current: bool,
}

impl<'a> ReportedRollout<'a> {
    /// The condition of an object.
    pub fn of(object: &'a Value) -> Option<Self> {
        let all = object["status"]["rollout"]["conditions"].as_array()?;
        let found = all.iter().find(|condition| condition["type"] == "RolledOut")?;
        let text = |member: &str| found[member].as_str();
        let (observed, generation) = (&found["observedGeneration"], &object["metadata"]["generation"]);
        Some(Self {
            reason: text("reason").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            since: text("lastTransitionTime"),
            is_current: observed.as_i64().unwrap_or_default() >= generation.as_i64().unwrap_or_default(),
        })
    }
}
