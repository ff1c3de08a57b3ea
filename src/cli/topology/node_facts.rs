//! Facts of single objects, beside those of their nodes.

use std::collections::BTreeMap;

use interlock_core::api::display::display;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::topology::snapshot::GraphSnapshot;
use interlock_core::topology::{KindName, NodeId};
use serde_json::Value;

/// Longest text of a fact.
const LIMIT: usize = 240;

/// The facts by object.
#[derive(Debug, Default)]
pub(super) struct NodeFacts(BTreeMap<NodeId, Vec<(&'static str, String)>>);

impl NodeFacts {
    /// Takes in an object, if its kind has such facts.
    pub(super) fn note(&mut self, object: &Value) {
        let Some(gvk) = Gvk::of(object) else { return };
        let mut kinds = crate::kinds::all().iter().filter_map(|kind| Some((kind.resource, kind.node_facts?)));
        let is = kinds.find(|(kind, _)| kind.group == gvk.group && kind.kind == gvk.kind);
        let Some((kind, facts)) = is else { return };
        let text = |field| meta_str(object, field).unwrap_or_default();
        let id = NodeId::new(KindName::new(kind.group, kind.kind), text("namespace"), text("name"));
        let facts = facts(object).into_iter().map(|(name, fact)| (name, display(&fact, LIMIT)));
        self.0.insert(id, facts.collect());
    }

    /// Adds the facts to the nodes of a snapshot.
    pub(super) fn add_to(&self, snapshot: &mut GraphSnapshot) {
        for (id, facts) in &self.0 {
            let Some(node) = snapshot.nodes.get_mut(id) else { continue };
            node.facts.extend(facts.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds;
    use interlock_core::topology::{Epoch, GraphChange};
    use interlock_kong::api as kong;
    use interlock_kong::data_plane::names::DATA_PLANE;
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
        let mut node_facts = NodeFacts::default();
        node_facts.note(&object);
        node_facts.note(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge"}}));
        let mut snapshot = graph.snapshot();
        node_facts.add_to(&mut snapshot);
        let node = &snapshot.nodes[&NodeId::new(DATA_PLANE, "kong", "edge")];
        assert_eq!(
            (node.facts["phase"].as_str(), node.facts["waitsFor"].as_str()),
            ("AwaitingPromotion", "a promotion")
        );
        assert!(node.facts["next"].contains("kubectl describe dataplane edge -n kong"), "{:?}", node.facts);
    }
}
