//! The labels of the objects that a policy can select as its targets, and its selectors.

use std::collections::BTreeMap;

use gateway_policies::{GATEWAY_GROUP, NodeKey, ObjectKind};
use serde_json::{Map, Value};

/// Labels by node; an object without labels is there with none, as an empty selector selects it.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(BTreeMap<NodeKey, Map<String, Value>>);

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
        labels: Option<Map<String, Value>>,
    ) -> Option<Map<String, Value>> {
        match labels {
            Some(labels) => self.0.insert(node, labels),
            None => self.0.remove(&node),
        }
    }

    /// The nodes of a namespace that a selector selects.
    pub(super) fn selected(&self, namespace: &str, selector: Selector<'_>) -> impl Iterator<Item = &NodeKey> {
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

pub(super) fn labels_of(object: &Value) -> Map<String, Value> {
    object["metadata"]["labels"].as_object().cloned().unwrap_or_default()
}

/// Selectors of one policy that are followed. Envoy Gateway's definition admits as many.
const SELECTORS: usize = 16;
/// Labels of one selector; one with more selects nothing here.
const LABELS: usize = 64;

/// A selector of Envoy Gateway: objects of a kind in the policy's namespace, by labels.
#[derive(Clone, Copy)]
pub(super) struct Selector<'a> {
    pub(super) kind: ObjectKind,
    labels: &'a Map<String, Value>,
}

impl<'a> Selector<'a> {
    /// None where it has `matchExpressions`, or a kind that is no node: it selects nothing here.
    fn read(selector: &'a Value) -> Option<Self> {
        let group = selector["group"].as_str().unwrap_or(GATEWAY_GROUP);
        let labels = selector["matchLabels"].as_object().filter(|labels| labels.len() <= LABELS)?;
        let kind = ObjectKind::find(group, selector["kind"].as_str().unwrap_or_default())?;
        selector.get("matchExpressions").is_none().then_some(Self { kind, labels })
    }

    /// The selectors of a policy.
    pub(super) fn all(policy: &'a Value) -> impl Iterator<Item = Self> {
        let all = policy["spec"]["targetSelectors"].as_array().into_iter().flatten();
        all.take(SELECTORS).filter_map(Self::read)
    }

    pub(super) fn selects(&self, labels: &Map<String, Value>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// The namespace of an object; the default one where none is given.
pub(super) fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().filter(|text| !text.is_empty()).unwrap_or("default")
}
