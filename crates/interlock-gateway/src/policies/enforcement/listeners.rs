//! Listeners that Envoy Gateway does not carry out, as their certificate is missing, say.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{NodeKey, ObjectKind};
use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use crate::policies::labels::{namespace_of, node_of};

/// By Gateway or ListenerSet the names of such listeners, as the status of the object last had them, also where that is
/// of an earlier generation: taken for ready at each edit, a listener would move the limits of its port and back.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadyListeners(BTreeMap<NodeKey, BTreeSet<String>>);

impl UnreadyListeners {
    /// Whether Envoy Gateway leaves a listener out.
    pub(super) fn has(&self, listener: &NodeKey) -> bool {
        let of_object = self.0.get(&listener.object());
        of_object.is_some_and(|own| listener.section.as_deref().is_some_and(|name| own.contains(name)))
    }

    /// Takes in a status; the Gateway of the listeners, where that is news.
    pub(super) fn take(&mut self, object: &Value) -> Option<NodeKey> {
        let node = node_of(object)?;
        let gateway = match node.kind {
            ObjectKind::Gateway => node.clone(),
            ObjectKind::ListenerSet | ObjectKind::XListenerSet => gateway_of(object)?,
            _ => return None,
        };
        let listeners = object["status"]["listeners"].as_array().into_iter().flatten();
        let unready: BTreeSet<String> = listeners
            .filter(|own| is_unready(own))
            .filter_map(|own| own["name"].as_str().map(str::to_owned))
            .collect();
        let before = match unready.is_empty() {
            true => self.0.remove(&node).unwrap_or_default(),
            false => self.0.insert(node, unready.clone()).unwrap_or_default(),
        };
        (before != unready).then_some(gateway)
    }

    /// Forgets the objects of a kind.
    pub(super) fn forget(&mut self, kind: &str) {
        self.0.retain(|node, _| node.kind.name() != kind);
    }

    /// Forgets an object.
    pub(super) fn drop(&mut self, kind: &str, NamespacedName { namespace, name }: &NamespacedName) {
        let kind = ObjectKind::ALL.into_iter().find(|own| own.name() == kind);
        if let Some(kind) = kind {
            self.0.remove(&NodeKey::new(kind, namespace, name));
        }
    }
}

/// The Gateway that a ListenerSet joins.
fn gateway_of(object: &Value) -> Option<NodeKey> {
    let parent = &object["spec"]["parentRef"];
    let namespace = parent["namespace"].as_str().unwrap_or_else(|| namespace_of(object));
    Some(NodeKey::new(ObjectKind::Gateway, namespace, parent["name"].as_str()?))
}

/// Envoy Gateway leaves out a listener that is not programmed (`ListenerContext.IsReady`).
fn is_unready(listener: &Value) -> bool {
    let mut conditions = listener["conditions"].as_array().into_iter().flatten();
    conditions.any(|own| own["type"] == "Programmed" && own["status"] == "False")
}
