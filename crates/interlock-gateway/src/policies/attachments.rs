//! The graph of Gateways, routes and policies that a process keeps, fed by its watches.
//!
//! What a watch reports waits where a review has the graph, and who has the graph next takes it in: no watch waits for
//! a review, and each review sees everything that was reported before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_policies::{Changes, Index, NodeKey, ObjectKey, ObjectKind, PolicyId, Scope, Subject};
use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::capabilities::{ATTACHMENTS, POLICIES};
use interlock_core::kinds::inventory::{Affected, DomainInventory, Inventory};
use interlock_core::topology::KindName;
use serde_json::Value;

use super::enforcement::{Concern, Enforcement, LIMITS_CONFIG_MAP, RATE_LIMIT_POLICY};
use super::known::PolicyKinds;
use super::labels::{Labels, Selector, labels_of, namespace_of, node_of};
use super::survey::group_and_kind;
use crate::names::{GATEWAY, KUADRANT};

/// Policies with selectors in one namespace whose targets follow the labels; those of others stay as they were when the
/// policy was written.
const SELECTING: usize = 256;

/// The graph as a domain keeps it.
pub struct Attachments(Arc<AttachmentGraph>);

/// The graph, for one at a time.
pub struct AttachmentGraph {
    linked: Mutex<LinkedObjects>,
    pending: Mutex<Pending>,
    /// Reviews that have it or wait for it.
    waiting: AtomicUsize,
}

/// Reviews that wait for the graph, or have it.
const WAITING: usize = 16;

/// A place among those that wait.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < WAITING).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What watches reported and is not taken in yet: no more than there are objects.
#[derive(Default)]
struct Pending {
    /// Kinds that are read no more; what was reported of them before is dropped.
    unread: BTreeSet<String>,
    objects: BTreeMap<(String, NamespacedName), Report>,
}

/// The newest that was reported of an object.
#[derive(Default)]
struct Report {
    /// Whether the one that was there is gone.
    was_deleted: bool,
    /// As it is now; none where it is gone.
    object: Option<Value>,
}

impl Pending {
    fn exists(&mut self, object: Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let name = NamespacedName { namespace: text(&metadata["namespace"]), name: text(&metadata["name"]) };
        let key = (text(&object["kind"]), name);
        self.objects.entry(key).or_default().object = Some(object);
    }

    fn gone(&mut self, kind: &str, name: &NamespacedName) {
        let gone = Report { was_deleted: true, object: None };
        self.objects.insert((kind.to_owned(), name.clone()), gone);
    }

    fn unread(&mut self, kind: &str) {
        self.objects.retain(|(own, _), _| own != kind);
        self.unread.insert(kind.to_owned());
    }

    fn is_empty(&self) -> bool {
        self.unread.is_empty() && self.objects.is_empty()
    }
}

/// Gateways, routes and policies, and what the policies select.
#[derive(Clone)]
pub(super) struct LinkedObjects {
    pub(super) index: Index,
    pub(super) kinds: PolicyKinds,
    labels: Labels,
    /// By namespace, with the object.
    selecting: BTreeMap<Arc<str>, BTreeMap<PolicyId, Value>>,
    pub(super) enforcement: Enforcement,
    /// Takes the objects that a change affects, where controllers reconcile them.
    affected: Option<Affected>,
}

impl Attachments {
    /// It is of the kinds that say which policies are attached where.
    pub const OF_DOMAIN: DomainInventory = DomainInventory {
        empty: || Box::new(Self::default()),
        capabilities: &[ATTACHMENTS.name, POLICIES.name],
        is_followed: false,
        reads_settings: true,
    };
}

impl Attachments {
    /// An independent copy.
    pub(super) fn copied(&self) -> Self {
        let linked = self.read(LinkedObjects::clone);
        Self(Arc::new(AttachmentGraph {
            linked: Mutex::new(linked),
            pending: Mutex::default(),
            waiting: AtomicUsize::default(),
        }))
    }
}

impl Default for Attachments {
    fn default() -> Self {
        let kinds = PolicyKinds::known();
        let linked = LinkedObjects {
            index: Index::new(kinds.all()),
            kinds,
            labels: Labels::default(),
            selecting: BTreeMap::new(),
            enforcement: Enforcement::default(),
            affected: None,
        };
        Self(Arc::new(AttachmentGraph {
            linked: Mutex::new(linked),
            pending: Mutex::default(),
            waiting: AtomicUsize::default(),
        }))
    }
}

impl Attachments {
    /// The graph, which outlives a look at the cache.
    pub(super) fn graph(&self) -> Arc<AttachmentGraph> {
        self.0.clone()
    }

    /// What is known now.
    fn read<T>(&self, read: impl FnOnce(&LinkedObjects) -> T) -> T {
        self.0.read(read)
    }
}

impl Inventory for Attachments {
    fn take(&mut self, object: &Value) {
        let read: &[&str] = if OF_ENFORCEMENT.contains(&object["kind"].as_str().unwrap_or_default()) {
            &["apiVersion", "kind", "metadata", "spec", "status"]
        } else {
            &["apiVersion", "kind", "metadata", "spec"]
        };
        let read = read.iter().map(|field| ((*field).to_owned(), object[*field].clone()));
        let object = Value::Object(read.collect());
        self.0.report(|pending| pending.exists(object));
    }

    fn drop(&mut self, kind: &str, name: &NamespacedName) {
        self.0.report(|pending| pending.gone(kind_of(kind), name));
    }

    fn forget(&mut self, kind: &str) {
        self.0.report(|pending| pending.unread(kind_of(kind)));
    }

    fn follow(&mut self, affected: Affected) {
        locked(&self.0.linked).affected = Some(affected);
    }

    fn listers(&self, listers: KindListers) -> KindListers {
        listers.with::<AttachmentGraph>(self.0.clone())
    }
}

/// The kind of objects that the topology knows under another name.
fn kind_of(name: &str) -> &str {
    if name == LIMITS_CONFIG_MAP { "ConfigMap" } else { name }
}

impl AttachmentGraph {
    fn report(&self, report: impl FnOnce(&mut Pending)) {
        report(&mut locked(&self.pending));
        if let Ok(mut linked) = self.linked.try_lock() {
            self.take_in(&mut linked);
        }
    }

    /// What is known now.
    pub(super) fn read<T>(&self, read: impl FnOnce(&LinkedObjects) -> T) -> T {
        let mut linked = locked(&self.linked);
        self.take_in(&mut linked);
        read(&linked)
    }

    /// What a reconciler decides on.
    pub(super) fn decide<T>(&self, question: impl FnOnce(&mut LinkedObjects) -> T) -> T {
        let mut linked = locked(&self.linked);
        self.take_in(&mut linked);
        question(&mut linked)
    }

    /// Asks it, once all that was reported is taken in; none where too many wait for it already.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut LinkedObjects) -> T) -> Option<T> {
        let _place = Place::take(&self.waiting)?;
        let mut linked = locked(&self.linked);
        self.take_in(&mut linked);
        Some(question(&mut linked))
    }

    fn take_in(&self, linked: &mut LinkedObjects) {
        loop {
            let pending = std::mem::take(&mut *locked(&self.pending));
            if pending.is_empty() {
                return;
            }
            pending.unread.iter().for_each(|kind| linked.forget(kind));
            for ((kind, name), Report { was_deleted, object }) in pending.objects {
                if was_deleted {
                    linked.drop(&kind, &name);
                }
                object.iter().for_each(|object| linked.take(object));
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A change of the graph that panics half-way is a defect of which the next event heals the most.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn take(&mut self, object: &Value) {
        match self.enforcement.take(object) {
            Concern::Graph => {}
            concern => return self.wake(&concern),
        }
        if !self.is_policy(object) {
            // What does not decode is listed as a fault, and its last version stays.
            let changes = self.index.observe(object);
            self.changed(changes.ok());
            self.listeners_changed(object["kind"].as_str().unwrap_or_default(), node_of(object));
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
        if let (Some(affected), Some(RATE_LIMIT_POLICY)) = (&self.affected, object["kind"].as_str()) {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            affected(POLICY_NAME, NamespacedName::new(namespace_of(object), name));
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

    fn drop(&mut self, kind: &str, name: &NamespacedName) {
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
                Scope::Path(path) if &*key.kind == RATE_LIMIT_POLICY => {
                    gateways.insert(path.gateway.clone());
                }
                Scope::Target(target) if key.kind.as_ref() == CLIENT_TRAFFIC_POLICY => {
                    gateways.extend(self.index.paths_through(target).map(|path| path.gateway.clone()));
                }
                Scope::Path(_) | Scope::Target(_) => {}
            }
        }
        for route in &changes.routes {
            gateways.extend(self.index.paths_of(route).map(|path| path.gateway.clone()));
        }
        let policies = changes.policies.iter().filter(|id| &*id.kind == RATE_LIMIT_POLICY);
        policies.for_each(|id| affected(POLICY_NAME, NamespacedName::new(&*id.namespace, &*id.name)));
        for gateway in gateways {
            self.enforcement.outdate(&gateway);
            affected(GATEWAY, NamespacedName::new(&*gateway.namespace, &*gateway.name));
        }
    }

    /// A change of listeners may change the names in the proxy, and of a class, whose controller carries it out.
    fn listeners_changed(&mut self, kind: &str, node: Option<NodeKey>) {
        let concern = match (kind, node) {
            ("Gateway", Some(gateway)) => {
                self.enforcement.outdate(&gateway);
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

    fn gateways(&self) -> impl Iterator<Item = &NodeKey> {
        self.index.objects().filter_map(|object| match object {
            ObjectKey::Node(node) if node.kind == ObjectKind::Gateway => Some(node),
            _ => None,
        })
    }

    fn wake(&self, concern: &Concern) {
        let Some(affected) = &self.affected else { return };
        let name = |node: &NodeKey| NamespacedName::new(&*node.namespace, &*node.name);
        let policies = || self.index.policies().filter(|policy| &*policy.id.kind == RATE_LIMIT_POLICY);
        let policy = |id: &PolicyId| affected(POLICY_NAME, NamespacedName::new(&*id.namespace, &*id.name));
        match concern {
            Concern::Graph | Concern::Nothing => {}
            Concern::Gateway(gateway) => affected(GATEWAY, name(gateway)),
            Concern::GatewayAndPolicies(gateway) => {
                affected(GATEWAY, name(gateway));
                let is_on = |id: &PolicyId| {
                    self.index.state(id).is_some_and(|state| state.ancestors.contains_key(gateway))
                };
                policies().filter(|own| is_on(&own.id)).for_each(|own| policy(&own.id));
            }
            Concern::Gateways => self.gateways().for_each(|gateway| affected(GATEWAY, name(gateway))),
            Concern::All => {
                self.gateways().for_each(|gateway| affected(GATEWAY, name(gateway)));
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

    fn forget(&mut self, kind: &str) {
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

/// Kinds whose status says how far policies are carried out.
const OF_ENFORCEMENT: [&str; 2] = ["EnvoyPatchPolicy", "Limitador"];

const CLIENT_TRAFFIC_POLICY: &str = "ClientTrafficPolicy";
const POLICY_NAME: KindName = KindName::new(KUADRANT, RATE_LIMIT_POLICY);

const NAMESPACE: &str = "Namespace";
const GRANT: &str = "ReferenceGrant";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(limit: u64, name: &str) -> Value {
        json!({
            "apiVersion": "kuadrant.io/v1", "kind": "RateLimitPolicy", "metadata": {"namespace": "shop", "name": name},
            "spec": {
                "targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"},
                "limits": {"a": {"rates": [{"limit": limit, "window": "1s"}]}},
            },
        })
    }

    /// Of each policy its limit, once the graph is free.
    fn limits(graph: &AttachmentGraph) -> Vec<(String, Value)> {
        graph.read(|linked| {
            let limit = |policy: &gateway_policies::Policy| {
                let block = policy.block.as_ref().unwrap();
                (policy.id.name.to_string(), block.rules["a"]["rates"][0]["limit"].clone())
            };
            linked.index.policies().map(limit).collect()
        })
    }

    #[test]
    fn of_what_is_reported_while_the_graph_is_taken_the_newest_is_kept() {
        let mut own = Attachments::default();
        let graph = own.graph();
        let name = |name: &str| NamespacedName { namespace: "shop".to_owned(), name: name.to_owned() };
        let taken = locked(&graph.linked);
        for limit in 0..100 {
            ["one", "two", "gone"].iter().for_each(|name| own.take(&policy(limit, name)));
        }
        Inventory::drop(&mut own, "RateLimitPolicy", &name("gone"));
        Inventory::drop(&mut own, "RateLimitPolicy", &name("two"));
        own.take(&policy(7, "two"));
        assert_eq!(locked(&graph.pending).objects.len(), 3);
        std::mem::drop(taken);
        assert_eq!(limits(&graph), [("one".to_owned(), json!(99)), ("two".to_owned(), json!(7))]);

        let taken = locked(&graph.linked);
        own.take(&policy(8, "one"));
        own.forget("RateLimitPolicy");
        own.take(&policy(9, "two"));
        std::mem::drop(taken);
        assert_eq!(limits(&graph), [("two".to_owned(), json!(9))]);
    }
}
