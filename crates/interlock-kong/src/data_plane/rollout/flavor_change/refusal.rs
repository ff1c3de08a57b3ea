//! Why a change of a router flavor does not go on, and what to do about it.

use thiserror::Error;

use crate::data_plane::flavor::Flavor;

/// Why a change stops.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlavorChangeRefusal {
    /// The spec has no strategy that stages changes.
    #[error(
        "without spec.deployment.rollout.strategy.blueGreen its pods are replaced one by one, and two router flavors \
         run side by side"
    )]
    InPlace,
    /// Fields other than the flavor are staged.
    #[error("another change is staged: {0}")]
    OtherStaged(String),
    /// Another flavor is staged than the next one on the way.
    #[error("router flavor {0} is staged, which is not the next one on the way")]
    OtherFlavor(Flavor),
    /// The flavor of the live pods is not known.
    #[error("the router flavor of its live pods is not known: {0}")]
    UnknownLive(String),
    /// The spec of the live pods is not known.
    #[error("the spec of its live pods is not known: {0}")]
    UnknownSpec(String),
    /// The rollout has failed.
    #[error("its rollout has failed: {0}")]
    Failed(String),
    /// The producer runs nowhere, and this change did not stop it.
    #[error("the configuration producer is scaled to 0, and this command has not done that")]
    ProducerAbsent,
    /// The change of another DataPlane has stopped the producer.
    #[error("the configuration producer is stopped for the promotion of DataPlane {0}")]
    ProducerTaken(String),
}

impl FlavorChangeRefusal {
    /// What to do; `arguments` are `NAME -n NAMESPACE`.
    pub fn remedy(&self, arguments: &str) -> String {
        let abort = format!("take it back (`interlock rollout abort {arguments}`)");
        match self {
            Self::InPlace => {
                "set spec.deployment.rollout.strategy.blueGreen in a change of its own and call this again, \
                              or add --outage, which stops all of its pods for a while"
                    .to_owned()
            }
            Self::OtherStaged(_) => format!(
                "promote it (`interlock rollout promote {arguments} --wait`) or {abort}, and call this again"
            ),
            Self::OtherFlavor(_) => format!("{abort}, and call this again"),
            Self::UnknownLive(_) => {
                "set KONG_ROUTER_FLAVOR on container \"proxy\" to what its pods report, in a change of \
                                     its own, and call this again"
                    .to_owned()
            }
            Self::UnknownSpec(_) => format!("look at it: `interlock rollout status {arguments}`"),
            Self::Failed(_) => {
                format!(
                    "correct the cause (`kubectl describe dataplane {arguments}`) or {abort}, and call this again"
                )
            }
            Self::ProducerAbsent => "scale it up and call this again, or leave --producer out".to_owned(),
            Self::ProducerTaken(_) => "wait for the end of that, and call this again".to_owned(),
        }
    }
}
