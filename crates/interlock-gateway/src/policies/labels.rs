//! The labels of the objects that a policy can select as its targets.

use std::collections::BTreeMap;

use gateway_policies::{NodeKey, ObjectKind};
use serde_json::Value;

use super::targets::{Selector, namespace_of};

/// Labels by node; an object without labels is there with none, as an empty selector selects it.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(BTreeMap<NodeKey, BTreeMap<String, String>>);

impl Labels {
    /// Those of some objects.
    pub(super) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut labels = Self::default();
        for object in objects {
            if let Some(node) = node_of(object) {
                labels.replace(node, Some(labels_of(object)));
            }
        }
        labels
    }

    /// Replaces the labels of a node; returns those of before.
    pub(super) fn replace(
        &mut self,
        node: NodeKey,
        labels: Option<BTreeMap<String, String>>,
    ) -> Option<BTreeMap<String, String>> {
        match labels {
            Some(labels) => self.0.insert(node, labels),
            None => self.0.remove(&node),
        }
    }

    /// The nodes of a namespace that a selector selects.
    pub(super) fn selected(&self, namespace: &str, selector: Selector) -> impl Iterator<Item = &NodeKey> {
        let first = NodeKey::new(selector.kind, namespace, "");
        let own = self.0.range(first.clone()..);
        let own =
            own.take_while(move |(node, _)| node.kind == first.kind && node.namespace == first.namespace);
        own.filter(move |(_, labels)| selector.selects(labels)).map(|(node, _)| node)
    }
}

/// The node of an object.
pub(super) fn node_of(object: &Value) -> Option<NodeKey> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let kind = ObjectKind::find(group, text("kind"))?;
    Some(NodeKey::new(kind, namespace_of(object), object["metadata"]["name"].as_str()?))
}

pub(super) fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
