//! Paths: GatewayClass > Gateway (> ListenerSet) > Listener > Route > Rule.

use std::fmt;

use crate::node::NodeKey;

/// One way from a GatewayClass to a rule of a route. Inherited policies act on paths.
///
/// A policy of a Gateway acts on the listeners of its ListenerSets too (GEP-1713).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The class of the Gateway.
    pub gateway_class: NodeKey,
    /// The Gateway.
    pub gateway: NodeKey,
    /// The ListenerSet that declares the listener, where the Gateway does not.
    pub listener_set: Option<NodeKey>,
    /// The listener that carries the route.
    pub listener: NodeKey,
    /// The route.
    pub route: NodeKey,
    /// The rule.
    pub rule: NodeKey,
    /// The position of the rule in its route, by which proxies name it.
    pub rule_index: usize,
}

impl Path {
    /// The nodes from the root to the leaf.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeKey> {
        [&self.gateway_class, &self.gateway].into_iter().chain(self.listener_set.as_ref()).chain([
            &self.listener,
            &self.route,
            &self.rule,
        ])
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, node) in self.nodes().enumerate() {
            if position > 0 {
                f.write_str(" > ")?;
            }
            write!(f, "{node}")?;
        }
        Ok(())
    }
}
