//! The graph of Gateways, routes and policies that a process keeps, fed by its watches.
//!
//! What a watch reports waits where a review has the graph, and who has the graph next takes it in: no watch waits for
//! a review, and each review sees everything that was reported before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::capabilities::{ATTACHMENTS, POLICIES};
use interlock_core::kinds::inventory::{Affected, DomainInventory, Inventory};
use serde_json::Value;

use super::enforcement::LIMITS_CONFIG_MAP;
use super::linked::LinkedObjects;

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
        Self(Arc::new(AttachmentGraph {
            linked: Mutex::default(),
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

/// Kinds whose status says how far policies are carried out, and which listeners there are.
const OF_ENFORCEMENT: [&str; 7] =
    ["EnvoyPatchPolicy", "AuthConfig", "Limitador", "GatewayClass", "Gateway", "ListenerSet", "XListenerSet"];

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
