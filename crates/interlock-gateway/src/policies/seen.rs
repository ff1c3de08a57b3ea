//! A policy as its object has it: who it is, and what of it no index has.

use std::collections::BTreeSet;
use std::sync::Arc;

use gateway_policies::{ObjectKind, PolicyId};
use serde_json::Value;

use super::inert::InertRules;
use super::known::PolicyKinds;
use super::labels::{Labels, namespace_of};
use super::merge::MergeType;
use super::targets::linked;

/// What of a policy its index does not have.
#[derive(Default)]
pub(super) struct SeenPolicy {
    pub(super) status: Value,
    /// How it merges with a policy above it (Envoy Gateway).
    pub(super) merges: Option<MergeType>,
    /// Targets that are no nodes.
    pub(super) elsewhere: Vec<String>,
    /// Whether its selectors match nothing.
    pub(super) is_unmatched: bool,
    /// The kinds that its selectors select in other namespaces, which are not looked into.
    pub(super) selects_outside: BTreeSet<ObjectKind>,
    /// Its rules that can never act.
    pub(super) inert: InertRules,
    /// What of its targets and expressions is not as it may seem.
    pub(super) notes: Vec<String>,
    /// All its fields, which every path that it acts on shares.
    pub(super) whole: Option<Arc<Value>>,
}

/// A policy as an index takes it, and the rest of it.
pub(super) struct ReadPolicy {
    pub(super) id: PolicyId,
    pub(super) seen: SeenPolicy,
    /// With references to nodes alone; none where it has no such reference.
    pub(super) object: Option<Value>,
}

impl PolicyKinds {
    /// Reads a policy of the kind of that name; none where it names no target, as Istio's with a selector of pods.
    pub(super) fn read(&self, name: &str, object: &Value, labels: &Labels) -> Option<ReadPolicy> {
        let linked = linked(self.get(name)?, object, labels)?;
        let own_name = object["metadata"]["name"].as_str().unwrap_or_default();
        let id =
            PolicyId { kind: name.into(), namespace: namespace_of(object).into(), name: own_name.into() };
        let seen = SeenPolicy {
            status: object["status"].clone(),
            merges: MergeType::of(&object["spec"]),
            elsewhere: linked.elsewhere,
            is_unmatched: linked.is_unmatched,
            selects_outside: linked.selects_outside,
            inert: InertRules::default(),
            notes: linked.notes,
            whole: None,
        };
        Some(ReadPolicy { id, seen, object: linked.object })
    }
}
