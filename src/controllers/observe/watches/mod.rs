//! Where the events of watches go, and which kinds have to be watched for what packages make.
//!
//! A kind that a package's templates create is watched while an Instance refers to that package:
//! built-in kinds in whole, as health is read from their status; custom kinds by their metadata,
//! as nothing here reads more of them until a plan merges into one, and then reads it by name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use interlock_core::admission::view::Lister as _;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_core::plan::kinds;
use interlock_core::rollout::flavor::subject::GatewayRef;
use interlock_core::topology::kinds::{INSTANCE, INTERLOCK, OPERATOR_VERSION};
use interlock_core::topology::{Epoch, NodeId};
use serde_json::Value;

use super::instances::KeptInstance;
use super::interlocks::Interlocks;
use super::store::Store;
use super::told::{Affected, Concerned};
use crate::cluster::crds::Absence;
use crate::cluster::kinds::is_built_in;
use crate::cluster::queue::Queue;
use crate::cluster::supervisor::{Handle, Needer, Sink, WatchState};
use crate::cluster::watch::WatchChange;
use crate::telemetry::metrics::Metrics;

/// What happens to an Instance at rest, or to what it made, comes in bursts and delays no plan:
/// it is looked at once they are over.
const BURST: Duration = Duration::from_millis(50);
/// What happens to the pods of a gateway comes in bursts, too.
pub const GATEWAY_BURST: Duration = Duration::from_millis(500);

/// Keeps what is seen, tells the queue whom it concerns, and asks for watches.
pub struct Observer {
    store: Arc<Store>,
    interlocks: Arc<Interlocks>,
    /// Where controllers run.
    queue: Option<Arc<Queue<NamespacedName>>>,
    /// Gateways that something happened to, where controllers run.
    gateways: Arc<Queue<GatewayRef>>,
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
    /// Packages of which a kind is not served: their Instances may have made objects of it.
    bereft: HashSet<NamespacedName>,
}

impl Observer {
    /// An observer that has seen nothing.
    pub fn new(
        store: Arc<Store>,
        interlocks: Arc<Interlocks>,
        queue: Option<Arc<Queue<NamespacedName>>>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let (supervisor, demand, gateways) = (OnceLock::new(), Mutex::default(), Arc::default());
        Arc::new(Self { store, interlocks, queue, gateways, supervisor, demand, metrics })
    }

    /// Gateways that something happened to.
    pub fn gateways(&self) -> Arc<Queue<GatewayRef>> {
        self.gateways.clone()
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
            true => {
                demand.bereft.remove(package);
                demand.packages.remove(package)
            }
            false => demand.packages.insert(package.clone(), wanted.clone()),
        };
        self.need(Needer::Package(package.clone()), wanted);
    }

    /// What an Instance needs watched.
    fn look_at_instance(&self, object: &Value) {
        let Some(package) = package_of(object) else { return };
        if !self.demand().packages.contains_key(&package) {
            self.look_at_package(&package);
            self.look_at_unused();
        }
    }

    /// Whether an Instance is seen for the first time; not asked while no package lacks a kind.
    fn is_first(&self, kind: &Gvk, object: &Value) -> bool {
        (kind.group.as_str(), kind.kind.as_str()) == (meta::KUDO_GROUP, "Instance")
            && !self.demand().bereft.is_empty()
            && key_of(object).is_some_and(|key| matches!(self.store.instance(&key), KeptInstance::Nothing))
    }

    fn there(&self, kind: &Gvk, object: &Value) {
        match (kind.group.as_str(), kind.kind.as_str()) {
            (meta::KUDO_GROUP, "Instance") => self.look_at_instance(object),
            (meta::KUDO_GROUP, "OperatorVersion") => {
                key_of(object).into_iter().for_each(|key| self.look_at_package(&key));
            }
            (meta::INTERLOCK_GROUP, "Interlock") => self.interlocks.see(object),
            _ => {}
        }
    }

    /// What the going of an object spares.
    fn gone(&self, id: &NodeId) {
        let key = NamespacedName::new(&*id.namespace, &*id.name);
        if id.kind == INSTANCE {
            let needed = self.demand().instances.remove(&key).is_some();
            if needed {
                self.need(Needer::Instance(key), BTreeSet::new());
            }
            self.look_at_unused();
        } else if id.kind == OPERATOR_VERSION {
            self.look_at_package(&key);
        } else if id.kind == INTERLOCK {
            self.interlocks.gone(&id.name);
        }
    }

    /// A read did not find the Instance of that uid.
    pub fn missed(&self, instance: &NamespacedName, uid: Option<&str>) {
        self.store.forget_instance(instance, uid).into_iter().for_each(|told| self.took(told));
    }

    /// Has everybody look at what came of a change.
    pub fn took(&self, told: Affected) {
        told.gone.iter().for_each(|id| self.gone(id));
        self.concern(told.concerned);
        self.look_at(told.gateways);
    }

    fn look_at_unused(&self) {
        let packages: Vec<NamespacedName> = self.demand().packages.keys().cloned().collect();
        packages.iter().filter(|package| !self.store.is_used(package)).for_each(|p| self.look_at_package(p));
    }

    /// No Instance is followed any more, and so nothing that they make.
    fn follow_nothing(&self) {
        let instances = std::mem::take(&mut self.demand().instances);
        instances.into_keys().for_each(|key| self.need(Needer::Instance(key), BTreeSet::new()));
        self.look_at_unused();
    }

    /// Instances at rest that are well have nothing to do.
    fn enqueue(&self, instances: impl IntoIterator<Item = NamespacedName>) {
        if let Some(queue) = &self.queue {
            let restless = instances.into_iter().filter(|instance| self.store.is_restless(instance));
            restless.for_each(|instance| queue.add(instance));
        }
    }

    fn concern(&self, concerned: Vec<Concerned>) {
        let Some(queue) = &self.queue else { return };
        for Concerned { instance, resting } in concerned {
            queue.add_after(instance, if resting { BURST } else { Duration::ZERO });
        }
    }

    /// The pods of these gateways may run something else now.
    pub fn look_at(&self, gateways: Vec<GatewayRef>) {
        if self.queue.is_some() {
            gateways.into_iter().for_each(|gateway| self.gateways.add_after(gateway, GATEWAY_BURST));
        }
    }

    /// A kind is seen otherwise than before: those who need it may go on, or go without.
    pub fn wake(&self, kind: &Gvk, needer: Needer) {
        match needer {
            Needer::Capability(_) => {}
            Needer::Package(package) => {
                let users = self.store.instances_of(&package);
                if self.absence(kind).is_some() {
                    self.demand().bereft.insert(package);
                    users.iter().for_each(|instance| self.store.doubt(instance));
                } else {
                    self.look_at_lack(&package);
                }
                self.enqueue(users);
            }
            Needer::Instance(instance) => self.enqueue([instance]),
        }
    }

    /// Why the definition of a kind that is asked for is missing or of no use; `None` where it is
    /// not, where nobody knows yet, and for what the API server itself has.
    pub fn absence(&self, kind: &Gvk) -> Option<Absence> {
        if is_built_in(&kind.group) {
            return None;
        }
        match self.supervisor.get()?.watching(kind)?.sight {
            WatchState::Absent(absence) => Some(absence),
            _ => None,
        }
    }

    /// Whether all kinds of a package are served again.
    fn look_at_lack(&self, package: &NamespacedName) {
        let mut demand = self.demand();
        let mut kinds = demand.packages.get(package).into_iter().flatten();
        if !kinds.any(|kind| self.absence(kind).is_some()) {
            demand.bereft.remove(package);
        }
    }

    /// An Instance that is seen for the first time, of a package that lacks a kind.
    fn look_at_bereft(&self, object: &Value) {
        let (Some(package), Some(key)) = (package_of(object), key_of(object)) else { return };
        if self.demand().bereft.contains(&package) {
            self.store.doubt(&key);
            self.enqueue([key]);
        }
    }
}

impl Sink for Observer {
    fn observe(&self, kind: &Gvk, epoch: Epoch, change: WatchChange) {
        self.metrics.watch_told(jiff::Timestamp::now().as_second());
        let there = match &change {
            WatchChange::Applied(object) | WatchChange::Listed(object) => Some(object),
            WatchChange::Listing(_) | WatchChange::Deleted(_) => None,
            WatchChange::Synced(_) => {
                self.metrics.listed(&kind.kind);
                None
            }
        };
        let first = there.is_some_and(|object| self.is_first(kind, object));
        let told = self.store.observe(kind, epoch, &change);
        if let Some(object) = there {
            self.there(kind, object);
        }
        if let Some(object) = there.filter(|_| first) {
            self.look_at_bereft(object);
        }
        self.took(told);
    }

    fn gone(&self, kind: &Gvk) {
        self.took(self.store.kind_gone(kind));
    }

    fn end(&self, kind: &Gvk) {
        self.concern(self.store.kind_unavailable(kind));
    }

    fn forget(&self, kind: &Gvk) {
        self.store.forget_kind(kind);
        if (kind.group.as_str(), kind.kind.as_str()) == (meta::KUDO_GROUP, "Instance") {
            self.follow_nothing();
        }
    }
}

/// The OperatorVersion that an Instance refers to.
fn package_of(object: &Value) -> Option<NamespacedName> {
    let reference = &object["spec"]["operatorVersion"];
    let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
    let namespace = text("namespace").or_else(|| meta_str(object, "namespace"))?;
    Some(NamespacedName::new(namespace, text("name").unwrap_or_default()))
}

fn key_of(object: &Value) -> Option<NamespacedName> {
    Some(NamespacedName::new(meta_str(object, "namespace")?, meta_str(object, "name")?))
}

#[cfg(test)]
mod tests;
