//! The paths of all routes, and which of them go through which node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attach::RouteLinks;
use crate::node::NodeKey;
use crate::path::Path;

pub(super) type PathSet = BTreeSet<Arc<Path>>;

#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    of_route: BTreeMap<NodeKey, PathSet>,
    through: BTreeMap<NodeKey, PathSet>,
}

impl Paths {
    /// Stores the paths of a route. Returns those that appeared or vanished.
    pub fn replace(&mut self, route: &NodeKey, links: Option<&RouteLinks>) -> Vec<Arc<Path>> {
        let new: PathSet = links.map(|links| paths(route, links)).unwrap_or_default();
        let old = self.of_route.remove(route).unwrap_or_default();
        let removed: Vec<Arc<Path>> = old.difference(&new).cloned().collect();
        let added: Vec<Arc<Path>> = new.difference(&old).cloned().collect();
        for path in &removed {
            for node in path.nodes() {
                if let Some(paths) = self.through.get_mut(node) {
                    paths.remove(path);
                    if paths.is_empty() {
                        self.through.remove(node);
                    }
                }
            }
        }
        for path in &added {
            for node in path.nodes() {
                self.through.entry(node.clone()).or_default().insert(path.clone());
            }
        }
        let mut stored = old;
        stored.retain(|path| new.contains(path));
        stored.extend(added.iter().cloned());
        if !stored.is_empty() {
            self.of_route.insert(route.clone(), stored);
        }
        added.into_iter().chain(removed).collect()
    }

    pub fn contains(&self, path: &Path) -> bool {
        self.of_route.get(&path.route).is_some_and(|paths| paths.contains(path))
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Path>> {
        self.of_route.values().flatten()
    }

    pub fn of_route(&self, route: &NodeKey) -> impl Iterator<Item = &Arc<Path>> {
        self.of_route.get(route).into_iter().flatten()
    }

    pub fn count_through(&self, node: &NodeKey) -> usize {
        self.through.get(node).map_or(0, BTreeSet::len)
    }

    pub fn through(&self, node: &NodeKey) -> impl Iterator<Item = &Arc<Path>> {
        self.through.get(node).into_iter().flatten()
    }
}

/// The paths of a route.
pub(super) fn paths(route: &NodeKey, links: &RouteLinks) -> PathSet {
    let of_listener = |attached: &crate::attach::Attachment| {
        let rules = links.rules.iter().enumerate();
        let paths = rules.map(|(rule_index, rule)| {
            Arc::new(Path {
                gateway_class: attached.gateway_class.clone(),
                gateway: attached.gateway.clone(),
                listener_set: attached.listener_set.clone(),
                listener: attached.listener.clone(),
                route: route.clone(),
                rule: rule.clone(),
                rule_index,
            })
        });
        paths.collect::<Vec<_>>()
    };
    links.attached.iter().flat_map(of_listener).collect()
}
