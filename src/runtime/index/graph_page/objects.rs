//! The objects around an Instance, and their edges.

use std::collections::BTreeMap;

use interlock_core::api::display::display;
use interlock_core::kinds;
use interlock_core::kinds::fact;
use interlock_core::topology::schema::EventTriggers;
use interlock_core::topology::snapshot::GraphSnapshot;
use interlock_core::topology::{GroupKind, NodeId};
use serde::Serialize;

use super::list::NAME_LIMIT;

/// Maximum number of shown objects of one Instance.
const NODES: usize = 300;

/// The objects that an Instance depends on and made, and what they depend on.
#[derive(Debug, Default, Serialize)]
pub(super) struct RelatedObjects {
    nodes: Vec<Node>,
    /// Parent and child, by their indexes in `nodes`.
    edges: Vec<(usize, usize)>,
    /// Objects that are not in `nodes`.
    more: usize,
}

#[derive(Debug, Serialize)]
struct Node {
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    is: &'static str,
    /// Absent for kinds without a health.
    #[serde(skip_serializing_if = "Option::is_none")]
    healthy: Option<bool>,
    /// Whether it is the Instance itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    itself: bool,
}

impl RelatedObjects {
    /// Of a snapshot around an object.
    pub(super) fn of(snapshot: &GraphSnapshot, itself: &NodeId) -> Self {
        let shown = || snapshot.nodes.iter().filter(|(id, _)| concerns_somebody(&id.kind));
        let places: BTreeMap<&NodeId, usize> = shown().map(|(id, _)| id).take(NODES).zip(0..).collect();
        let place = |id| places.get(id).copied();
        let nodes = shown().take(NODES).map(|(id, node)| {
            let section = if id.section.is_empty() { String::new() } else { format!("#{}", id.section) };
            Node {
                kind: display(&id.kind.kind, NAME_LIMIT),
                namespace: id.namespace.to_string(),
                name: display(&format!("{}{section}", id.name), NAME_LIMIT),
                is: node.is.as_str(),
                healthy: tells_health(&id.kind).then(|| node.facts.contains_key(fact::HEALTHY)),
                itself: id == itself,
            }
        });
        let edges = snapshot.edges.iter().filter_map(|(from, to, _)| Some((place(from)?, place(to)?)));
        Self { nodes: nodes.collect(), edges: edges.collect(), more: shown().count() - places.len() }
    }
}

/// Whether a controller acts on objects of a kind; the process does not look at others.
fn concerns_somebody(kind: &GroupKind) -> bool {
    let declared = kinds::schemas(crate::kinds::all()).into_iter().find(|declared| *kind == declared.name);
    declared.is_none_or(|declared| matches!(declared.events.create, EventTriggers::Roots(_)))
}

/// Whether a kind has a health; undeclared kinds do.
fn tells_health(kind: &GroupKind) -> bool {
    let declared = kinds::schemas(crate::kinds::all()).into_iter().find(|declared| *kind == declared.name);
    declared.is_none_or(|declared| declared.facts.iter().any(|fact| fact.name == fact::HEALTHY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_do_not_tell_their_health_are_not_called_unhealthy() {
        assert!(tells_health(&GroupKind::new("apps", "Deployment")));
        assert!(!tells_health(&GroupKind::new("", "Namespace")));
    }

    #[test]
    fn kinds_that_concern_nobody_are_not_drawn() {
        assert!(concerns_somebody(&GroupKind::new("example.dev", "Widget")));
        assert!(!concerns_somebody(&GroupKind::new("kudo.dev", "Operator")));
    }
}
