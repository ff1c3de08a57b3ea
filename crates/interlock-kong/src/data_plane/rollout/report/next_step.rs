//! What a person can do about a rollout, and the command for it. Pure.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::remedy::Remedy;

use crate::data_plane::rollout::promotion::PromotionRequest;
use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::report::changes::StagedState;

/// What a person can do about a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The live side was never ready.
    LookAtPods,
    /// No controller carries rollouts out.
    EnableDataPlanes,
    /// What is live is not known.
    CompareSpec,
    /// The rollout has failed.
    Correct,
    /// A changed ConfigMap or Secret is staged.
    PromoteFlavor,
    /// The preview is ready.
    Promote,
    /// The preview is not ready yet.
    PromoteAhead,
    /// The promotion is requested already.
    Abort,
    /// A person alone can help, or Kubernetes refuses something.
    CorrectStalled,
}

impl NextStep {
    pub const ALL: [Self; 9] = [
        Self::LookAtPods,
        Self::EnableDataPlanes,
        Self::CompareSpec,
        Self::Correct,
        Self::PromoteFlavor,
        Self::Promote,
        Self::PromoteAhead,
        Self::Abort,
        Self::CorrectStalled,
    ];

    /// That of a rollout in a phase; `is_sourced` where a changed ConfigMap or Secret stages another router flavor.
    pub(super) fn of(
        phase: RolloutPhase,
        staged: &StagedState,
        is_sourced: bool,
        promotion: Option<PromotionRequest>,
    ) -> Option<Self> {
        let requested = promotion.is_some_and(PromotionRequest::is_for_this);
        match (phase, staged) {
            (RolloutPhase::InPlace, _) => None,
            (RolloutPhase::Starting, _) => Some(Self::LookAtPods),
            (RolloutPhase::Unreported, _) => Some(Self::EnableDataPlanes),
            (_, StagedState::Unknown(_)) => Some(Self::CompareSpec),
            (RolloutPhase::Promoting, _) => None,
            (phase, _) if phase.has_failed() => Some(Self::Correct),
            (_, StagedState::Nothing) if is_sourced && !requested => Some(Self::PromoteFlavor),
            (_, StagedState::Nothing) => None,
            (RolloutPhase::AwaitingPromotion, _) if !requested => Some(Self::Promote),
            _ if requested => Some(Self::Abort),
            _ => Some(Self::PromoteAhead),
        }
    }

    /// Its number, as the graph of all objects keeps it; from 1.
    pub fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The step of a number.
    pub fn numbered(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.number() == number)
    }

    /// What to do about a DataPlane, for the page: nothing that is better looked at first is one click away.
    pub fn remedy(self, data_plane: &NamespacedName) -> Remedy {
        let next = match self {
            Self::LookAtPods => "Find out why its pods do not become ready.",
            Self::EnableDataPlanes => {
                "Switch the capability dataplanes on in the Interlock object, unless Kong's operator carries DataPlanes out here."
            }
            Self::CompareSpec => {
                "Compare the spec with what the pods run: the next write records the stored spec as live."
            }
            Self::Correct => "Correct the cause, or take the change back.",
            Self::PromoteFlavor => {
                "Promote the other router flavor, or write the former value where it comes from."
            }
            Self::Promote => "Try the preview, then promote it.",
            Self::PromoteAhead => {
                "Wait; a promotion that is requested now takes effect when the preview is ready."
            }
            Self::Abort => "Wait; the promotion is requested, and can be taken back until it begins.",
            Self::CorrectStalled => "Correct the cause, and Interlock goes on by itself.",
        };
        let NamespacedName { namespace, name } = data_plane;
        let command = match self {
            Self::LookAtPods | Self::Correct | Self::CorrectStalled => {
                format!("interlock why dataplane/{namespace}/{name}")
            }
            Self::EnableDataPlanes | Self::CompareSpec => rollout("status", data_plane),
            Self::PromoteFlavor | Self::Promote => rollout("promote", data_plane),
            Self::PromoteAhead | Self::Abort => rollout("status", data_plane) + " --watch",
        };
        Remedy { next: next.to_owned(), command }
    }

    /// The same in one line, with all commands.
    pub fn line(self, data_plane: &NamespacedName) -> String {
        let NamespacedName { namespace, name } = data_plane;
        let look = format!("`kubectl describe dataplane {name} -n {namespace}`");
        let promote = format!("`{}`", rollout("promote", data_plane));
        let abort = format!("`{}`", rollout("abort", data_plane));
        match self {
            Self::LookAtPods => format!("look at its pods: {look}"),
            Self::EnableDataPlanes => {
                "set spec.capabilities.dataplanes.mode of the Interlock object to auto, unless Kong's operator carries \
                 DataPlanes out here"
                    .to_owned()
            }
            Self::CompareSpec => format!(
                "compare the spec with what the pods run ({look}): the next write of it records the stored spec as live"
            ),
            Self::Correct => format!("correct the cause ({look}), or take it back with {abort}"),
            Self::PromoteFlavor => {
                format!("{promote}, or write the former value where the router flavor comes from")
            }
            Self::Promote => format!("{promote}, or {abort}"),
            Self::PromoteAhead => {
                format!("{promote}, which takes effect when the preview is ready, or {abort}")
            }
            Self::Abort => abort,
            Self::CorrectStalled => {
                format!("correct the cause, and Interlock goes on by itself; {look} shows all")
            }
        }
    }
}

fn rollout(verb: &str, NamespacedName { namespace, name }: &NamespacedName) -> String {
    format!("interlock rollout {verb} {name} -n {namespace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_a_number_and_a_sentence_with_a_command() {
        let edge = NamespacedName::new("kong", "edge");
        for step in NextStep::ALL {
            assert_eq!(NextStep::numbered(step.number()), Some(step));
            let Remedy { next, command } = step.remedy(&edge);
            assert!(next.ends_with('.') && !next.contains('`'), "{next}");
            assert!(
                command.contains(" edge -n kong") || command.contains(" dataplane/kong/edge"),
                "{command}"
            );
        }
        assert_eq!(NextStep::numbered(0), None);
        let changes = |step: NextStep| step.remedy(&edge).command.contains(" promote ");
        assert_eq!(
            NextStep::ALL.into_iter().filter(|step| changes(*step)).collect::<Vec<_>>(),
            [NextStep::PromoteFlavor, NextStep::Promote]
        );
        let line = NextStep::Correct.line(&edge);
        assert!(
            line.contains("`kubectl describe dataplane edge -n kong`") && line.contains("rollout abort edge"),
            "{line}"
        );
    }
}
