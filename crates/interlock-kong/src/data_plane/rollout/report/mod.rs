//! The phase of a rollout, and what a controller reports of it: the conditions `RolledOut` and `GatesPassed`.

pub mod changes;
pub mod follow;
pub mod gate_name;
pub mod gate_report;
pub mod next_step;
pub mod object_side;
pub mod summary;
pub mod totals;
pub mod verbs;

use std::fmt;

use interlock_core::api::meta;
use serde::{Serialize, Serializer};
use serde_json::Value;

use self::gate_name::GateName;
use crate::api::condition;
use crate::data_plane::live_spec;

/// Kong's condition of a rollout.
pub const ROLLED_OUT: &str = "RolledOut";
/// Ours beside it: False, with the gate that is closed as its reason, while a change is on its way. The definition of
/// Kong's operator takes it, and no reader of Kong's knows it.
pub const GATES_PASSED: &str = "GatesPassed";

/// Where a rollout stands, as it is decided and as the condition `RolledOut` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloutPhase {
    /// The spec has no strategy that stages changes.
    InPlace,
    /// No controller has reported a phase.
    Unreported,
    /// The live side was never ready: a change is not staged yet.
    Starting,
    /// Nothing is staged, and the preview has no pods.
    Idle,
    /// The preview's pods start.
    Staging,
    /// They are ready, and do not answer as they shall. It is reported as [`Self::Staging`], at another gate.
    Asking,
    /// The preview is ready, and waits for a promotion.
    AwaitingPromotion,
    /// The promotion is recorded as begun, or about to be: from here on the spec cannot change.
    Promoting,
    /// The same, where it is recorded and not committed yet. It is reported as [`Self::Promoting`].
    Committing,
    /// The promotion is committed, and the traffic has yet to follow. It is reported as [`Self::Promoting`].
    Following,
    /// The promotion is done, and the former side still has its pods. To people it is [`Self::Idle`].
    Grace,
    /// Kong's operator could not promote the preview.
    PromotionFailed,
    /// The preview cannot be made.
    Failed,
    /// The condition has a reason that is not known here.
    Unknown,
}

impl RolloutPhase {
    /// Those that people see.
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
    /// Those that Interlock reports.
    pub const OURS: [Self; 6] =
        [Self::Idle, Self::Staging, Self::AwaitingPromotion, Self::Promoting, Self::Grace, Self::Failed];

    /// The phase that is reported of a DataPlane, whatever its spec has become since; see [`summary::RolloutSummary`].
    fn reported(object: &Value) -> Self {
        if !live_spec::is_staged(&object["spec"]) {
            return Self::InPlace;
        }
        match ReportedRollout::of(object).map(|rollout| rollout.phase()) {
            Some(Self::Grace) => Self::Idle,
            Some(phase) => phase,
            None if readiness(object).is_some() => Self::Starting,
            None => Self::Unreported,
        }
    }

    /// The phase that a reason of `RolledOut` reports.
    pub fn of_reason(reason: &str) -> Self {
        let reported = Self::OURS.into_iter().chain([Self::PromotionFailed]);
        reported.into_iter().find(|phase| phase.reason() == reason).unwrap_or(Self::Unknown)
    }

    /// The phase of a name; [`Self::Unknown`] for another word.
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|phase| phase.as_str() == name).unwrap_or(Self::Unknown)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.words().0
    }

    /// The reason of `RolledOut` that reports it: Kong's word; empty for what is not reported.
    pub fn reason(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::InPlace => ("InPlace", ""),
            Self::Unreported => ("Unreported", ""),
            Self::Starting => ("Starting", ""),
            Self::Idle => ("Idle", "WaitingForChange"),
            Self::Staging | Self::Asking => ("Staging", "Progressing"),
            Self::AwaitingPromotion => ("AwaitingPromotion", "AwaitingPromotion"),
            Self::Promoting | Self::Committing | Self::Following => ("Promoting", "PromotionInProgress"),
            Self::Grace => ("Idle", "PromotionDone"),
            Self::PromotionFailed => ("PromotionFailed", "PromotionFailed"),
            Self::Failed => ("Failed", "Failed"),
            Self::Unknown => ("Unknown", ""),
        }
    }

    /// What a rollout in this phase waits for, where its controller has not said more; `None` where it waits for
    /// nothing.
    pub fn waits_for(self) -> Option<&'static str> {
        match self {
            Self::InPlace | Self::Idle | Self::Grace => None,
            Self::Unreported | Self::Starting => Some("a controller that carries out rollouts"),
            Self::Staging | Self::Asking => Some("the pods of the preview"),
            Self::AwaitingPromotion => Some("a promotion"),
            Self::Promoting | Self::Committing | Self::Following => {
                Some("the live Services to select the promoted pods")
            }
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
        matches!(self, Self::InPlace | Self::Idle | Self::Grace)
    }

    /// Whether the former side has to stay as it is.
    pub fn keeps_former_side(self) -> bool {
        matches!(self, Self::Following | Self::Grace)
    }

    /// Whether the rollout does not go on by itself.
    pub fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::PromotionFailed)
    }
}

impl fmt::Display for RolloutPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RolloutPhase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The message of the condition `Ready`.
pub(super) fn readiness(object: &Value) -> Option<&str> {
    condition(&object["status"], meta::condition::READY)?["message"].as_str()
}

/// What the conditions of a DataPlane's rollout report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedRollout<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    /// Since when it has this reason.
    pub since: Option<&'a str>,
    /// Whether it was written for the spec that is stored.
    pub is_current: bool,
    /// The gate that is closed, where that is reported.
    gate: Option<GateName>,
}

impl<'a> ReportedRollout<'a> {
    pub fn phase(&self) -> RolloutPhase {
        match RolloutPhase::of_reason(self.reason) {
            RolloutPhase::Staging if self.gate == Some(GateName::Answers) => RolloutPhase::Asking,
            phase => phase,
        }
    }

    /// Whether nothing is staged and nothing is on its way, as reported of the spec that is stored.
    pub fn rests(&self) -> bool {
        self.is_current && self.phase() == RolloutPhase::Idle
    }

    /// The condition of an object.
    pub fn of(object: &'a Value) -> Option<Self> {
        let rollout = &object["status"]["rollout"];
        let found = condition(rollout, ROLLED_OUT)?;
        let text = |member: &str| found[member].as_str();
        let (observed, generation) = (&found["observedGeneration"], &object["metadata"]["generation"]);
        let gates = condition(rollout, GATES_PASSED).filter(|gates| gates["observedGeneration"] == *observed);
        Some(Self {
            reason: text("reason").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            since: text("lastTransitionTime"),
            is_current: observed.as_i64().unwrap_or_default() >= generation.as_i64().unwrap_or_default(),
            gate: gates.and_then(|gates| GateName::of_reason(gates["reason"].as_str()?)),
        })
    }
}
