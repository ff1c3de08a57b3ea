//! The gates of a rollout in their order, the one at which each phase waits, and what that waits for.

use std::fmt;

use serde::Serialize;

use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::report::gate_name::GateName;

/// What Kong's operator, too, says of a preview whose pods start.
pub const NOT_READY: &str = "Preview Deployment not yet ready";

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
    let Some(closed) = phase.gate() else { return Vec::new() };
    let waits_for = match (closed, pods) {
        (GateName::Pods, Some(PreviewPods { ready, wanted })) if ready < wanted => {
            // What the controller says beside: for example a quota that refuses them.
            let why = waits_for.and_then(|said| said.strip_prefix(NOT_READY)?.strip_prefix(": "));
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            Some(format!("all pods of the preview to be ready ({ready} of {wanted} are){why}"))
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

impl RolloutPhase {
    /// The gate at which a rollout in this phase waits; `None` where nothing is on its way.
    pub fn gate(self) -> Option<GateName> {
        match self {
            Self::Failed => Some(GateName::Spec),
            Self::Staging => Some(GateName::Pods),
            Self::Asking => Some(GateName::Answers),
            Self::AwaitingPromotion | Self::PromotionFailed => Some(GateName::Promotion),
            Self::Promoting | Self::Committing | Self::Following => Some(GateName::Traffic),
            Self::InPlace | Self::Unreported | Self::Starting | Self::Idle | Self::Grace | Self::Unknown => {
                None
            }
        }
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
    // The Deployment may still be at an earlier template: the controller says when it is not.
    #[case::all_of_an_earlier_spec(RolloutPhase::Staging, READY, "pods", "m")]
    #[case::without_configuration(RolloutPhase::Asking, READY, "answers", "m")]
    #[case::one_is_not_ready_any_more(RolloutPhase::Asking, STARTING, "answers", "m")]
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
    fn a_closed_gate_says_what_the_controller_says_of_its_pods() {
        let refused = "Preview Deployment not yet ready: exceeded quota: q";
        let gate = gates(RolloutPhase::Staging, Some(refused), STARTING).remove(1);
        assert_eq!(
            gate.waits_for.as_deref(),
            Some("all pods of the preview to be ready (1 of 3 are): exceeded quota: q")
        );
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
