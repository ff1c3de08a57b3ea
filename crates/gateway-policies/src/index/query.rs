//! What can be asked of an index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Index, OutputKey, Subject, direct_key, inherited_key};
use crate::attach::{self, ListenerOf, RouteLinks};
use crate::effective::EffectivePolicy;
use crate::kind::{PolicyClass, PolicyKind};
use crate::node::NodeKey;
use crate::path::Path;
use crate::policy::{Policy, PolicyId, Violation};
use crate::state::PolicyState;
use crate::store::ObjectKey;

impl Index {
    /// All objects that decide about paths.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectKey> {
        self.store.keys()
    }

    /// All paths, by route.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<Path>> {
        self.paths.all()
    }

    /// The paths of a route.
    pub fn paths_of(&self, route: &NodeKey) -> impl Iterator<Item = &Arc<Path>> {
        self.paths.of_route(route)
    }

    /// The paths through a node.
    pub fn paths_through(&self, node: &NodeKey) -> impl Iterator<Item = &Arc<Path>> {
        self.paths.through(node)
    }

    /// What each route is linked to, and which parents and listeners refuse it.
    pub fn routes(&self) -> impl Iterator<Item = (&NodeKey, &RouteLinks)> {
        self.links.iter()
    }

    /// What a route is linked to; none where the route is absent.
    pub fn links(&self, route: &NodeKey) -> Option<&RouteLinks> {
        self.links.get(route)
    }

    /// The listeners of a Gateway and of the ListenerSets that name it.
    pub fn listeners(&self, gateway: &NodeKey) -> Vec<ListenerOf<'_>> {
        attach::listeners_of(&self.store, gateway)
    }

    /// Whether a listener of a Gateway takes routes of a namespace.
    pub fn admits(&self, gateway: &NodeKey, namespace: &str) -> bool {
        attach::admits(&self.store, gateway, namespace)
    }

    /// Whether this listener of a Gateway does.
    pub fn takes(&self, listener: &ListenerOf<'_>, namespace: &str) -> bool {
        attach::takes(&self.store, listener, namespace)
    }

    /// `controllerName` of the class of a Gateway, where both are there.
    pub fn controller_of(&self, gateway: &NodeKey) -> Option<&str> {
        Some(&self.store.class(self.class_of(gateway)?)?.controller_name)
    }

    /// The name of the class of a Gateway, which may not exist; none where the Gateway does not.
    pub fn class_of(&self, gateway: &NodeKey) -> Option<&str> {
        Some(&self.store.gateway(gateway)?.spec.gateway_class_name)
    }

    /// The Gateways of a class: the oldest first, then by namespace and name.
    pub fn gateways_of(&self, class: &NodeKey) -> Vec<&NodeKey> {
        let mut gateways: Vec<_> = self.store.gateways_of_class(class).collect();
        gateways.sort_by_key(|own| (own.created.is_none(), own.created, &own.key));
        gateways.into_iter().map(|own| &own.key).collect()
    }

    /// The effective policy of an inherited kind on a path; none where no policy is attached to the path.
    pub fn effective(&self, kind: &str, path: &Arc<Path>) -> Option<&Arc<EffectivePolicy>> {
        self.outputs.get(&inherited_key(&kind.into(), path)).map(|output| &output.effective)
    }

    /// The policy of a direct kind that acts on a target.
    pub fn direct(&self, kind: &str, target: &NodeKey) -> Option<&EffectivePolicy> {
        self.outputs.get(&direct_key(&kind.into(), target)).map(|output| output.effective.as_ref())
    }

    /// All outputs.
    pub fn outputs(&self) -> impl Iterator<Item = (&OutputKey, &EffectivePolicy)> {
        self.outputs.iter().map(|(key, output)| (key, output.effective.as_ref()))
    }

    /// What an output's kind renders; none where the output is absent.
    pub fn render(&self, key: &OutputKey) -> Option<Result<Value, Violation>> {
        let effective = &self.outputs.get(key)?.effective;
        Some(self.kinds.get(&key.kind)?.render(&key.scope, effective))
    }

    /// A policy; where its newest version is invalid, the last valid one.
    pub fn policy(&self, id: &PolicyId) -> Option<&Policy> {
        self.policies.get(id)
    }

    /// All policies.
    pub fn policies(&self) -> impl Iterator<Item = &Policy> {
        self.policies.all()
    }

    /// What a policy came to.
    pub fn state(&self, id: &PolicyId) -> Option<&PolicyState> {
        self.states.get(id).map(AsRef::as_ref)
    }

    /// The objects whose newest version cannot be decoded, with the cause.
    pub fn faults(&self) -> &BTreeMap<Subject, String> {
        &self.faults
    }

    /// A kind of policies by its name.
    pub fn kind(&self, name: &str) -> Option<&Arc<dyn PolicyKind>> {
        self.kinds.get(name)
    }

    /// The policies with at least one rule that acts on a path through a node, by kind.
    ///
    /// It is what the condition `<domain>/<Kind>Affected` of a target lists (GEP-713). A route has a list for
    /// each of its Gateways: `gateway` leaves the other paths out.
    pub fn affecting(
        &self,
        node: &NodeKey,
        gateway: Option<&NodeKey>,
    ) -> BTreeMap<Arc<str>, BTreeSet<PolicyId>> {
        let mut found: BTreeMap<Arc<str>, BTreeSet<PolicyId>> = BTreeMap::new();
        let paths = self.paths.through(node).filter(|path| gateway.is_none_or(|own| path.gateway == *own));
        let inherited: Vec<&Arc<str>> = self
            .kinds
            .iter()
            .filter(|(_, kind)| kind.class() == PolicyClass::Inherited)
            .map(|(name, _)| name)
            .collect();
        let mut add = |kind: &Arc<str>, effective: &EffectivePolicy| {
            found.entry(kind.clone()).or_default().extend(effective.sources().into_iter().cloned());
        };
        for path in paths {
            for kind in &inherited {
                if let Some(effective) = self.effective(kind, path) {
                    add(kind, effective);
                }
            }
        }
        for (kind, _) in self.kinds.iter().filter(|(_, kind)| kind.class() == PolicyClass::Direct) {
            if let Some(effective) = self.direct(kind, node) {
                add(kind, effective);
            }
        }
        found.retain(|_, policies| !policies.is_empty());
        found
    }
}
