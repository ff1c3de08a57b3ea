//! What the backends of a rule come to: Service, port, and the grant for another namespace.

use crate::node::NodeKey;
use crate::object::{BackendRef, Grant, Route};
use crate::store::Store;

/// A backend of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendLink {
    /// The rule.
    pub rule: NodeKey,
    /// The Service, or its port where the reference names one; none for another kind.
    pub node: Option<NodeKey>,
    /// Whether the rule may send requests to it.
    pub state: BackendState,
}

/// Whether a rule may send requests to a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendState {
    /// The Service has the port.
    Resolved,
    /// No ReferenceGrant admits the reference into another namespace.
    NotPermitted,
    /// The Service is absent.
    ServiceNotFound,
    /// The Service has no such port.
    PortNotFound,
    /// The backend is not a Service; other controllers know it.
    UnknownKind,
}

pub(super) fn backends(store: &Store, route: &Route, rules: &[NodeKey]) -> Vec<BackendLink> {
    let of_rule = |(rule, key): (&crate::object::RouteRule, &NodeKey)| -> Vec<BackendLink> {
        rule.backend_refs.iter().map(|backend| link(store, route, key, backend)).collect()
    };
    route.spec.rules.iter().zip(rules).flat_map(of_rule).collect()
}

fn link(store: &Store, route: &Route, rule: &NodeKey, backend: &BackendRef) -> BackendLink {
    let link = |node, state| BackendLink { rule: rule.clone(), node, state };
    let Some(node) = backend.service(&route.key.namespace) else {
        return link(None, BackendState::UnknownKind);
    };
    if node.namespace != route.key.namespace
        && !store.grants(&node.namespace).any(|grant| permits(grant, &route.key, &node))
    {
        return link(Some(node), BackendState::NotPermitted);
    }
    let Some(service) = store.service(&node) else {
        return link(Some(node), BackendState::ServiceNotFound);
    };
    let Some(number) = backend.port else { return link(Some(node), BackendState::Resolved) };
    match service.spec.ports.iter().find(|port| port.port == number) {
        Some(port) => link(Some(node.with_section(&port.section())), BackendState::Resolved),
        None => link(Some(node), BackendState::PortNotFound),
    }
}

/// Whether a grant admits a reference (Gateway API, `ReferenceGrant`). All parts are compared exactly.
fn permits(grant: &Grant, from: &NodeKey, to: &NodeKey) -> bool {
    let is_from = grant.spec.from.iter().any(|entry| {
        entry.group == from.kind.group()
            && entry.kind == from.kind.name()
            && entry.namespace == *from.namespace
    });
    let is_to = grant.spec.to.iter().any(|entry| {
        let name = entry.name.as_deref().filter(|name| !name.is_empty());
        entry.group == to.kind.group()
            && entry.kind == to.kind.name()
            && name.is_none_or(|name| *name == *to.name)
    });
    is_from && is_to
}
