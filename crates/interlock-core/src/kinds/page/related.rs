//! The objects around an Instance, and their edges.

use std::collections::BTreeMap;

use serde::Serialize;

use super::NAME_LIMIT;
use crate::api::display::display;
use crate::kinds::fact;
use crate::topology::schema::{DeclaredKind, EventTriggers};
use crate::topology::snapshot::GraphSnapshot;
use crate::topology::{GroupKind, NodeId};

/// Maximum number of shown objects of one Instance.
const NODES: usize = 300;

/// The objects that an Instance depends on and made, and what they depend on.
#[derive(Debug, Default, Serialize)]
pub struct RelatedObjects {
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
    pub fn of(schemas: &[&DeclaredKind], snapshot: &GraphSnapshot, itself: &NodeId) -> Self {
        let shown = || snapshot.nodes.iter().filter(|(id, _)| concerns_somebody(schemas, &id.kind));
        let places: BTreeMap<&NodeId, usize> = shown().map(|(id, _)| id).take(NODES).zip(0..).collect();
        let place = |id| places.get(id).copied();
        let nodes = shown().take(NODES).map(|(id, node)| {
            let section = if id.section.is_empty() { String::new() } else { format!("#{}", id.section) };
            Node {
                kind: display(&id.kind.kind, NAME_LIMIT),
                namespace: id.namespace.to_string(),
                name: display(&format!("{}{section}", id.name), NAME_LIMIT),
                is: node.is.as_str(),
                healthy: tells_health(schemas, &id.kind).then(|| node.facts.contains_key(fact::HEALTHY)),
                itself: id == itself,
            }
        });
        let edges = snapshot.edges.iter().filter_map(|(from, to, _)| Some((place(from)?, place(to)?)));
        Self { nodes: nodes.collect(), edges: edges.collect(), more: shown().count() - places.len() }
    }
}

/// Whether a controller acts on objects of a kind; the process does not look at others.
fn concerns_somebody(schemas: &[&DeclaredKind], kind: &GroupKind) -> bool {
    let declared = schemas.iter().find(|declared| *kind == declared.name);
    declared.is_none_or(|declared| matches!(declared.events.create, EventTriggers::Roots(_)))
}

/// Whether a kind has a health; undeclared kinds do.
fn tells_health(schemas: &[&DeclaredKind], kind: &GroupKind) -> bool {
    let declared = schemas.iter().find(|declared| *kind == declared.name);
    declared.is_none_or(|declared| declared.facts.iter().any(|fact| fact.name == fact::HEALTHY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{KINDS, list};
    use crate::topology::KindName;
    use crate::topology::schema::{EventRow, EventScope};

    #[test]
    fn kinds_that_do_not_tell_their_health_are_not_called_unhealthy() {
        let schemas = list::schemas(KINDS);
        assert!(tells_health(&schemas, &GroupKind::new("apps", "Deployment")));
        assert!(!tells_health(&schemas, &GroupKind::new("", "Namespace")));
    }

    #[test]
    fn kinds_that_concern_nobody_are_not_drawn() {
        let nobody = EventTriggers::Nobody("nothing of it is carried out");
        let operator = DeclaredKind {
            name: KindName::new("kudo.dev", "Operator"),
            about: "",
            facts: &[],
            links: &[],
            sections: None,
            events: EventRow { create: nobody, update: EventScope::Nobody("as above"), delete: nobody },
        };
        assert!(concerns_somebody(&[&operator], &GroupKind::new("example.dev", "Widget")));
        assert!(!concerns_somebody(&[&operator], &GroupKind::new("kudo.dev", "Operator")));
    }
}
