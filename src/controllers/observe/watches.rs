//! Where the events of watches go, and which kinds have to be watched for what packages make.
//!
//! A kind that a package's templates create is watched while an Instance refers to that package:
//! built-in kinds in whole, as health is read from their status; custom kinds by their metadata,
//! as nothing here reads more of them until a plan merges into one, and then reads it by name.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;

use super::interlocks::Interlocks;
use super::store::Store;
use crate::admission::view::View as _;
use crate::api::meta;
use crate::api::object::{Gvk, NamespacedName, meta_str};
use crate::cluster::queue::Queue;
use crate::cluster::supervisor::{Epoch, Handle, Needer, Sink};
use crate::cluster::watch::Change;
use crate::plan::kinds;
use crate::telemetry::metrics::Metrics;

/// Keeps what is seen, tells the queue whom it concerns, and asks for watches.
pub struct Observer {
    store: Arc<Store>,
    interlocks: Arc<Interlocks>,
    /// Where controllers run.
    queue: Option<Arc<Queue<NamespacedName>>>,
    /// Set once, before anything is observed.
    supervisor: OnceLock<Handle>,
    demand: Mutex<Demand>,
    metrics: Arc<Metrics>,
}

/// What was asked for.
#[derive(Default)]
struct Demand {
    packages: HashMap<NamespacedName, BTreeSet<Gvk>>,
    /// Kinds that an Instance was seen to make beyond those of its package.
    instances: HashMap<NamespacedName, BTreeSet<Gvk>>,
}

impl Observer {
    /// An observer that has seen nothing.
    pub fn new(
        store: Arc<Store>,
        interlocks: Arc<Interlocks>,
        queue: Option<Arc<Queue<NamespacedName>>>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let (supervisor, demand) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { store, interlocks, queue, supervisor, demand, metrics })
    }

    /// Where watches are asked for.
    pub fn ask(&self, supervisor: Handle) {
        // Said once; a second would ask the same one.
        let _ = self.supervisor.set(supervisor);
    }

    fn demand(&self) -> MutexGuard<'_, Demand> {
        // Changes of the maps do not panic half-way.
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An Instance makes an object of this kind.
    pub fn instance_makes(&self, instance: &NamespacedName, package: &NamespacedName, kind: &Gvk) {
        let mut demand = self.demand();
        if demand.packages.get(package).is_some_and(|kinds| kinds.contains(kind)) {
            return;
        }
        let kinds = demand.instances.entry(instance.clone()).or_default();
        if kinds.insert(kind.clone()) {
            self.need(Needer::Instance(instance.clone()), kinds.clone());
        }
    }

    /// Kinds that an Instance may have made.
    pub fn kinds_of(&self, instance: &NamespacedName, package: &NamespacedName) -> BTreeSet<Gvk> {
        let demand = self.demand();
        let of_package = demand.packages.get(package).into_iter().flatten();
        of_package.chain(demand.instances.get(instance).into_iter().flatten()).cloned().collect()
    }

    fn need(&self, needer: Needer, kinds: BTreeSet<Gvk>) {
        if let (Some(supervisor), Some(_)) = (self.supervisor.get(), &self.queue) {
            supervisor.need(needer, kinds);
        }
    }

    /// Asks for the kinds of a package that is used, and no more for one that is not.
    fn look_at_package(&self, package: &NamespacedName) {
        let wanted = match self.store.is_used(package) {
            true => self.store.operator_version(package).map(|package| kinds::of(&package)),
            false => Some(BTreeSet::new()),
        };
        // A package that is not known, yet or any more, makes nothing new, and what it made stays.
        let Some(wanted) = wanted else { return };
        let mut demand = self.demand();
        let before = demand.packages.get(package);
        if before.is_some_and(|before| *before == wanted) || before.is_none() && wanted.is_empty() {
            return;
        }
        match wanted.is_empty() {
            true => demand.packages.remove(package),
            false => demand.packages.insert(package.clone(), wanted.clone()),
        };
        self.need(Needer::Package(package.clone()), wanted);
    }

    fn see_instance(&self, change: &Change) {
        let Some(key) = self.store.see_instance(change) else { return };
        match change {
            Change::Applied(object) => {
                let package = package_of(&key, object);
                if !self.demand().packages.contains_key(&package) {
                    self.look_at_package(&package);
                    self.look_at_unused();
                }
            }
            Change::Deleted(_) => {
                if self.demand().instances.remove(&key).is_some() {
                    self.need(Needer::Instance(key.clone()), BTreeSet::new());
                }
                self.look_at_unused();
            }
            Change::Synced => {}
        }
        self.enqueue([key]);
    }

    fn look_at_unused(&self) {
        let packages: Vec<NamespacedName> = self.demand().packages.keys().cloned().collect();
        packages.iter().filter(|package| !self.store.is_used(package)).for_each(|p| self.look_at_package(p));
    }

    fn enqueue(&self, instances: impl IntoIterator<Item = NamespacedName>) {
        if let Some(queue) = &self.queue {
            instances.into_iter().for_each(|instance| queue.add(instance));
        }
    }

    /// Those who need something may go on.
    pub fn wake(&self, needer: Needer) {
        match needer {
            Needer::Capability(_) => {}
            Needer::Package(package) => self.enqueue(self.store.instances_of(&package)),
            Needer::Instance(instance) => self.enqueue([instance]),
        }
    }
}

impl Sink for Observer {
    fn observe(&self, kind: &Gvk, _epoch: Epoch, change: Change) {
        self.metrics.watch_told(jiff::Timestamp::now().as_second());
        match (kind.group.as_str(), kind.kind.as_str()) {
            (meta::KUDO_GROUP, "Instance") => self.see_instance(&change),
            (meta::KUDO_GROUP, "OperatorVersion") => {
                if let Some(key) = self.store.see_operator_version(&change) {
                    self.look_at_package(&key);
                    self.enqueue(self.store.instances_of(&key));
                }
            }
            (meta::INTERLOCK_GROUP, "Interlock") => self.interlocks.see(&change),
            ("", "Namespace") => {
                if let Some(name) = self.store.see_namespace(&change) {
                    self.enqueue(self.store.instances_in(&name));
                }
            }
            _ => {}
        }
        let (Change::Applied(object) | Change::Deleted(object)) = &change else { return };
        if self.queue.is_some() && is_made_by_a_package(object) {
            let owner = self.store.see_child(&change);
            self.enqueue(owner);
        }
    }

    fn forget(&self, _kind: &Gvk, objects: Vec<Arc<Value>>) {
        objects.iter().for_each(|object| self.store.forget_child(object));
    }
}

fn is_made_by_a_package(object: &Value) -> bool {
    object["metadata"]["labels"][meta::HERITAGE] == meta::HERITAGE_VALUE
}

/// The OperatorVersion that an Instance refers to.
fn package_of(instance: &NamespacedName, object: &Value) -> NamespacedName {
    let reference = &object["spec"]["operatorVersion"];
    let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
    NamespacedName::new(
        text("namespace").unwrap_or(meta_str(object, "namespace").unwrap_or(&instance.namespace)),
        text("name").unwrap_or_default(),
    )
}
