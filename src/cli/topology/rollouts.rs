//! What the rollouts of DataPlanes wait for, and what to do, as facts of their nodes: texts that a graph of many
//! objects does not keep.

use std::collections::BTreeMap;

use interlock_core::api::display::display;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::topology::NodeId;
use interlock_core::topology::snapshot::GraphSnapshot;
use interlock_kong::api as kong;
use interlock_kong::data_plane::names::DATA_PLANE;
use interlock_kong::data_plane::rollout::summary::RolloutSummary;
use serde_json::Value;

/// Longest text of a fact.
const LIMIT: usize = 240;

/// The facts of DataPlanes with something to wait for.
#[derive(Debug, Default)]
pub(super) struct Rollouts {
    facts: BTreeMap<NodeId, Vec<(&'static str, String)>>,
}

impl Rollouts {
    /// Takes in an object, if it is a DataPlane.
    pub(super) fn note(&mut self, object: &Value) {
        let is = Gvk::of(object).is_some_and(|gvk| gvk.group == kong::GROUP && gvk.kind == DATA_PLANE.kind);
        if !is {
            return;
        }
        let text = |field| meta_str(object, field).unwrap_or_default();
        let RolloutSummary { waits_for, next, .. } = RolloutSummary::of(object, None);
        let facts = [("waitsFor", waits_for), ("next", next)];
        let facts = facts.into_iter().filter_map(|(name, fact)| Some((name, display(&fact?, LIMIT))));
        self.facts.insert(NodeId::new(DATA_PLANE, text("namespace"), text("name")), facts.collect());
    }

    /// Adds the facts to the nodes of a snapshot.
    pub(super) fn add_to(&self, snapshot: &mut GraphSnapshot) {
        for (id, facts) in &self.facts {
            let Some(node) = snapshot.nodes.get_mut(id) else { continue };
            node.facts.extend(facts.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds;
    use interlock_core::topology::{Epoch, GraphChange};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_says_what_its_rollout_waits_for_and_what_to_do() {
        let rolled_out =
            json!({"type": "RolledOut", "reason": "AwaitingPromotion", "message": "", "status": "False"});
        let object = json!({
            "apiVersion": kong::API_VERSION, "kind": "DataPlane",
            "metadata": {"namespace": "kong", "name": "edge", "uid": "u"},
            "spec": {"deployment": {"rollout": {"strategy": {"blueGreen": {}}}}},
            "status": {"rollout": {"conditions": [rolled_out]}},
        });
        let mut graph = kinds::graph(crate::kinds::all());
        let kind = graph.kind(kong::GROUP, "DataPlane");
        graph.kind_available(kind, Epoch(1));
        graph.apply(kind, Epoch(1), GraphChange::Applied(&object));
        let mut rollouts = Rollouts::default();
        rollouts.note(&object);
        rollouts.note(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge"}}));
        let mut snapshot = graph.snapshot();
        rollouts.add_to(&mut snapshot);
        let node = &snapshot.nodes[&NodeId::new(DATA_PLANE, "kong", "edge")];
        assert_eq!(
            (node.facts["phase"].as_str(), node.facts["waitsFor"].as_str()),
            ("AwaitingPromotion", "a promotion")
        );
        assert!(node.facts["next"].contains("kubectl describe dataplane edge -n kong"), "{:?}", node.facts);
    }
}
