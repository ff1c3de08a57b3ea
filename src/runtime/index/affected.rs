//! The result of an event: affected objects, and deleted ones.

use interlock_core::api::object::NamespacedName;
use interlock_core::topology::NodeId;
use interlock_kong::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use interlock_kong::data_plane::names::DATA_PLANE;
use interlock_kong::data_plane::names::GUARDED_DEPLOYMENT;

use super::row::name;

/// The result of an event of a watch.
#[derive(Debug, Default)]
pub struct Affected {
    /// Affected Instances that need reconciling.
    pub concerned: Vec<Concerned>,
    pub gateways: Vec<GatewayRef>,
    /// All affected objects.
    pub roots: Vec<NodeId>,
    /// Objects that turned out to be deleted.
    pub gone: Vec<NodeId>,
}

/// An affected Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concerned {
    pub instance: NamespacedName,
    /// Whether it is settled: no plan waits for its turn.
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
