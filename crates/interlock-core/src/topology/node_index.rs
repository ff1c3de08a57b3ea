//! Indexes in slabs.

/// Index of a node or an edge.
pub(super) type NodeIndex = u32;
/// No index.
pub(super) const NONE: NodeIndex = u32::MAX;

/// A graph of four thousand million nodes does not fit into memory.
pub(super) fn place(at: usize) -> NodeIndex {
    u32::try_from(at).unwrap_or(NONE)
}
