//! Which listener carries which route, which are refused and why, and what the rules' backends come to.
//!
//! Input: a route and the stored objects. Output: [`RouteLinks`].

mod backend;
mod conflict;
mod hostname;
mod listener;
mod namespace;

use std::collections::{BTreeMap, BTreeSet};

use crate::limits;
use crate::node::{NodeKey, ObjectKind};
use crate::object::{Gateway, Listener, ListenerSet, NamespacesFrom, ParentRef, Route};
use crate::refusal::{Refusal, RefusalReason};
use crate::store::Store;

pub use backend::{BackendLink, BackendState};
pub(crate) use conflict::store_object;
pub use hostname::intersection;

/// A listener that carries a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The class of the Gateway.
    pub gateway_class: NodeKey,
    /// The Gateway.
    pub gateway: NodeKey,
    /// The ListenerSet that declares the listener, where the Gateway does not.
    pub listener_set: Option<NodeKey>,
    /// The listener.
    pub listener: NodeKey,
    /// The hostnames that the listener and the route have in common; `*` stands for all.
    ///
    /// Empty for routes that have no hostnames (TCPRoute, UDPRoute).
    pub hostnames: Vec<String>,
}

/// What a route is linked to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteLinks {
    /// The listeners that carry the route, by key.
    pub attached: Vec<Attachment>,
    /// The pairs that are left out, each once. Another reference of the route can still attach the listener.
    pub refused: Vec<Refusal>,
    /// The nodes of the rules, by position.
    pub rules: Vec<NodeKey>,
    /// The backends, in the order of the rules.
    pub backends: Vec<BackendLink>,
    /// The positions of the rules whose requests the proxy redirects.
    pub redirects: BTreeSet<usize>,
}

/// A listener of a Gateway or of one of its ListenerSets.
#[derive(Clone, Debug)]
pub struct ListenerOf<'a> {
    /// Its node.
    pub key: NodeKey,
    /// Its fields.
    pub listener: &'a Listener,
    /// Why it carries no route, whatever the route.
    pub refusal: Option<RefusalReason>,
}

/// The listeners that one parent reference names.
struct Parent<'a> {
    gateway_class: NodeKey,
    gateway: &'a Gateway,
    set: Option<&'a ListenerSet>,
    listeners: Vec<(NodeKey, &'a Listener)>,
}

/// Whether a listener of a Gateway takes routes of a namespace.
pub(crate) fn admits(store: &Store, gateway: &NodeKey, namespace: &str) -> bool {
    listeners_of(store, gateway).iter().any(|own| takes(store, own, namespace))
}

/// Whether a listener takes routes of a namespace.
pub(crate) fn takes(store: &Store, own: &ListenerOf<'_>, namespace: &str) -> bool {
    let rule = &own.listener.allowed_routes.namespaces;
    own.refusal != Some(RefusalReason::ListenerSetNotAllowed)
        && namespace::admits(store, rule, NamespacesFrom::Same, &own.key.namespace, namespace).is_ok()
}

/// Links a route. `controllers` are the `controllerName`s whose classes count; none stands for all.
pub(crate) fn links(store: &Store, controllers: Option<&BTreeSet<String>>, route: &Route) -> RouteLinks {
    let mut attached: BTreeMap<NodeKey, Attachment> = BTreeMap::new();
    let mut refused: BTreeSet<Refusal> = BTreeSet::new();
    let mut refuse = |parent: String, reason| refused.insert(Refusal { parent, reason });
    for parent_ref in &route.spec.parent_refs {
        let parent = match parent(store, controllers, route, parent_ref) {
            Ok(parent) => parent,
            Err(reason) => {
                refuse(parent_name(route, parent_ref), reason);
                continue;
            }
        };
        for (key, listener) in parent.listeners {
            if attached.contains_key(&key) {
                continue;
            }
            let object = parent.set.map_or(&parent.gateway.key, |set| &set.key);
            let conflict = store.conflict(&parent.gateway.key, &key).map_or(Ok(()), Err);
            match conflict.and_then(|()| listener::admits(store, object, listener, route)) {
                Ok(hostnames) => {
                    let attachment = Attachment {
                        gateway_class: parent.gateway_class.clone(),
                        gateway: parent.gateway.key.clone(),
                        listener_set: parent.set.map(|set| set.key.clone()),
                        listener: key.clone(),
                        hostnames,
                    };
                    attached.insert(key, attachment);
                }
                Err(reason) => {
                    refuse(key.to_string(), reason);
                }
            }
        }
    }
    let rules = route.rule_keys();
    let admitted = limits::PATHS_PER_ROUTE / rules.len().max(1);
    for key in attached.keys().skip(admitted) {
        refused.insert(Refusal { parent: key.to_string(), reason: RefusalReason::OverBudget });
    }
    let attached: Vec<Attachment> = attached.into_values().take(admitted).collect();
    let refused = refused.into_iter().collect();
    let redirects = route.spec.rules.iter().enumerate().filter(|(_, rule)| rule.is_redirect());
    RouteLinks {
        attached,
        refused,
        backends: backend::backends(store, route, &rules),
        rules,
        redirects: redirects.map(|(position, _)| position).collect(),
    }
}

/// The listeners of a Gateway, then those of the ListenerSets that name it, each with why it carries no route at all.
pub(crate) fn listeners_of<'a>(store: &'a Store, gateway: &NodeKey) -> Vec<ListenerOf<'a>> {
    let mut sets: Vec<&ListenerSet> = store.sets_of(gateway).collect();
    // The older one first, as in conflicts (GEP-1713).
    sets.sort_by_key(|set| (set.created.is_none(), set.created, set.key.clone()));
    let sets = sets.into_iter().map(|set| (&set.key, &set.spec.listeners, gateway_of(store, set).err()));
    let own = store.gateway(gateway).map(|own| (&own.key, &own.spec.listeners, None));
    let listeners = own.into_iter().chain(sets).flat_map(|(object, declared, refusal)| {
        unique(declared).map(move |listener| {
            let key = object.with_section(&listener.name);
            let refusal = refusal.or_else(|| store.conflict(gateway, &key));
            ListenerOf { key, listener, refusal }
        })
    });
    listeners.collect()
}

/// The parent as its reference names it.
fn parent_name(route: &Route, parent: &ParentRef) -> String {
    parent.node(&route.key.namespace).map_or_else(
        || {
            let kind = parent.kind.as_deref().unwrap_or("Gateway");
            let namespace = parent.namespace.as_deref().unwrap_or(&route.key.namespace);
            format!("{kind}/{namespace}/{}", parent.name)
        },
        |node| node.to_string(),
    )
}

fn parent<'a>(
    store: &'a Store,
    controllers: Option<&BTreeSet<String>>,
    route: &Route,
    reference: &ParentRef,
) -> Result<Parent<'a>, RefusalReason> {
    let node = reference.node(&route.key.namespace).ok_or(RefusalReason::ParentKindUnsupported)?;
    let object = node.object();
    let (gateway, set) = match node.kind {
        ObjectKind::Gateway => (store.gateway(&object).ok_or(RefusalReason::ParentNotFound)?, None),
        ObjectKind::ListenerSet | ObjectKind::XListenerSet => {
            let set = store.listener_set(&object).ok_or(RefusalReason::ParentNotFound)?;
            (gateway_of(store, set)?, Some(set))
        }
        _ => return Err(RefusalReason::ParentKindUnsupported),
    };
    let class = store.class(&gateway.spec.gateway_class_name).ok_or(RefusalReason::ClassNotFound)?;
    if controllers.is_some_and(|controllers| !controllers.contains(&class.controller_name)) {
        return Err(RefusalReason::ForeignController);
    }
    let declared = set.map_or(&gateway.spec.listeners, |set| &set.spec.listeners);
    let listeners = listeners(&object, declared, node.section.as_deref(), reference.port)?;
    Ok(Parent { gateway_class: class.key.clone(), gateway, set, listeners })
}

/// The Gateway of a ListenerSet, where it admits the set (GEP-1713, `allowedListeners`).
fn gateway_of<'a>(store: &'a Store, set: &ListenerSet) -> Result<&'a Gateway, RefusalReason> {
    let parent = set.spec.parent_ref.node(&set.key.namespace).map(|parent| parent.object());
    let parent = parent.filter(|parent| parent.kind == ObjectKind::Gateway);
    let parent = parent.ok_or(RefusalReason::ParentKindUnsupported)?;
    let gateway = store.gateway(&parent).ok_or(RefusalReason::ParentNotFound)?;
    let rule = &gateway.spec.allowed_listeners.namespaces;
    let (own, other) = (&gateway.key.namespace, &set.key.namespace);
    match namespace::admits(store, rule, NamespacesFrom::None, own, other) {
        Err(RefusalReason::NamespaceNotAllowed) => Err(RefusalReason::ListenerSetNotAllowed),
        Err(reason) => Err(reason),
        Ok(()) => Ok(gateway),
    }
}

/// The listeners of an object that count: of two with one name, which the definition refuses, the first.
fn unique(declared: &[Listener]) -> impl Iterator<Item = &Listener> {
    let mut names = BTreeSet::new();
    declared.iter().filter(move |listener| names.insert(listener.name.as_str()))
}

/// The listeners of a section and a port. A reference to a Gateway never reaches its ListenerSets (GEP-1713).
fn listeners<'a>(
    object: &NodeKey,
    declared: &'a [Listener],
    section: Option<&str>,
    port: Option<u16>,
) -> Result<Vec<(NodeKey, &'a Listener)>, RefusalReason> {
    let named: Vec<&Listener> =
        unique(declared).filter(|listener| section.is_none_or(|section| listener.name == section)).collect();
    if named.is_empty() {
        return Err(RefusalReason::SectionNotFound);
    }
    let on_port: Vec<(NodeKey, &Listener)> = named
        .into_iter()
        .filter(|listener| port.is_none_or(|port| listener.port == port))
        .map(|listener| (object.with_section(&listener.name), listener))
        .collect();
    if on_port.is_empty() { Err(RefusalReason::PortNotFound) } else { Ok(on_port) }
}
