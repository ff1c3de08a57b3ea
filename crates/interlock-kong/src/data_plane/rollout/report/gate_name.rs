//! The gates that a staged change has to pass, and the reasons of `GatesPassed`.

use serde::Serialize;

/// The gates, in the order in which they are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GateName {
    /// The children of the preview can be made from the spec.
    Spec,
    /// All pods of the preview are ready.
    Pods,
    /// They answer that they have a configuration.
    Answers,
    /// The promotion is requested.
    Promotion,
    /// All endpoints of the live Service are pods of the new side.
    Traffic,
}

impl GateName {
    pub const ALL: [Self; 5] = [Self::Spec, Self::Pods, Self::Answers, Self::Promotion, Self::Traffic];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Pods => "pods",
            Self::Answers => "answers",
            Self::Promotion => "promotion",
            Self::Traffic => "traffic",
        }
    }

    /// The reason of `GatesPassed` while it is closed.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Spec => "Spec",
            Self::Pods => "Pods",
            Self::Answers => "Answers",
            Self::Promotion => "Promotion",
            Self::Traffic => "Traffic",
        }
    }

    /// The gate of a reason.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gate| gate.reason() == reason)
    }
}
