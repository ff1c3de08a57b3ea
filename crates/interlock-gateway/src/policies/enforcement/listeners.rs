//! Listeners that Envoy Gateway does not carry out, as their certificate is missing, say.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{NodeKey, ObjectKind};
use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use crate::policies::labels::{namespace_of, node_of};

/// By Gateway or ListenerSet the names of such listeners, as the status of the object last had them, also where that is
/// of an earlier generation: taken for ready at each edit, a listener would move the limits of its port and back.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadyListeners {
    of_objects: BTreeMap<NodeKey, BTreeSet<String>>,
    /// Gateways that are not accepted and have no listener in their status: Envoy Gateway leaves them out. One that has
    /// some is carried, as its telemetry is wrong, say.
    refused: BTreeSet<NodeKey>,
}

impl UnreadyListeners {
    /// Whether Envoy Gateway leaves a listener out.
    pub(super) fn has(&self, listener: &NodeKey) -> bool {
        let of_object = self.of_objects.get(&listener.object());
        of_object.is_some_and(|own| listener.section.as_deref().is_some_and(|name| own.contains(name)))
    }

    /// Whether Envoy Gateway leaves a Gateway out.
    pub(super) fn is_refused(&self, gateway: &NodeKey) -> bool {
        self.refused.contains(gateway)
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
        let has_listeners = object["status"]["listeners"].as_array().is_some_and(|own| !own.is_empty());
        let is_refused =
            node == gateway && !has_listeners && condition_is(&object["status"], "Accepted", "False");
        let is_news = match is_refused {
            true => self.refused.insert(node.clone()),
            false => self.refused.remove(&node),
        };
        let before = match unready.is_empty() {
            true => self.of_objects.remove(&node).unwrap_or_default(),
            false => self.of_objects.insert(node, unready.clone()).unwrap_or_default(),
        };
        (is_news || before != unready).then_some(gateway)
    }

    /// Forgets the objects of a kind.
    pub(super) fn forget(&mut self, kind: &str) {
        self.of_objects.retain(|node, _| node.kind.name() != kind);
        self.refused.retain(|node| node.kind.name() != kind);
    }

    /// Forgets an object.
    pub(super) fn drop(&mut self, kind: &str, NamespacedName { namespace, name }: &NamespacedName) {
        let kind = ObjectKind::ALL.into_iter().find(|own| own.name() == kind);
        if let Some(kind) = kind {
            let node = NodeKey::new(kind, namespace, name);
            self.of_objects.remove(&node);
            self.refused.remove(&node);
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
    condition_is(listener, "Programmed", "False")
}

/// Whether a condition of an object, or of a listener, has a status.
pub(super) fn condition_is(of: &Value, kind: &str, status: &str) -> bool {
    let mut conditions = of["conditions"].as_array().into_iter().flatten();
    conditions.any(|own| own["type"] == kind && own["status"] == status)
}
