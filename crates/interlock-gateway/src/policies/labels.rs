//! The labels of the objects that a policy can select as its targets, and its selectors.

use std::collections::BTreeMap;

use gateway_policies::{GATEWAY_GROUP, LabelSelector, NodeKey, ObjectKind};
use serde_json::Value;

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

/// Selectors of one policy that are followed; each of them looks at every object of its kind and namespace.
pub(super) const SELECTORS: usize = 64;
/// Requirements of one selector; one with more selects nothing here.
const REQUIREMENTS: usize = 64;

/// A selector of Envoy Gateway: objects of a kind in the policy's namespace, by labels. One without labels selects all
/// of the kind.
pub(super) struct Selector {
    pub(super) kind: ObjectKind,
    requirements: LabelSelector,
}

impl Selector {
    /// None where it does not decode, or is of a kind that is no node: it selects nothing here.
    fn read(selector: &Value) -> Option<Self> {
        let requirements = requirements(selector)?;
        let count = requirements.match_labels.len() + requirements.match_expressions.len();
        (count <= REQUIREMENTS).then_some(Self { kind: node_kind(selector)?, requirements })
    }

    /// The selectors of a policy.
    pub(super) fn all(policy: &Value) -> impl Iterator<Item = Self> {
        let all = policy["spec"]["targetSelectors"].as_array().into_iter().flatten();
        all.take(SELECTORS).filter_map(Self::read)
    }

    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.matches(labels)
    }
}

/// The namespace of an object; the default one where none is given.
pub(super) fn namespace_of(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().filter(|text| !text.is_empty()).unwrap_or("default")
}

/// The kind of a target, where paths go through it.
pub(super) fn node_kind(reference: &Value) -> Option<ObjectKind> {
    let group = reference["group"].as_str().unwrap_or(GATEWAY_GROUP);
    ObjectKind::find(group, reference["kind"].as_str()?)
}

/// `matchLabels` and `matchExpressions`; none where they do not decode.
fn requirements(selector: &Value) -> Option<LabelSelector> {
    let fields = ["matchLabels", "matchExpressions"];
    let fields = fields.into_iter().filter(|field| !selector[*field].is_null());
    let fields = fields.map(|field| (field.to_owned(), selector[field].clone()));
    serde_json::from_value(Value::Object(fields.collect())).ok()
}
