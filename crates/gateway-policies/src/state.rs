//! What a policy came to: its targets, and what it does under each ancestor.

use std::collections::{BTreeMap, BTreeSet};

use crate::node::NodeKey;
use crate::policy::{PolicyId, Violation};

/// What a target reference came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// The policy is attached.
    Attached,
    /// The target is absent.
    NotFound,
    /// An older policy of a direct kind has the target.
    Conflicted(PolicyId),
    /// The target has [`crate::limits::POLICIES_PER_TARGET`] older policies of the kind.
    OverLimit,
}

/// What a policy does on the paths of one Gateway, or on the target of a direct policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AncestorState {
    /// Whether one of its rules acts.
    pub is_live: bool,
    /// Whether one of its rules was replaced somewhere.
    pub is_replaced: bool,
    /// The policies that replaced rules of it.
    pub replaced_by: BTreeSet<PolicyId>,
}

/// What a policy came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyState {
    /// The policy.
    pub id: PolicyId,
    /// `metadata.generation` of the version that this is about.
    pub generation: i64,
    /// What is wrong with that version.
    pub violations: Vec<Violation>,
    /// Whether the last valid version is in force in place of that one.
    pub has_last_valid: bool,
    /// The targets.
    pub targets: BTreeMap<NodeKey, TargetState>,
    /// The ancestors: Gateways of its paths, and targets of a direct policy.
    pub ancestors: BTreeMap<NodeKey, AncestorState>,
}
