//! Routes the events of watches, and requests watches for the objects of packages.
//!
//! A kind that a package's templates create is watched while an Instance refers to that package:
//! built-in kinds in whole, as health is read from their status; custom kinds by their metadata,
//! as nothing here reads more of them until a plan merges into one, and then reads it by name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_core::kinds::inventory;
use interlock_core::kinds::row::name;
use interlock_core::kinds::{INSTANCE, INTERLOCK, Kind};
use interlock_core::topology::{Epoch, NodeId};
use serde_json::Value;

use super::affected::{Affected, Concerned};
use super::gateways::{self, GatewayQueue};
use super::instances::KeptInstance;
use super::interlocks::Interlocks;
use super::packages::OPERATOR_VERSION;
use super::store::Store;
use crate::cluster::crds::Absence;
use crate::cluster::discovery::is_built_in;
use crate::cluster::supervisor::{Handle, KindRequester, Sink, WatchState};
use crate::cluster::watch::WatchChange;
use crate::runtime::queue::Queue;
use crate::telemetry::metrics::Metrics;

/// Events of a settled Instance, or of its objects, come in bursts and delay no plan: they are collected.
const BURST: Duration = Duration::from_millis(50);

/// Stores watched objects, requests watches, and enqueues the affected Instances, Gateways and objects with a
/// reconciler of their own.
pub struct Observer {
    store: Arc<Store>,
    interlocks: Arc<Interlocks>,
    /// Where controllers run.
    queue: Option<Arc<Queue<NamespacedName>>>,
    /// Gateways with new events, where controllers run.
    gateways: Arc<GatewayQueue>,
    /// Objects with new events of the kinds that have a reconciler of their own.
    described: Vec<DescribedQueue>,
    /// Set once, before anything is observed.
    supervisor: OnceLock<Handle>,
    demand: Mutex<Demand>,
    metrics: Arc<Metrics>,
}

/// A kind with a reconciler of its own, and its objects with new events.
pub type DescribedQueue = (&'static Kind, Arc<Queue<NamespacedName>>);

/// Requested watches.
#[derive(Default)]
struct Demand {
    packages: HashMap<NamespacedName, BTreeSet<Gvk>>,
    /// Further kinds that an Instance was seen to make, beyond those of its package.
    instances: HashMap<NamespacedName, BTreeSet<Gvk>>,
    /// Packages with an unserved kind: their Instances may have made objects of it.
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
        let described = store.kinds().iter().filter(|kind| kind.reconciler.is_some());
        let described: Vec<DescribedQueue> = described.map(|kind| (*kind, Arc::default())).collect();
        if queue.is_some() {
            store.follow(&wakes(described.clone()));
        }
        Arc::new(Self { store, interlocks, queue, gateways, described, supervisor, demand, metrics })
    }

    /// Gateways with new events.
    pub fn gateways(&self) -> Arc<GatewayQueue> {
        self.gateways.clone()
    }

    /// The kinds with a reconciler of their own, and their queues.
    pub fn described(&self) -> &[DescribedQueue] {
        &self.described
    }

    /// Sets the supervisor that watches are requested from.
    pub fn ask(&self, supervisor: Handle) {
        // Called once; a second call would set the same one.
        let _ = self.supervisor.set(supervisor);
    }

    fn demand(&self) -> MutexGuard<'_, Demand> {
        // Changes of the maps do not panic half-way.
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an Instance makes objects of this kind.
    pub fn instance_makes(&self, instance: &NamespacedName, package: &NamespacedName, kind: &Gvk) {
        let mut demand = self.demand();
        if demand.packages.get(package).is_some_and(|kinds| kinds.contains(kind)) {
            return;
        }
        let kinds = demand.instances.entry(instance.clone()).or_default();
        if kinds.insert(kind.clone()) {
            self.need(KindRequester::Instance(instance.clone()), kinds.clone());
        }
    }

    /// Kinds that an Instance may have made.
    pub fn kinds_of(&self, instance: &NamespacedName, package: &NamespacedName) -> BTreeSet<Gvk> {
        let demand = self.demand();
        let of_package = demand.packages.get(package).into_iter().flatten();
        of_package.chain(demand.instances.get(instance).into_iter().flatten()).cloned().collect()
    }

    fn need(&self, requester: KindRequester, kinds: BTreeSet<Gvk>) {
        if let (Some(supervisor), Some(_)) = (self.supervisor.get(), &self.queue) {
            supervisor.request(requester, kinds);
        }
    }

    /// Requests the kinds of a package that is in use, and releases those of one that is not.
    fn look_at_package(&self, package: &NamespacedName) {
        let wanted = match self.store.is_used(package) {
            true => self.store.kinds_of_package(package),
            false => Some(BTreeSet::new()),
        };
        // An unknown package makes nothing new, and its objects stay.
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
        self.need(KindRequester::Package(package.clone()), wanted);
    }

    /// Requests the watches of an Instance.
    fn look_at_instance(&self, object: &Value) {
        let Some(package) = package_of(object) else { return };
        if !self.demand().packages.contains_key(&package) {
            self.look_at_package(&package);
            self.look_at_unused();
        }
    }

    /// Whether an Instance is new; false while no package lacks a kind.
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

    /// Releases the watches of a deleted object.
    fn gone(&self, id: &NodeId) {
        let key = NamespacedName::new(&*id.namespace, &*id.name);
        if id.kind == INSTANCE {
            let needed = self.demand().instances.remove(&key).is_some();
            if needed {
                self.need(KindRequester::Instance(key), BTreeSet::new());
            }
            self.look_at_unused();
        } else if id.kind == OPERATOR_VERSION {
            self.look_at_package(&key);
        } else if id.kind == INTERLOCK {
            self.interlocks.gone(&id.name);
        }
    }

    /// Handles a read that did not find the Instance of that uid.
    pub fn missed(&self, instance: &NamespacedName, uid: Option<&str>) {
        self.store.forget_instance(instance, uid).into_iter().for_each(|reported| self.took(reported));
    }

    /// Enqueues the objects that a change affects.
    pub fn took(&self, told: Affected) {
        told.gone.iter().for_each(|id| self.gone(id));
        self.enqueue_instances(told.concerned);
        self.enqueue_gateways(&told.roots);
        self.enqueue_described(&told.roots);
    }

    fn look_at_unused(&self) {
        let packages: Vec<NamespacedName> = self.demand().packages.keys().cloned().collect();
        packages.iter().filter(|package| !self.store.is_used(package)).for_each(|p| self.look_at_package(p));
    }

    /// Instances are no longer watched: releases the watches of their objects.
    fn follow_nothing(&self) {
        let instances = std::mem::take(&mut self.demand().instances);
        instances.into_keys().for_each(|key| self.need(KindRequester::Instance(key), BTreeSet::new()));
        self.look_at_unused();
    }

    /// Enqueues Instances, except settled healthy ones.
    fn enqueue(&self, instances: impl IntoIterator<Item = NamespacedName>) {
        if let Some(queue) = &self.queue {
            let to_reconcile = instances.into_iter().filter(|instance| self.store.needs_reconcile(instance));
            to_reconcile.for_each(|instance| queue.add(instance));
        }
    }

    fn enqueue_instances(&self, concerned: Vec<Concerned>) {
        let Some(queue) = &self.queue else { return };
        for Concerned { instance, resting } in concerned {
            queue.add_after(instance, if resting { BURST } else { Duration::ZERO });
        }
    }

    /// Enqueues gateways whose pods may have changed.
    fn enqueue_gateways(&self, roots: &[NodeId]) {
        if self.queue.is_some() {
            gateways::enqueue(&self.gateways, roots);
        }
    }

    /// Enqueues affected objects of the kinds that have a reconciler of their own.
    fn enqueue_described(&self, roots: &[NodeId]) {
        for (kind, queue) in &self.described {
            let of_kind = |id: &&NodeId| kind.schema.is_some_and(|schema| id.kind == schema.name);
            roots.iter().filter(of_kind).for_each(|id| queue.add_after(name(id), BURST));
        }
    }

    /// Handles a new watch state of a kind: its requester may continue, or must do without it.
    pub fn wake(&self, kind: &Gvk, requester: KindRequester) {
        match requester {
            KindRequester::Capability(_) => {}
            KindRequester::Package(package) => {
                let users = self.store.instances_of(&package);
                if self.absence(kind).is_some() {
                    self.demand().bereft.insert(package);
                    users.iter().for_each(|instance| self.store.mark_dirty(instance));
                } else {
                    self.look_at_lack(&package);
                }
                self.enqueue(users);
            }
            KindRequester::Instance(instance) => self.enqueue([instance]),
        }
    }

    /// Why a requested kind is not usable; `None` where it is, while that is unknown, and for kinds built
    /// into the API server.
    pub fn absence(&self, kind: &Gvk) -> Option<Absence> {
        if is_built_in(&kind.group) {
            return None;
        }
        match self.supervisor.get()?.watching(kind)?.watch_state {
            WatchState::Absent(absence) => Some(absence),
            _ => None,
        }
    }

    /// Clears the mark of a package once all its kinds are served again.
    fn look_at_lack(&self, package: &NamespacedName) {
        let mut demand = self.demand();
        let mut kinds = demand.packages.get(package).into_iter().flatten();
        if !kinds.any(|kind| self.absence(kind).is_some()) {
            demand.bereft.remove(package);
        }
    }

    /// Marks a new Instance of a package that lacks a kind.
    fn look_at_bereft(&self, object: &Value) {
        let (Some(package), Some(key)) = (package_of(object), key_of(object)) else { return };
        if self.demand().bereft.contains(&package) {
            self.store.mark_dirty(&key);
            self.enqueue([key]);
        }
    }
}

/// Enqueues the objects that changes of what domains keep affect.
fn wakes(described: Vec<DescribedQueue>) -> inventory::Affected {
    Arc::new(move |kind, name| {
        let of_kind = |(own, _): &&DescribedQueue| own.schema.is_some_and(|schema| schema.name == kind);
        described.iter().filter(of_kind).for_each(|(_, queue)| queue.add_after(name.clone(), BURST));
    })
}

impl Sink for Observer {
    fn observe(&self, kind: &Gvk, epoch: Epoch, change: WatchChange) {
        self.metrics.watch_event(jiff::Timestamp::now().as_second());
        let there = match &change {
            WatchChange::Applied(object) | WatchChange::Listed(object) => Some(object),
            WatchChange::Listing(_) | WatchChange::Deleted(_) => None,
            WatchChange::Synced(_) => {
                self.metrics.listed(&kind.kind);
                None
            }
        };
        let first = there.is_some_and(|object| self.is_first(kind, object));
        let reported = self.store.observe(kind, epoch, &change);
        if let Some(object) = there {
            self.there(kind, object);
        }
        if let Some(object) = there.filter(|_| first) {
            self.look_at_bereft(object);
        }
        self.took(reported);
    }

    fn gone(&self, kind: &Gvk) {
        self.took(self.store.kind_gone(kind));
    }

    fn end(&self, kind: &Gvk) {
        self.enqueue_instances(self.store.kind_unavailable(kind));
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
