//! The result of an event: affected objects, and deleted ones.

use interlock_core::api::object::NamespacedName;
use interlock_core::topology::NodeId;

/// The result of an event of a watch.
#[derive(Debug, Default)]
pub struct Affected {
    /// Affected Instances that need reconciling.
    pub concerned: Vec<Concerned>,
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
