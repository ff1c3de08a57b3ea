//! What comes of an event: whom it concerns, and what is gone.

use interlock_core::api::object::NamespacedName;
use interlock_core::rollout::flavor::subject::{GatewayKind, GatewayRef};
use interlock_core::topology::NodeId;
use interlock_core::topology::kinds::{DATA_PLANE, GUARDED_DEPLOYMENT};

use super::row::name;

/// What came of something that a watch told.
#[derive(Debug, Default)]
pub struct Affected {
    /// The Instances that it concerns and that have something to do.
    pub concerned: Vec<Concerned>,
    /// The gateways that it concerns.
    pub gateways: Vec<GatewayRef>,
    /// Objects that turned out to be gone.
    pub gone: Vec<NodeId>,
}

/// An Instance that an event concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concerned {
    /// Which.
    pub instance: NamespacedName,
    /// Whether it is at rest: no plan waits for its turn.
    pub resting: bool,
}

/// The gateways among objects.
pub(super) fn gateways(ids: &[NodeId]) -> Vec<GatewayRef> {
    let kind_of = |id: &NodeId| match &id.kind {
        kind if *kind == DATA_PLANE => Some(GatewayKind::DataPlane),
        kind if *kind == GUARDED_DEPLOYMENT => Some(GatewayKind::Deployment),
        _ => None,
    };
    ids.iter().filter_map(|id| Some(GatewayRef { kind: kind_of(id)?, name: name(id) })).collect()
}
