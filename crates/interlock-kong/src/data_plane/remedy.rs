//! What to do about a gateway, and about a rollout. Pure.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::remedy::Remedy;

use super::flavor::gateway_ref::GatewayRef;
use super::rollout::report::RolloutPhase;

/// The remedy for any condition on a gateway that reports a problem.
pub fn of_gateway(gateway: &GatewayRef) -> Remedy {
    let kind = gateway.kind.as_str().to_ascii_lowercase();
    let NamespacedName { namespace, name } = &gateway.name;
    Remedy {
        next: "Find what holds its pods up.".to_owned(),
        command: format!("interlock flavor diagnose {kind}/{name} -n {namespace}"),
    }
}

/// The remedy for a DataPlane that only a person can help; its condition says why.
pub fn of_stalled(data_plane: &NamespacedName) -> Remedy {
    let NamespacedName { namespace, name } = data_plane;
    Remedy {
        next: "Do what the message says.".to_owned(),
        command: format!("interlock why dataplane/{namespace}/{name}"),
    }
}

/// The remedy for a rollout that is on its way, or cannot go on; `None` where nothing is staged.
pub fn of_rollout(phase: RolloutPhase, data_plane: &NamespacedName) -> Option<Remedy> {
    let NamespacedName { namespace, name } = data_plane;
    let rollout = |verb: &str, rest: &str| format!("interlock rollout {verb} {name} -n {namespace}{rest}");
    let why = || format!("interlock why dataplane/{namespace}/{name}");
    let (next, command) = match phase {
        RolloutPhase::InPlace | RolloutPhase::Idle | RolloutPhase::Grace => return None,
        RolloutPhase::Unreported => (
            "Switch the capability dataplanes on in the Interlock object, unless Kong's operator carries DataPlanes out here.",
            rollout("status", ""),
        ),
        RolloutPhase::Starting => ("Find out why its pods do not become ready.", why()),
        RolloutPhase::Staging
        | RolloutPhase::Promoting
        | RolloutPhase::Committing
        | RolloutPhase::Following => ("Wait; Interlock goes on by itself.", rollout("status", " --watch")),
        RolloutPhase::AwaitingPromotion => ("Try the preview, then promote it.", rollout("promote", "")),
        RolloutPhase::PromotionFailed | RolloutPhase::Failed | RolloutPhase::Unknown => {
            ("Correct the cause, or take the change back with `interlock rollout abort`.", why())
        }
    };
    Some(Remedy { next: next.to_owned(), command })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::data_plane::flavor::gateway_ref::GatewayKind;

    fn demo() -> NamespacedName {
        NamespacedName::new("team", "demo")
    }

    #[rstest]
    #[case::awaiting(RolloutPhase::AwaitingPromotion, "interlock rollout promote demo -n team")]
    #[case::staging(RolloutPhase::Staging, "interlock rollout status demo -n team --watch")]
    #[case::failed(RolloutPhase::Failed, "interlock why dataplane/team/demo")]
    #[case::starting(RolloutPhase::Starting, "interlock why dataplane/team/demo")]
    #[case::unreported(RolloutPhase::Unreported, "interlock rollout status demo -n team")]
    fn a_rollout_has_a_command(#[case] phase: RolloutPhase, #[case] command: &str) {
        let remedy = of_rollout(phase, &demo()).expect("a remedy");
        assert_eq!(remedy.command, command);
        assert!(remedy.next.ends_with('.'), "{}", remedy.next);
    }

    #[test]
    fn each_phase_but_those_at_rest_has_a_remedy() {
        for phase in RolloutPhase::ALL {
            assert_eq!(of_rollout(phase, &demo()).is_none(), phase.is_at_rest(), "{phase}");
        }
    }

    #[test]
    fn a_gateway_is_diagnosed() {
        let gateway = GatewayRef { kind: GatewayKind::DataPlane, name: NamespacedName::new("kong", "edge") };
        assert_eq!(of_gateway(&gateway).command, "interlock flavor diagnose dataplane/edge -n kong");
    }
}
