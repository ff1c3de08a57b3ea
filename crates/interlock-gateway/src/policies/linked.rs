//! Gateways, routes and policies, and what a change of one affects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{Changes, Index, NodeKey, ObjectKey, ObjectKind, PolicyId, Scope, Subject};
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::inventory::Affected;
use interlock_core::topology::KindName;
use serde_json::Value;

use super::enforcement::{
    CARRIED_OUT, Concern, Enforcement, carried_out, guards_routes, is_auth, is_of_route,
};
use super::known::PolicyKinds;
use super::labels::{Labels, Selector, labels_of, namespace_of, node_of};
use super::survey::group_and_kind;
use crate::names::{GATEWAY, GATEWAY_CLASS, KUADRANT};

/// Policies with selectors in one namespace whose targets follow the labels; those of others stay as they were when the
/// policy was written.
const SELECTING: usize = 256;

/// Gateways, routes and policies, and what the policies select.
#[derive(Clone)]
pub(super) struct LinkedObjects {
    pub(super) index: Index,
    pub(super) kinds: PolicyKinds,
    labels: Labels,
    /// By namespace, with the object.
    selecting: BTreeMap<Arc<str>, BTreeMap<PolicyId, Value>>,
    pub(super) enforcement: Enforcement,
    /// AuthPolicies of routes.
    guarding: BTreeSet<PolicyId>,
    /// Takes the objects that a change affects, where controllers reconcile them.
    pub(super) affected: Option<Affected>,
}

impl Default for LinkedObjects {
    fn default() -> Self {
        let kinds = PolicyKinds::known();
        Self {
            index: Index::new(kinds.all()),
            kinds,
            labels: Labels::default(),
            selecting: BTreeMap::new(),
            enforcement: Enforcement::default(),
            guarding: BTreeSet::new(),
            affected: None,
        }
    }
}

impl LinkedObjects {
    /// The object that the index takes for a policy; none where no node is its target, or it is no policy.
    pub(super) fn as_indexed(&self, object: &Value) -> Option<Value> {
        let (group, kind) = group_and_kind(object);
        let name = self.kinds.name_of(group, kind)?;
        self.kinds.read(name, object, &self.labels)?.object
    }

    /// Whether an object is a policy.
    pub(super) fn is_policy(&self, object: &Value) -> bool {
        let (group, kind) = group_and_kind(object);
        self.kinds.name_of(group, kind).is_some()
    }

    /// Whether a policy names its targets by selectors.
    pub(super) fn is_selecting(&self, policy: &PolicyId) -> bool {
        self.selecting.get(&policy.namespace).is_some_and(|own| own.contains_key(policy))
    }

    pub(super) fn take(&mut self, object: &Value) {
        match self.enforcement.take(object) {
            Concern::Graph => {}
            concern => return self.wake(&concern),
        }
        if !self.is_policy(object) {
            if object["kind"] == "GatewayClass" && self.enforcement.take_class(object) {
                self.wake(&Concern::All);
            }
            let moved = self.enforcement.take_listeners(object);
            // What does not decode is listed as a fault, and its last version stays.
            let changes = self.index.observe(object).ok();
            // A status alone is nothing new.
            let is_new = changes.as_ref().is_some_and(|changes| changes.is_stored);
            self.changed(changes);
            match (object["kind"].as_str(), node_of(object)) {
                (Some(kind), node) if is_new => self.listeners_changed(kind, node),
                (Some("Gateway"), Some(gateway)) => self.wake(&Concern::Gateway(gateway)),
                _ => {}
            }
            if let Some(gateway) = moved {
                self.wake(&Concern::GatewayAndPolicies(gateway));
            }
            if let Some(node) = node_of(object) {
                self.label(node, Some(labels_of(object)));
            }
            return;
        }
        self.take_policy(object);
        let Ok(event) = self.index.deletion(object) else { return };
        if let Subject::Policy(id) = event.subject() {
            self.follow_selectors(id, object);
        }
    }

    fn take_policy(&mut self, object: &Value) {
        let changes = match self.as_indexed(object) {
            Some(object) => self.index.observe(&object),
            None => self.index.forget(object),
        };
        self.changed(changes.ok());
        // Its status may have been edited.
        let kind = object["kind"].as_str().and_then(carried_out);
        if let (Some(affected), Some(kind)) = (&self.affected, kind) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            affected(KindName::new(KUADRANT, kind), NamespacedName::new(namespace_of(object), name));
        }
    }

    fn follow_selectors(&mut self, id: PolicyId, object: &Value) {
        let of_namespace = self.selecting.entry(id.namespace.clone()).or_default();
        let is_selecting = Selector::all(object).next().is_some();
        let is_new = !of_namespace.contains_key(&id);
        if !is_selecting {
            of_namespace.remove(&id);
        } else if !is_new || of_namespace.len() < SELECTING {
            of_namespace.insert(id.clone(), object.clone());
        }
        if of_namespace.is_empty() {
            self.selecting.remove(&id.namespace);
        }
    }

    /// Takes in labels, and links the policies anew that a selector links or unlinks by them.
    fn label(&mut self, node: NodeKey, labels: Option<BTreeMap<String, String>>) {
        let old = self.labels.replace(node.clone(), labels.clone());
        if old == labels {
            return;
        }
        let policies = self.selecting.get(&node.namespace).into_iter().flatten().map(|(_, policy)| policy);
        let differs = |policy: &&Value| {
            let mut selectors = Selector::all(policy).filter(|selector| selector.kind == node.kind);
            let is = |labels: &Option<BTreeMap<String, String>>, selector: &Selector| {
                labels.as_ref().is_some_and(|labels| selector.selects(labels))
            };
            selectors.any(|selector| is(&old, &selector) != is(&labels, &selector))
        };
        let affected: Vec<Value> = policies.filter(differs).cloned().collect();
        affected.iter().for_each(|policy| self.take_policy(policy));
    }

    pub(super) fn drop(&mut self, kind: &str, name: &NamespacedName) {
        let concern = self.enforcement.drop(kind, name);
        self.wake(&concern);
        let Some(subject) = self.subject(kind, name) else { return };
        self.listeners_changed(kind, None);
        self.remove(subject);
    }

    /// Wakes what a change of the graph affects.
    fn changed(&mut self, changes: Option<Changes>) {
        let (Some(changes), Some(affected)) = (changes, &self.affected) else { return };
        let mut gateways: BTreeSet<NodeKey> = BTreeSet::new();
        for key in &changes.outputs {
            match &key.scope {
                Scope::Path(path) if CARRIED_OUT.contains(&&*key.kind) => {
                    gateways.insert(path.gateway.clone());
                }
                Scope::Target(target) if key.kind.as_ref() == CLIENT_TRAFFIC_POLICY => {
                    gateways.extend(self.index.paths_through(target).map(|path| path.gateway.clone()));
                }
                Scope::Path(_) | Scope::Target(_) => {}
            }
        }
        for id in changes.policies.iter().filter(|id| is_auth(&id.kind)) {
            gateways.extend(self.gateways_near(id));
            let is_guarding = self.index.policy(id).is_some_and(guards_routes);
            if is_guarding != self.guarding.contains(id) {
                gateways.extend(self.gateways().filter(|own| self.index.admits(own, &id.namespace)).cloned());
                match is_guarding {
                    true => self.guarding.insert(id.clone()),
                    false => self.guarding.remove(id),
                };
            }
        }
        for route in &changes.routes {
            gateways.extend(self.index.paths_of(route).map(|path| path.gateway.clone()));
        }
        changes.policies.iter().for_each(|id| wake_policy(affected, id));
        gateways.iter().for_each(|gateway| self.enforcement.outdate(gateway));
        gateways.iter().for_each(|gateway| self.wake_gateway(affected, gateway));
    }

    /// Wakes a Gateway, and the class that it is merged in; or a GatewayClass.
    fn wake_gateway(&self, affected: &Affected, node: &NodeKey) {
        if node.kind == ObjectKind::GatewayClass {
            return affected(GATEWAY_CLASS, NamespacedName::new("", &*node.name));
        }
        affected(GATEWAY, NamespacedName::new(&*node.namespace, &*node.name));
        let class = self.index.class_of(node).filter(|class| self.enforcement.is_merged(class));
        class.into_iter().for_each(|class| affected(GATEWAY_CLASS, NamespacedName::new("", class)));
    }

    /// Wakes all GatewayClasses.
    fn wake_classes(&self, affected: &Affected) {
        let classes = self.nodes(ObjectKind::GatewayClass);
        classes.for_each(|class| self.wake_gateway(affected, class));
    }

    /// Wakes policies whose conditions are to say something else, though their outputs are the same.
    pub(super) fn wake_restated(&mut self) {
        let restated = self.enforcement.take_restated();
        let Some(affected) = &self.affected else { return };
        restated.for_each(|id| wake_policy(affected, &id));
    }

    /// A change of listeners may change the names in the proxy, and of a class, whose controller carries it out.
    fn listeners_changed(&mut self, kind: &str, node: Option<NodeKey>) {
        let concern = match (kind, node) {
            ("Gateway", Some(gateway)) => {
                self.enforcement.outdate(&gateway);
                // It may have been of another class.
                self.affected.iter().for_each(|affected| self.wake_classes(affected));
                Concern::GatewayAndPolicies(gateway)
            }
            ("ListenerSet" | "XListenerSet" | "GatewayClass" | "Gateway", _) => {
                let all: Vec<NodeKey> = self.gateways().cloned().collect();
                all.iter().for_each(|gateway| self.enforcement.outdate(gateway));
                Concern::All
            }
            _ => return,
        };
        self.wake(&concern);
    }

    /// The Gateways that an AuthPolicy may target, also one without routes, or where it is gone.
    fn gateways_near<'a>(&'a self, id: &'a PolicyId) -> impl Iterator<Item = NodeKey> + 'a {
        let is_of_routes = is_of_route(&self.index, id);
        let is_near = move |gateway: &&NodeKey| {
            let mut listeners = self.index.listeners(gateway).into_iter();
            gateway.namespace == id.namespace || listeners.any(|own| own.key.namespace == id.namespace)
        };
        self.gateways().filter(move |_| !is_of_routes).filter(is_near).cloned()
    }

    fn gateways(&self) -> impl Iterator<Item = &NodeKey> {
        self.nodes(ObjectKind::Gateway)
    }

    fn nodes(&self, kind: ObjectKind) -> impl Iterator<Item = &NodeKey> {
        self.index.objects().filter_map(move |object| match object {
            ObjectKey::Node(node) if node.kind == kind => Some(node),
            _ => None,
        })
    }

    fn wake(&self, concern: &Concern) {
        let Some(affected) = &self.affected else { return };
        let wake = |node: &NodeKey| self.wake_gateway(affected, node);
        let policies = || self.index.policies().filter(|own| CARRIED_OUT.contains(&&*own.id.kind));
        let policy = |id: &PolicyId| wake_policy(affected, id);
        match concern {
            Concern::Graph | Concern::Nothing => {}
            Concern::Gateway(gateway) => wake(gateway),
            Concern::GatewayAndPolicies(gateway) => {
                wake(gateway);
                // AuthConfigs of merged Gateways go once no proxy asks about them.
                let merged: BTreeSet<&NodeKey> = self.index.gateways_of(gateway).into_iter().collect();
                for own in &merged {
                    affected(GATEWAY, NamespacedName::new(&*own.namespace, &*own.name));
                }
                let is_on = |id: &PolicyId| {
                    self.index.state(id).is_some_and(|state| {
                        state.ancestors.keys().any(|own| own == gateway || merged.contains(own))
                    })
                };
                policies().filter(|own| is_on(&own.id)).for_each(|own| policy(&own.id));
            }
            Concern::Gateways => self.gateways().for_each(wake),
            Concern::All => {
                self.gateways().for_each(wake);
                self.wake_classes(affected);
                policies().for_each(|own| policy(&own.id));
            }
        }
    }

    fn remove(&mut self, subject: Subject) {
        match &subject {
            Subject::Policy(id) => {
                if let Some(of_namespace) = self.selecting.get_mut(&id.namespace) {
                    of_namespace.remove(id);
                }
            }
            Subject::Object(ObjectKey::Node(node)) => self.label(node.clone(), None),
            Subject::Object(_) => {}
        }
        let changes = self.index.apply(gateway_policies::Event::Delete(subject));
        self.changed(Some(changes));
    }

    pub(super) fn forget(&mut self, kind: &str) {
        let concern = self.enforcement.forget(kind);
        self.wake(&concern);
        let policies = self.index.policies().map(|policy| Subject::Policy(policy.id.clone()));
        let objects = self.index.objects().cloned().map(Subject::Object);
        let is_policy =
            |id: &PolicyId| self.kinds.names().any(|(name, _, own)| *id.kind == *name && own == kind);
        let is_of_kind = |subject: &Subject| match subject {
            Subject::Policy(id) => is_policy(id),
            Subject::Object(ObjectKey::Node(node)) => node.kind.name() == kind,
            Subject::Object(ObjectKey::Grant(..)) => kind == GRANT,
            Subject::Object(ObjectKey::Namespace(_)) => kind == NAMESPACE,
        };
        let gone: Vec<Subject> = policies.chain(objects).filter(is_of_kind).collect();
        for of_namespace in self.selecting.values_mut() {
            of_namespace.retain(|id, _| !is_policy(id));
        }
        gone.into_iter().for_each(|subject| self.remove(subject));
    }

    /// What an object of a kind is in the index. No two kinds that are read share a name.
    fn subject(&self, kind: &str, name: &NamespacedName) -> Option<Subject> {
        let NamespacedName { namespace, name } = name;
        if let Some((own, ..)) = self.kinds.names().find(|(_, _, own)| *own == kind) {
            let (namespace, name) = (namespace.as_str().into(), name.as_str().into());
            return Some(Subject::Policy(PolicyId { kind: own.into(), namespace, name }));
        }
        Some(Subject::Object(match kind {
            NAMESPACE => ObjectKey::Namespace(name.as_str().into()),
            GRANT => ObjectKey::Grant(namespace.as_str().into(), name.as_str().into()),
            _ => {
                let kind = ObjectKind::ALL.into_iter().find(|own| own.name() == kind)?;
                ObjectKey::Node(NodeKey::new(kind, namespace, name))
            }
        }))
    }
}

/// Wakes a policy, where its kind is carried out.
fn wake_policy(affected: &Affected, id: &PolicyId) {
    if let Some(kind) = carried_out(&id.kind) {
        affected(KindName::new(KUADRANT, kind), NamespacedName::new(&*id.namespace, &*id.name));
    }
}

const CLIENT_TRAFFIC_POLICY: &str = "ClientTrafficPolicy";

const NAMESPACE: &str = "Namespace";
const GRANT: &str = "ReferenceGrant";
