//! The gates of a rollout in their order, and what the closed one waits for, from what a controller has reported.

use std::fmt;

use serde::Serialize;

use crate::data_plane::rollout::report::RolloutPhase;

/// A gate that a staged change has to pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedGate {
    pub gate: GateName,
    /// Whether it is passed.
    pub state: GateState,
    /// What the closed one waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

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
}

/// Whether a gate is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GateState {
    Passed,
    /// The rollout waits at it.
    Closed,
    /// The rollout waits at an earlier one.
    NotReached,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewPods {
    /// How many are ready.
    pub ready: u64,
    /// How many there shall be.
    pub wanted: u64,
}

/// The gates of a rollout; none where nothing is on its way. `waits_for` is what the rollout as a whole waits for,
/// and `pods` are those of the preview, where they are known.
pub fn gates(phase: RolloutPhase, waits_for: Option<&str>, pods: Option<PreviewPods>) -> Vec<ReportedGate> {
    let Some(closed) = closed(phase, pods) else { return Vec::new() };
    let waits_for = match (closed, pods) {
        (GateName::Pods, Some(PreviewPods { ready, wanted })) if ready < wanted => {
            Some(format!("all pods of the preview to be ready ({ready} of {wanted} are)"))
        }
        _ => waits_for.map(str::to_owned),
    };
    let gate = |gate: GateName| ReportedGate {
        gate,
        state: match gate.cmp(&closed) {
            std::cmp::Ordering::Less => GateState::Passed,
            std::cmp::Ordering::Equal => GateState::Closed,
            std::cmp::Ordering::Greater => GateState::NotReached,
        },
        waits_for: waits_for.clone().filter(|_| gate == closed),
    };
    GateName::ALL.into_iter().map(gate).collect()
}

/// The gate at which a rollout waits.
fn closed(phase: RolloutPhase, pods: Option<PreviewPods>) -> Option<GateName> {
    match phase {
        RolloutPhase::Failed => Some(GateName::Spec),
        RolloutPhase::Staging => match pods {
            Some(pods) if pods.wanted > 0 && pods.ready >= pods.wanted => Some(GateName::Answers),
            _ => Some(GateName::Pods),
        },
        RolloutPhase::AwaitingPromotion | RolloutPhase::PromotionFailed => Some(GateName::Promotion),
        RolloutPhase::Promoting | RolloutPhase::Committing | RolloutPhase::Following => {
            Some(GateName::Traffic)
        }
        RolloutPhase::InPlace
        | RolloutPhase::Unreported
        | RolloutPhase::Starting
        | RolloutPhase::Idle
        | RolloutPhase::Grace
        | RolloutPhase::Unknown => None,
    }
}

impl fmt::Display for ReportedGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gate {}: ", self.gate.as_str())?;
        match (self.state, &self.waits_for) {
            (GateState::Passed, _) => f.write_str("passed"),
            (GateState::NotReached, _) => f.write_str("not reached"),
            (GateState::Closed, None) => f.write_str("closed"),
            (GateState::Closed, Some(why)) if self.gate == GateName::Spec => write!(f, "closed: {why}"),
            (GateState::Closed, Some(what)) => write!(f, "waits for: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const READY: Option<PreviewPods> = Some(PreviewPods { ready: 3, wanted: 3 });
    const STARTING: Option<PreviewPods> = Some(PreviewPods { ready: 1, wanted: 3 });

    #[rstest]
    #[case::failed(RolloutPhase::Failed, None, "spec", "m")]
    #[case::no_preview_yet(RolloutPhase::Staging, None, "pods", "m")]
    #[case::scaled_to_nothing(RolloutPhase::Staging, Some(PreviewPods { ready: 0, wanted: 0 }), "pods", "m")]
    #[case::starting(
        RolloutPhase::Staging,
        STARTING,
        "pods",
        "all pods of the preview to be ready (1 of 3 are)"
    )]
    #[case::without_configuration(RolloutPhase::Staging, READY, "answers", "m")]
    #[case::ready(RolloutPhase::AwaitingPromotion, READY, "promotion", "m")]
    #[case::kongs_failure(RolloutPhase::PromotionFailed, READY, "promotion", "m")]
    #[case::promoting(RolloutPhase::Promoting, READY, "traffic", "m")]
    fn the_first_closed_gate_says_what_it_waits_for(
        #[case] phase: RolloutPhase,
        #[case] pods: Option<PreviewPods>,
        #[case] gate: &str,
        #[case] waits_for: &str,
    ) {
        let all = gates(phase, Some("m"), pods);
        assert_eq!(all.len(), GateName::ALL.len());
        let at = all.iter().position(|found| found.state == GateState::Closed).expect("a closed one");
        assert_eq!((all[at].gate.as_str(), all[at].waits_for.as_deref()), (gate, Some(waits_for)));
        assert!(all[..at].iter().all(|found| found.state == GateState::Passed), "{all:?}");
        assert!(all[at + 1..].iter().all(|found| found.state == GateState::NotReached), "{all:?}");
        assert!(all.iter().enumerate().all(|(place, found)| found.waits_for.is_none() || place == at));
    }

    #[rstest]
    fn nothing_is_waited_for_at_a_gate_where_nothing_is_staged(
        #[values(
            RolloutPhase::Idle,
            RolloutPhase::InPlace,
            RolloutPhase::Starting,
            RolloutPhase::Unreported
        )]
        phase: RolloutPhase,
    ) {
        assert_eq!(gates(phase, Some("m"), None), []);
    }

    #[test]
    fn gates_are_lines_for_people() {
        let all = gates(RolloutPhase::Staging, None, STARTING);
        let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "gate spec: passed",
                "gate pods: waits for: all pods of the preview to be ready (1 of 3 are)",
                "gate answers: not reached",
                "gate promotion: not reached",
                "gate traffic: not reached",
            ]
        );
        let failed = &gates(RolloutPhase::Failed, Some("spec.a has no name: set it"), None)[0];
        assert_eq!(failed.to_string(), "gate spec: closed: spec.a has no name: set it");
    }
}
