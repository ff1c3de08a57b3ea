//! Queries of the controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::interlock::{Account, Adoption, CountedReferences, Labels};
use interlock_core::api::object::{NamespacedName, ObjectKey};
use interlock_core::kinds::gauge::Gauge;
use interlock_core::kinds::row::{is, name};
use interlock_core::kinds::{INSTANCE, fact, link};
use interlock_core::reconcile::ObjectList;
use interlock_core::topology::KindName;
use interlock_core::topology::schema::Side;
use serde_json::Value;

use super::instances::KeptInstance;
use super::kept_objects;
use super::object_bytes::{Child, ObjectBody};
use super::store::Store;

impl Store {
    pub fn objects_of(&self, group: &str, kind: &str) -> Vec<NamespacedName> {
        let tables = self.read();
        let Some(kind) = tables.graph.find_kind(group, kind) else { return Vec::new() };
        tables.graph.rows(kind).map(|row| name(&row.id())).collect()
    }

    /// Names and labels of all Namespaces.
    pub fn namespaces(&self) -> BTreeMap<String, Labels> {
        self.read().labels.iter().map(|(name, labels)| (name.clone(), labels.clone())).collect()
    }

    /// The service account that packages act as in a namespace.
    pub fn account(&self, namespace: &str) -> Account {
        self.read().accounts.of(namespace)
    }

    /// Whether plans write objects that no Instance made in a namespace; `None` while its labels matter and
    /// are not known.
    pub fn adoption(&self, namespace: &str) -> Option<Adoption> {
        let tables = self.read();
        tables.adoptions.within(tables.labels.get(namespace))
    }

    /// The references of pod templates that count in their hash in a namespace; `None` while its labels
    /// matter and are not known.
    pub fn counted_references(&self, namespace: &str) -> Option<CountedReferences> {
        let tables = self.read();
        tables.dependencies_hashes.within(tables.labels.get(namespace))
    }

    /// The cached Instance.
    pub fn instance(&self, key: &NamespacedName) -> KeptInstance {
        self.read().kept(key)
    }

    /// The uid of the cached Instance of that name.
    pub fn uid_of(&self, key: &NamespacedName) -> Option<String> {
        self.read().instance(key).and_then(|row| row.uid())
    }

    /// Whether an Instance is being deleted.
    pub fn is_deleted(&self, key: &NamespacedName) -> bool {
        self.read().instance(key).is_some_and(|row| is(&row, fact::TERMINATING))
    }

    /// Every Instance.
    pub fn instances(&self) -> Vec<NamespacedName> {
        let tables = self.read();
        tables.graph.rows(tables.kinds.instance).map(|row| name(&row.id())).collect()
    }

    /// Number of cached Instances.
    pub fn count_instances(&self) -> usize {
        let tables = self.read();
        tables.graph.rows(tables.kinds.instance).count()
    }

    /// What metrics say of all objects of the kinds, at this time in Unix seconds.
    pub fn gauges(&self, now: u64) -> Vec<Gauge> {
        let tables = self.read();
        let graph = &tables.graph;
        let rows = |name: KindName| {
            let kind = graph.find_kind(name.group, name.kind);
            kind.into_iter().flat_map(move |kind| graph.rows(kind))
        };
        let kinds = self.kinds().iter().filter_map(|kind| Some((kind.schema?.name, kind.gauges?)));
        kinds.flat_map(|(name, gauges)| gauges(&mut rows(name), now)).collect()
    }

    /// Every Instance that needs reconciling.
    pub fn to_reconcile(&self) -> Vec<NamespacedName> {
        let tables = self.read();
        let keys = tables.graph.rows(tables.kinds.instance).map(|row| name(&row.id()));
        keys.filter(|key| !matches!(tables.kept(key), KeptInstance::AtRest { well: true })).collect()
    }

    /// The Instances that refer to an OperatorVersion.
    pub fn instances_of(&self, operator_version: &NamespacedName) -> Vec<NamespacedName> {
        let tables = self.read();
        let mut users: Vec<_> = tables.users(operator_version).map(|row| name(&row.id())).collect();
        users.sort();
        users
    }

    /// The OperatorVersion that an Instance refers to, even if it does not exist.
    pub fn package_of(&self, instance: &NamespacedName) -> Option<NamespacedName> {
        let tables = self.read();
        let row = tables.instance(instance)?;
        row.along(Side::Parent, link::OPERATOR_VERSION).next().map(|row| name(&row.id()))
    }

    /// Whether any Instance refers to an OperatorVersion.
    pub fn is_used(&self, operator_version: &NamespacedName) -> bool {
        self.read().users(operator_version).next().is_some()
    }

    /// Whether an Instance needs reconciling, or is marked dirty.
    pub fn needs_reconcile(&self, key: &NamespacedName) -> bool {
        !matches!(self.instance(key), KeptInstance::AtRest { well: true })
    }

    /// An object that reconcilers read; `None` where the kind is not kept, or not listed yet.
    pub fn kept_object(&self, key: &ObjectKey) -> Option<Child> {
        let tables = self.read();
        let found = tables.kept_objects.get(&tables.graph, key)?;
        drop(tables);
        // Decodes without the lock, as others wait for it.
        Some(found.open())
    }

    /// A list that reconcilers read; `None` where it has to be read by request.
    pub fn kept_list(&self, list: &ObjectList) -> Option<Vec<Arc<Value>>> {
        let tables = self.read();
        let found = tables.kept_objects.list(&tables.graph, list)?;
        drop(tables);
        kept_objects::open(&found)
    }

    /// How many objects that reconcilers read exceed the budget of their namespace, and the bytes of all others.
    pub fn kept_totals(&self) -> (usize, usize) {
        self.read().kept_objects.totals()
    }

    /// An object of a package, as last seen.
    pub fn get_child(&self, key: &ObjectKey) -> Child {
        let body = {
            let tables = self.read();
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let kind = tables.graph.find_kind(&key.gvk.group, &key.gvk.kind);
            let Some(row) = kind.and_then(|kind| tables.graph.row(kind, namespace, &key.name)) else {
                return Child::Absent;
            };
            tables.bodies.get(&row.id()).cloned()
        };
        // Decodes without the lock, as others wait for it.
        body.as_ref().and_then(ObjectBody::open).map_or(Child::Unread, Child::Kept)
    }

    /// Objects of some kinds that belong to an Instance, in order; of those without a cached body only the
    /// names of unhealthy ones.
    pub fn children_of(&self, instance: &NamespacedName, kinds: &[&str]) -> (Vec<Arc<Value>>, Vec<String>) {
        let (kept, sick) = {
            let tables = self.read();
            let Some(row) = tables.instance(instance) else { return Default::default() };
            let made = row.along(Side::Child, link::MADE_BY);
            let mut made: Vec<_> =
                made.map(|row| (row.id(), row)).filter(|(id, _)| kinds.contains(&&*id.kind.kind)).collect();
            made.sort_by(|(one, _), (other, _)| one.cmp(other));
            let (mut kept, mut sick) = (Vec::new(), Vec::new());
            for (id, row) in made {
                match tables.bodies.get(&id) {
                    Some(body) => kept.push(body.clone()),
                    None if is(&row, fact::HEALTHY) => {}
                    None => sick.push(format!("{} {}", id.kind.kind, id.name)),
                }
            }
            (kept, sick)
        };
        (kept.iter().filter_map(ObjectBody::open).collect(), sick)
    }

    /// Names of the Instances that an Instance owns.
    pub fn child_instances(&self, instance: &NamespacedName) -> BTreeSet<String> {
        let tables = self.read();
        let Some(row) = tables.instance(instance) else { return BTreeSet::new() };
        let made = row.along(Side::Child, link::MADE_BY).map(|row| row.id());
        let beside = made.filter(|id| id.kind == INSTANCE && *id.namespace == *instance.namespace);
        beside.map(|id| id.name.to_string()).collect()
    }

    /// The cluster-scoped objects that name an Instance among those that made them, as group, kind and name.
    pub fn cluster_scoped_of(&self, instance: &NamespacedName) -> Vec<[String; 3]> {
        let tables = self.read();
        let Some(row) = tables.instance(instance) else { return Vec::new() };
        let made = row.along(Side::Child, link::MADE_BY).map(|row| row.id());
        let cluster_scoped = made.filter(|id| id.namespace.is_empty());
        cluster_scoped.map(|id| [&*id.kind.group, &*id.kind.kind, &*id.name].map(str::to_owned)).collect()
    }
}
