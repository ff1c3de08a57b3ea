//! The objects of the topology, and who refers to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::node::{NodeKey, ObjectKind};
use crate::object::{Gateway, GatewayClass, Grant, ListenerSet, Namespace, Object, Route, Service};
use crate::refusal::RefusalReason;

/// The conflicted listeners of one Gateway and its ListenerSets.
pub(crate) type Conflicts = BTreeMap<NodeKey, RefusalReason>;

/// The identity of an object that decides about paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// An object that is a node.
    Node(NodeKey),
    /// A ReferenceGrant, by namespace and name.
    Grant(Arc<str>, Arc<str>),
    /// A namespace.
    Namespace(Arc<str>),
}

impl Object {
    /// The identity of the object.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::GatewayClass(class) => ObjectKey::Node(class.key.clone()),
            Self::Gateway(gateway) => ObjectKey::Node(gateway.key.clone()),
            Self::ListenerSet(set) => ObjectKey::Node(set.key.clone()),
            Self::Route(route) => ObjectKey::Node(route.key.clone()),
            Self::Service(service) => ObjectKey::Node(service.key.clone()),
            Self::Grant(grant) => ObjectKey::Grant(grant.namespace.clone(), grant.name.clone()),
            Self::Namespace(namespace) => ObjectKey::Namespace(namespace.name.clone()),
        }
    }
}

/// Who refers to a node, by that node.
#[derive(Clone, Debug, Default)]
struct Referents(BTreeMap<NodeKey, BTreeSet<NodeKey>>);

impl Referents {
    fn of(&self, node: &NodeKey) -> impl Iterator<Item = &NodeKey> {
        self.0.get(node).into_iter().flatten()
    }

    fn insert(&mut self, node: NodeKey, referent: &NodeKey) {
        self.0.entry(node).or_default().insert(referent.clone());
    }

    fn remove(&mut self, node: &NodeKey, referent: &NodeKey) {
        if let Some(referents) = self.0.get_mut(node) {
            referents.remove(referent);
            if referents.is_empty() {
                self.0.remove(node);
            }
        }
    }
}

/// The last decoded version of each object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    objects: BTreeMap<ObjectKey, Object>,
    gateways_of_class: Referents,
    sets_of_gateway: Referents,
    routes_of_parent: Referents,
    routes_of_service: Referents,
    /// By Gateway, where it has any.
    conflicts: BTreeMap<NodeKey, Conflicts>,
}

/// What a change of an object leads to.
pub(crate) struct Stored {
    /// The version of before.
    pub old: Option<Object>,
    /// The routes whose links can change.
    pub routes: BTreeSet<NodeKey>,
}

impl Store {
    /// Stores or removes an object; none where it does not differ from the stored one.
    pub fn replace(&mut self, key: &ObjectKey, new: Option<Object>) -> Option<Stored> {
        if self.objects.get(key) == new.as_ref() {
            return None;
        }
        let old = self.objects.remove(key);
        if let Some(old) = &old {
            self.refer(old, |referents, node, referent| referents.remove(&node, referent));
        }
        if let Some(new) = new {
            self.refer(&new, Referents::insert);
            self.objects.insert(key.clone(), new);
        }
        Some(Stored { old, routes: self.affected_routes(key) })
    }

    /// All objects.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.keys()
    }

    /// The Gateways whose listeners an object can bring into conflict.
    pub fn gateways_of(&self, key: &ObjectKey) -> BTreeSet<NodeKey> {
        let of_set = |set: &NodeKey| {
            let set = self.listener_set(set)?;
            set.spec.parent_ref.node(&set.key.namespace).map(|parent| parent.object())
        };
        match key {
            ObjectKey::Node(node) if node.kind == ObjectKind::Gateway => BTreeSet::from([node.clone()]),
            ObjectKey::Node(node) => of_set(node).into_iter().collect(),
            ObjectKey::Namespace(namespace) => self.sets_in(namespace).filter_map(of_set).collect(),
            ObjectKey::Grant(..) => BTreeSet::new(),
        }
    }

    /// The ListenerSets that name a Gateway.
    pub fn sets_of(&self, gateway: &NodeKey) -> impl Iterator<Item = &ListenerSet> {
        self.sets_of_gateway.of(gateway).filter_map(|set| self.listener_set(set))
    }

    /// The routes that name a Gateway or a ListenerSet.
    pub fn routes_of(&self, parent: &NodeKey) -> impl Iterator<Item = &NodeKey> {
        self.routes_of_parent.of(parent)
    }

    /// The conflicted listeners of a Gateway, where it has any.
    pub fn conflicts(&self, gateway: &NodeKey) -> Option<&Conflicts> {
        self.conflicts.get(gateway)
    }

    /// Keeps what was found about the listeners of a Gateway.
    pub fn set_conflicts(&mut self, gateway: NodeKey, found: Conflicts) {
        if found.is_empty() {
            self.conflicts.remove(&gateway);
        } else {
            self.conflicts.insert(gateway, found);
        }
    }

    /// Why a listener of a Gateway or of its ListenerSets carries no route at all.
    pub fn conflict(&self, gateway: &NodeKey, listener: &NodeKey) -> Option<RefusalReason> {
        self.conflicts.get(gateway)?.get(listener).copied()
    }

    /// Does the same for each reference of an object.
    fn refer(&mut self, object: &Object, act: impl Fn(&mut Referents, NodeKey, &NodeKey)) {
        match object {
            Object::Gateway(gateway) => {
                let class = NodeKey::new(ObjectKind::GatewayClass, "", &gateway.spec.gateway_class_name);
                act(&mut self.gateways_of_class, class, &gateway.key);
            }
            Object::ListenerSet(set) => {
                if let Some(parent) = set.spec.parent_ref.node(&set.key.namespace) {
                    act(&mut self.sets_of_gateway, parent.object(), &set.key);
                }
            }
            Object::Route(route) => {
                let parents = route.spec.parent_refs.iter();
                for parent in parents.filter_map(|parent| parent.node(&route.key.namespace)) {
                    act(&mut self.routes_of_parent, parent.object(), &route.key);
                }
                for backend in route.spec.rules.iter().flat_map(|rule| &rule.backend_refs) {
                    if let Some(service) = backend.service(&route.key.namespace) {
                        act(&mut self.routes_of_service, service, &route.key);
                    }
                }
            }
            Object::GatewayClass(_) | Object::Service(_) | Object::Grant(_) | Object::Namespace(_) => {}
        }
    }

    /// The routes whose links an object can change.
    ///
    /// All ways to them are references by name, so it does not matter which version is stored.
    fn affected_routes(&self, key: &ObjectKey) -> BTreeSet<NodeKey> {
        let under_gateway = move |gateway| {
            let sets = self.sets_of_gateway.of(gateway).flat_map(move |set| self.routes_of_parent.of(set));
            self.routes_of_parent.of(gateway).chain(sets)
        };
        match key {
            ObjectKey::Node(node) => match node.kind {
                ObjectKind::GatewayClass => {
                    self.gateways_of_class.of(node).flat_map(under_gateway).cloned().collect()
                }
                ObjectKind::Gateway => under_gateway(node).cloned().collect(),
                ObjectKind::ListenerSet | ObjectKind::XListenerSet => {
                    self.routes_of_parent.of(node).cloned().collect()
                }
                ObjectKind::Service => self.routes_of_service.of(node).cloned().collect(),
                ObjectKind::HttpRoute
                | ObjectKind::GrpcRoute
                | ObjectKind::TlsRoute
                | ObjectKind::TcpRoute
                | ObjectKind::UdpRoute => BTreeSet::from([node.clone()]),
            },
            ObjectKey::Grant(namespace, _) => {
                let first = NodeKey::new(ObjectKind::Service, namespace, "");
                let services = self.routes_of_service.0.range((Bound::Included(first), Bound::Unbounded));
                let services = services.take_while(|(service, _)| service.namespace == *namespace);
                services.flat_map(|(_, routes)| routes).cloned().collect()
            }
            ObjectKey::Namespace(namespace) => {
                let routes = ObjectKind::ALL.into_iter().filter(|kind| kind.is_route());
                let routes = routes.flat_map(|kind| self.in_namespace(kind, namespace)).cloned();
                let sets = self.sets_in(namespace);
                routes.chain(sets.flat_map(|set| self.routes_of_parent.of(set)).cloned()).collect()
            }
        }
    }

    fn sets_in(&self, namespace: &str) -> impl Iterator<Item = &NodeKey> {
        let sets = ObjectKind::ALL.into_iter().filter(|kind| kind.is_listener_set());
        sets.flat_map(move |kind| self.in_namespace(kind, namespace))
    }

    fn in_namespace(&self, kind: ObjectKind, namespace: &str) -> impl Iterator<Item = &NodeKey> {
        let first = NodeKey::new(kind, namespace, "");
        let namespace = first.namespace.clone();
        let nodes = self.objects.range((Bound::Included(ObjectKey::Node(first)), Bound::Unbounded));
        let nodes = nodes.map_while(|(key, _)| match key {
            ObjectKey::Node(node) => Some(node),
            ObjectKey::Grant(..) | ObjectKey::Namespace(_) => None,
        });
        nodes.take_while(move |node| node.kind == kind && node.namespace == namespace)
    }

    /// Whether a node exists.
    pub fn has(&self, node: &NodeKey) -> bool {
        let object = self.objects.get(&ObjectKey::Node(node.object()));
        let Some(section) = &node.section else { return object.is_some() };
        let is_it = |name: &str| *name == **section;
        match object {
            Some(Object::Gateway(own)) => own.spec.listeners.iter().any(|own| is_it(&own.name)),
            Some(Object::ListenerSet(set)) => set.spec.listeners.iter().any(|own| is_it(&own.name)),
            Some(Object::Route(route)) => route.is_named(section) || route.has_position(section),
            Some(Object::Service(service)) => service.spec.ports.iter().any(|port| is_it(&port.section())),
            Some(Object::GatewayClass(_) | Object::Grant(_) | Object::Namespace(_)) | None => false,
        }
    }

    /// Whether a node is a rule without a name, by its position.
    pub fn is_position(&self, node: &NodeKey) -> bool {
        let route = self.route(&node.object()).zip(node.section.as_deref());
        route.is_some_and(|(route, section)| !route.is_named(section) && route.has_position(section))
    }

    pub fn class(&self, name: &str) -> Option<&GatewayClass> {
        match self.objects.get(&ObjectKey::Node(NodeKey::new(ObjectKind::GatewayClass, "", name)))? {
            Object::GatewayClass(class) => Some(class),
            _ => None,
        }
    }

    /// The Gateways that name a class.
    pub fn gateways_of_class(&self, class: &NodeKey) -> impl Iterator<Item = &Gateway> {
        self.gateways_of_class.of(class).filter_map(|gateway| self.gateway(gateway))
    }

    pub fn gateway(&self, key: &NodeKey) -> Option<&Gateway> {
        match self.objects.get(&ObjectKey::Node(key.clone()))? {
            Object::Gateway(gateway) => Some(gateway),
            _ => None,
        }
    }

    pub fn listener_set(&self, key: &NodeKey) -> Option<&ListenerSet> {
        match self.objects.get(&ObjectKey::Node(key.clone()))? {
            Object::ListenerSet(set) => Some(set),
            _ => None,
        }
    }

    pub fn route(&self, key: &NodeKey) -> Option<&Route> {
        match self.objects.get(&ObjectKey::Node(key.clone()))? {
            Object::Route(route) => Some(route),
            _ => None,
        }
    }

    pub fn service(&self, key: &NodeKey) -> Option<&Service> {
        match self.objects.get(&ObjectKey::Node(key.clone()))? {
            Object::Service(service) => Some(service),
            _ => None,
        }
    }

    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        match self.objects.get(&ObjectKey::Namespace(name.into()))? {
            Object::Namespace(namespace) => Some(namespace),
            _ => None,
        }
    }

    /// The ReferenceGrants of a namespace.
    pub fn grants(&self, namespace: &str) -> impl Iterator<Item = &Grant> {
        let first = ObjectKey::Grant(namespace.into(), "".into());
        let grants = self.objects.range((Bound::Included(first), Bound::Unbounded));
        let grants = grants.map_while(|(_, object)| match object {
            Object::Grant(grant) => Some(grant),
            _ => None,
        });
        grants.take_while(move |grant| *grant.namespace == *namespace)
    }
}
