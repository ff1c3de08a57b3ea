//! The store: rows of what rules read, and for controllers the objects themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch;
use tracing::warn;

use crate::admission::view::{Users, View};
use crate::api::interlock::{Actions, Labels, Rules};
use crate::api::kudo::{Instance, OperatorVersionSpec};
use crate::api::meta;
use crate::api::object::{NamespacedName, ObjectKey, meta_str};
use crate::cluster::watch::Change;
use crate::plan::lock;
use crate::plan::package::Package;

/// What the process knows of the cluster. Eventually consistent; shared by reference.
pub struct Store {
    inner: RwLock<Inner>,
    changes: watch::Sender<u64>,
    namespace_changes: watch::Sender<u64>,
    /// Whether whole objects are kept, as controllers need them.
    keep_objects: bool,
}

#[derive(Default)]
struct Inner {
    packages: HashMap<NamespacedName, Arc<Package>>,
    rows: HashMap<NamespacedName, Row>,
    users: HashMap<NamespacedName, BTreeSet<NamespacedName>>,
    instances: HashMap<NamespacedName, Arc<Value>>,
    namespaces: HashMap<String, Namespace>,
    rules: Rules,
    children: HashMap<ObjectKey, Arc<Value>>,
    by_instance: HashMap<NamespacedName, BTreeSet<ObjectKey>>,
    /// Versions at which objects went, so that a late answer does not bring them back.
    gone: HashMap<ObjectKey, u64>,
}

/// What rules read of a Namespace.
#[derive(PartialEq, Eq)]
struct Namespace {
    terminating: bool,
    labels: Labels,
}

/// Tombstones kept; a late answer is late by seconds, not by thousands of deletions.
const TOMBSTONES: usize = 4096;

/// What rules read of an Instance.
struct Row {
    operator_version: NamespacedName,
    /// The plan that holds the lock.
    locked: Option<String>,
}

impl Store {
    /// An empty store.
    pub fn new(keep_objects: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: RwLock::default(),
            changes: watch::Sender::new(0),
            namespace_changes: watch::Sender::new(0),
            keep_objects,
        })
    }

    /// Ticks after each change of what admission reads.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        // Writers do not panic half-way through a change.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// Takes in a change of an OperatorVersion; answers its key.
    pub fn see_operator_version(&self, change: &Change) -> Option<NamespacedName> {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return None };
        let key = key_of(object)?;
        if let Change::Deleted(_) = change {
            self.write().packages.remove(&key);
        } else {
            let spec = object.get("spec").cloned().unwrap_or_default();
            match serde_json::from_value::<OperatorVersionSpec>(spec) {
                Ok(spec) => {
                    let package = Arc::new(Package::new(key.clone(), spec));
                    self.write().packages.insert(key.clone(), package);
                }
                Err(error) => {
                    warn!(operator_version = %key, %error, "an OperatorVersion could not be read");
                    return None;
                }
            }
        }
        self.tick();
        Some(key)
    }

    /// Takes in a change of an Instance; answers its key, or `None` where it tells nothing new.
    pub fn see_instance(&self, change: &Change) -> Option<NamespacedName> {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return None };
        let key = key_of(object)?;
        let mut inner = self.write();
        let known = inner.instances.get(&key).map(version);
        if !inner.is_news(change, known) {
            return None;
        }
        if let Some(old) = inner.rows.remove(&key)
            && let Some(users) = inner.users.get_mut(&old.operator_version)
        {
            users.remove(&key);
            if users.is_empty() {
                inner.users.remove(&old.operator_version);
            }
        }
        if let Change::Deleted(_) = change {
            inner.instances.remove(&key);
        } else {
            if let Some(row) = row_of(&key, object) {
                inner.users.entry(row.operator_version.clone()).or_default().insert(key.clone());
                inner.rows.insert(key.clone(), row);
            }
            if self.keep_objects {
                inner.instances.insert(key.clone(), object.clone());
            }
        }
        drop(inner);
        self.tick();
        Some(key)
    }

    /// Takes in a change of a Namespace; answers its name where rules can tell the difference.
    pub fn see_namespace(&self, change: &Change) -> Option<String> {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return None };
        let name = meta_str(object, "name")?.to_owned();
        let now = matches!(change, Change::Applied(_)).then(|| Namespace {
            terminating: meta_str(object, "deletionTimestamp").is_some(),
            labels: labels_of(object),
        });
        let mut inner = self.write();
        if inner.namespaces.get(&name) == now.as_ref() {
            return None;
        }
        match now {
            Some(now) => inner.namespaces.insert(name.clone(), now),
            None => inner.namespaces.remove(&name),
        };
        drop(inner);
        self.tick();
        self.namespace_changes.send_modify(|n| *n = n.wrapping_add(1));
        Some(name)
    }

    /// Ticks after each change of what rules read of Namespaces.
    pub fn namespace_changes(&self) -> watch::Receiver<u64> {
        self.namespace_changes.subscribe()
    }

    /// Names and labels of all Namespaces.
    pub fn namespaces(&self) -> BTreeMap<String, Labels> {
        let inner = self.read();
        inner.namespaces.iter().map(|(name, namespace)| (name.clone(), namespace.labels.clone())).collect()
    }

    /// Sets what the rules do where; answers whether that is new.
    pub fn set_rules(&self, rules: Rules) -> bool {
        let mut inner = self.write();
        if inner.rules == rules {
            return false;
        }
        inner.rules = rules;
        drop(inner);
        self.tick();
        true
    }

    /// Takes in a change of an object that a package made; answers the Instance it belongs to.
    pub fn see_child(&self, change: &Change) -> Option<NamespacedName> {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return None };
        let key = ObjectKey::of(object)?;
        let owner = owner_of(object);
        let mut inner = self.write();
        let known = inner.children.get(&key).map(version);
        if !inner.is_news(change, known) {
            return None;
        }
        if let Change::Deleted(_) = change {
            inner.children.remove(&key);
        } else {
            inner.children.insert(key.clone(), object.clone());
        }
        if let Some(owner) = &owner {
            let keys = inner.by_instance.entry(owner.clone()).or_default();
            match change {
                Change::Applied(_) => {
                    keys.insert(key);
                }
                _ => {
                    keys.remove(&key);
                    if keys.is_empty() {
                        inner.by_instance.remove(owner);
                    }
                }
            }
        }
        owner
    }

    /// An Instance as last seen.
    pub fn get_instance(&self, key: &NamespacedName) -> Option<Arc<Value>> {
        self.read().instances.get(key).cloned()
    }

    /// Every Instance.
    pub fn instance_keys(&self) -> Vec<NamespacedName> {
        self.read().instances.keys().cloned().collect()
    }

    /// The Instances that refer to an OperatorVersion.
    pub fn instances_of(&self, operator_version: &NamespacedName) -> Vec<NamespacedName> {
        self.read().users.get(operator_version).into_iter().flatten().cloned().collect()
    }

    /// Whether any Instance refers to an OperatorVersion.
    pub fn is_used(&self, operator_version: &NamespacedName) -> bool {
        self.read().users.contains_key(operator_version)
    }

    /// The Instances of a namespace.
    pub fn instances_in(&self, namespace: &str) -> Vec<NamespacedName> {
        self.read().instances.keys().filter(|key| key.namespace == namespace).cloned().collect()
    }

    /// An object of a package as last seen.
    pub fn get_child(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.read().children.get(key).cloned()
    }

    /// Drops an object of a package that is not followed any more, which says nothing of it.
    pub fn forget_child(&self, object: &Value) {
        let Some(key) = ObjectKey::of(object) else { return };
        let mut inner = self.write();
        inner.children.remove(&key);
        if let Some(owner) = owner_of(object)
            && let Some(keys) = inner.by_instance.get_mut(&owner)
        {
            keys.remove(&key);
        }
    }

    /// Drops an Instance that a read did not find.
    pub fn forget_instance(&self, key: &NamespacedName) {
        let object = self.read().instances.get(key).cloned();
        if let Some(object) = object {
            self.see_instance(&Change::Deleted(object));
        }
    }

    /// The objects that belong to an Instance, in order.
    pub fn children_of(&self, instance: &NamespacedName) -> Vec<(ObjectKey, Arc<Value>)> {
        let inner = self.read();
        let keys = inner.by_instance.get(instance).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), inner.children.get(key)?.clone()))).collect()
    }
}

impl Inner {
    /// Whether a change is newer than what is known. The answers to our own writes come in here
    /// as well as the watch, in any order; versions of one kind are ordered numbers.
    fn is_news(&mut self, change: &Change, known: Option<u64>) -> bool {
        let (Change::Applied(object) | Change::Deleted(object)) = change else { return false };
        let (Some(key), at) = (ObjectKey::of(object), version(object)) else { return true };
        if let Change::Deleted(_) = change {
            if self.gone.len() >= TOMBSTONES {
                self.gone.clear();
            }
            self.gone.insert(key, at);
            return true;
        }
        known.is_none_or(|known| at > known || at == 0) && self.gone.get(&key).is_none_or(|gone| at > *gone)
    }
}

/// `metadata.resourceVersion` as a number; 0 where it is none.
fn version(object: &Arc<Value>) -> u64 {
    meta_str(object, "resourceVersion").and_then(|v| v.parse().ok()).unwrap_or(0)
}

impl View for Store {
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>> {
        self.read().packages.get(key).cloned()
    }

    fn users_of(&self, operator_version: &NamespacedName) -> Users {
        let inner = self.read();
        let Some(keys) = inner.users.get(operator_version) else { return Users::default() };
        let locked =
            keys.iter().filter_map(|key| Some((key.clone(), inner.rows.get(key)?.locked.clone()?))).collect();
        Users { total: keys.len(), locked }
    }

    fn namespace_terminating(&self, namespace: &str) -> bool {
        self.read().namespaces.get(namespace).is_some_and(|namespace| namespace.terminating)
    }

    fn actions(&self, namespace: &str) -> Actions {
        let inner = self.read();
        if inner.rules.is_empty() {
            return Actions::default();
        }
        inner.rules.within(inner.namespaces.get(namespace).map(|namespace| &namespace.labels))
    }
}

fn key_of(object: &Value) -> Option<NamespacedName> {
    Some(NamespacedName::new(meta_str(object, "namespace")?, meta_str(object, "name")?))
}

fn labels_of(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}

fn row_of(key: &NamespacedName, object: &Value) -> Option<Row> {
    let instance: Instance = serde_json::from_value(object.clone())
        .inspect_err(|error| warn!(instance = %key, %error, "an Instance could not be read"))
        .ok()?;
    let reference = instance.spec.operator_version.clone().unwrap_or_default();
    let operator_version = NamespacedName::new(reference.namespace_or(&key.namespace), reference.name());
    Some(Row { operator_version, locked: lock::of(&instance).map(|lock| lock.plan.to_owned()) })
}

/// The Instance that an object belongs to: by its labels, which every object of a package
/// carries; a cluster-scoped object names only the uid, which is not looked up here.
fn owner_of(object: &Value) -> Option<NamespacedName> {
    let labels = object.get("metadata")?.get("labels")?;
    let name = labels.get(meta::INSTANCE)?.as_str()?;
    Some(NamespacedName::new(meta_str(object, "namespace")?, name))
}
