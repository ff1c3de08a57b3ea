//! The store: the topology, and tables of what cannot be a row. It takes in events; [`super::lister`] and
//! [`super::queries`] answer queries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use interlock_core::admission::lister::KindListers;
use interlock_core::api::interlock::{Accounts, Adoptions, DependenciesHashes, Rules};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
use interlock_core::kinds::descriptor::Kept;
use interlock_core::kinds::inventory::{self, ReadKinds};
use interlock_core::kinds::row::name;
use interlock_core::kinds::{INSTANCE, Kinds};
use interlock_core::topology::{Epoch, GroupKind, KindId};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::affected::{Affected, Concerned};
use super::instances::KeptInstance;
use super::tables::{ChangeSource, Decoded, Tables};
use crate::cluster::arrivals::Arrivals;
use crate::cluster::tamper::GuardState;
use crate::cluster::watch::WatchChange;

/// The cluster cache of the process. Eventually consistent; shared by reference.
pub struct Store {
    all: Kinds,
    tables: RwLock<Tables>,
    changes: watch::Sender<u64>,
    namespace_changes: watch::Sender<u64>,
    flavor_changes: watch::Sender<u64>,
    /// OperatorVersions that reviews wait for.
    arrivals: Arc<Arrivals>,
    /// Whether whole objects are cached, as controllers need them.
    keep_objects: bool,
    /// Whether a controller reconciles settled Instances on changes.
    reconciling: AtomicBool,
}

impl Store {
    /// An empty store of the objects of these kinds.
    pub fn new(all: Kinds, keep_objects: bool) -> Arc<Self> {
        Arc::new(Self {
            all,
            tables: RwLock::new(Tables::new(all)),
            changes: watch::Sender::new(0),
            namespace_changes: watch::Sender::new(0),
            flavor_changes: watch::Sender::new(0),
            arrivals: Arc::default(),
            keep_objects,
            reconciling: AtomicBool::new(false),
        })
    }

    /// The kinds whose objects it takes in.
    pub fn kinds(&self) -> Kinds {
        self.all
    }

    /// A controller starts or stops to reconcile Instances on changes; on a stop, the store drops the whole
    /// objects of settled ones.
    pub fn set_reconciling(&self, by_a_controller: bool) {
        self.reconciling.store(by_a_controller, Ordering::SeqCst);
        if !by_a_controller {
            let mut tables = self.write();
            tables.instances.all().iter().for_each(|key| tables.unpin(key));
        }
    }

    /// Names the objects that changes of what domains keep affect.
    pub fn follow(&self, affected: &inventory::Affected) {
        self.write().inventories.follow(affected);
    }

    /// What domains keep of all objects, and of which kinds that is.
    pub fn listers(&self, read: Arc<dyn ReadKinds>) -> KindListers {
        self.read().inventories.listers(KindListers::default()).with::<dyn ReadKinds>(read)
    }

    /// Ticks after each change of data that admission reads.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes the reviews that wait for an OperatorVersion.
    pub fn arrivals(&self) -> Arc<Arrivals> {
        self.arrivals.clone()
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Tables> {
        // Writers do not panic half-way through a change.
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of the objects of a kind of the topology, where controllers run.
    fn kept(&self, group: &str, kind: &str) -> Option<&'static Kept> {
        let of = self.all.iter().filter(|_| self.keep_objects).find(|of| {
            of.schema.is_some_and(|schema| schema.name.group == group && schema.name.kind == kind)
        });
        of?.watch?.kept
    }

    pub(super) fn tick(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// The watch of a kind is closed: its cached objects are frozen. Returns the Instances that these
    /// affect.
    pub fn kind_unavailable(&self, kind: &Gvk) -> Vec<Concerned> {
        let mut tables = self.write();
        let kind = tables.graph.kind(&kind.group, &kind.kind);
        tables.graph.kind_unavailable(kind);
        tables.concerned_by(kind).collect()
    }

    /// Drops the objects of a kind without requesters, which may still exist. The labels of Namespaces
    /// stay, as rules depend on them.
    pub fn forget_kind(&self, kind: &Gvk) {
        let mut tables = self.write();
        let forgotten = tables.graph.kind(&kind.group, &kind.kind);
        let name_of = GroupKind::new(&kind.group, &kind.kind);
        tables.inventories.of(&name_of).for_each(|inventory| inventory.forget(&kind.kind));
        for id in tables.graph.forget(forgotten) {
            if forgotten == tables.kinds.operator_version {
                tables.packages.drop(&name(&id));
            } else if forgotten == tables.kinds.instance {
                tables.instances.drop(&name(&id));
            }
            tables.bodies.remove(&id);
            tables.kept_objects.drop(forgotten, &id.namespace, &id.name);
        }
    }

    /// A kind is gone, and every object of it with it.
    pub fn kind_gone(&self, kind: &Gvk) -> Affected {
        let mut tables = self.write();
        let id = tables.graph.kind(&kind.group, &kind.kind);
        let dirty = tables.graph.gone(id);
        tables.drop_objects(id, &dirty.gone);
        let concerned = tables.concerned(&dirty.roots).collect();
        let of_namespaces = id == tables.kinds.namespace;
        let of_flavors = tables.is_followed(id);
        drop(tables);
        self.notify(of_namespaces, of_flavors);
        Affected { concerned, roots: dirty.roots, gone: dirty.gone }
    }

    /// Takes in an event of a watch. The first event of an epoch makes the kind available, as an ended
    /// epoch delivers none.
    pub fn observe(&self, kind: &Gvk, epoch: Epoch, change: &WatchChange) -> Affected {
        let decoded = Decoded::of(kind, change, self.keep_objects, self.kept(&kind.group, &kind.kind));
        let mut tables = self.write();
        let id = tables.graph.kind(&kind.group, &kind.kind);
        let begins = tables.graph.epoch(id) != Some(epoch);
        if begins {
            tables.graph.kind_available(id, epoch);
        }
        let reconciling = self.reconciling.load(Ordering::SeqCst);
        let from = if reconciling { ChangeSource::Watch } else { ChangeSource::Elsewhere };
        let dirty = tables.apply(id, epoch, change, self.keep_objects.then_some(from), decoded);
        let again = begins.then(|| tables.concerned_by(id)).into_iter().flatten();
        let concerned = again.chain(tables.concerned(&dirty.roots)).collect();
        let of_namespaces = id == tables.kinds.namespace;
        let of_flavors = tables.is_followed(id);
        let arrived = tables.operator_version(id, change);
        drop(tables);
        if let Some(key) = arrived {
            self.arrivals.arrived(&key);
        }
        if dirty.news {
            self.notify(of_namespaces, of_flavors);
        }
        Affected { concerned, roots: dirty.roots, gone: dirty.gone }
    }

    fn notify(&self, of_namespaces: bool, of_flavors: bool) {
        self.tick();
        if of_namespaces {
            self.namespace_changes.send_modify(|n| *n = n.wrapping_add(1));
        }
        if of_flavors {
            self.flavor_changes.send_modify(|n| *n = n.wrapping_add(1));
        }
    }

    /// Takes in an object from an answer to this process; returns what it affects, `None`
    /// without a change. Objects without a watch are not cached, as no event would report their
    /// deletion.
    pub fn answered(&self, change: &WatchChange) -> Option<Affected> {
        let (WatchChange::Applied(object) | WatchChange::Deleted(object)) = change else { return None };
        let gvk = Gvk::of(object)?;
        let decoded = Decoded::of(&gvk, change, self.keep_objects, self.kept(&gvk.group, &gvk.kind));
        let tables = self.write();
        let kind = tables.graph.find_kind(&gvk.group, &gvk.kind)?;
        self.take_in(tables, kind, change, decoded)
    }

    fn take_in(
        &self,
        mut tables: RwLockWriteGuard<'_, Tables>,
        kind: KindId,
        change: &WatchChange,
        decoded: Decoded,
    ) -> Option<Affected> {
        let epoch = tables.graph.epoch(kind)?;
        let dirty =
            tables.apply(kind, epoch, change, self.keep_objects.then_some(ChangeSource::Elsewhere), decoded);
        if !dirty.news {
            return None;
        }
        let concerned = tables.concerned(&dirty.roots).collect();
        let of_namespaces = kind == tables.kinds.namespace;
        let of_flavors = tables.is_followed(kind);
        let arrived = tables.operator_version(kind, change);
        drop(tables);
        if let Some(key) = arrived {
            self.arrivals.arrived(&key);
        }
        self.notify(of_namespaces, of_flavors);
        Some(Affected { concerned, roots: dirty.roots, gone: dirty.gone })
    }

    /// Takes in an object that the API server answered to a reconciler's write, or to a read of it; returns what that
    /// affects. Where only labelled objects of a kind are watched, one without the label counts as gone.
    pub fn saw(&self, object: &Arc<Value>) -> Vec<Affected> {
        self.saw_as(object, |has_label| match has_label {
            true => WatchChange::Applied(object.clone()),
            false => WatchChange::Deleted(object.clone()),
        })
    }

    /// Takes in that an object of this uid does not exist any more: this process has deleted it, or did not find it.
    pub fn saw_gone(&self, key: &ObjectKey, uid: &str) -> Vec<Affected> {
        let object = Arc::new(json!({
            "apiVersion": key.gvk.api_version(), "kind": key.gvk.kind,
            "metadata": {"namespace": key.namespace, "name": key.name, "uid": uid},
        }));
        self.saw_as(&object, |_| WatchChange::Deleted(object.clone()))
    }

    fn saw_as(&self, object: &Arc<Value>, change: impl Fn(bool) -> WatchChange) -> Vec<Affected> {
        let Some(gvk) = Gvk::of(object) else { return Vec::new() };
        let kinds = self.read().kept_objects.kinds_of(&gvk.group, &gvk.kind, object);
        let take_in = |(kind, kept, has_label): (KindId, &'static Kept, bool)| {
            let change = change(has_label);
            let decoded = Decoded::of(&gvk, &change, false, Some(kept));
            self.take_in(self.write(), kind, &change, decoded)
        };
        kinds.into_iter().filter_map(take_in).collect()
    }

    /// Pins an Instance, as it was read, until [`Self::unpin`]; returns its newest known state, as a watch may
    /// have reported a later one since.
    pub fn pin(&self, key: &NamespacedName, object: Arc<Value>) -> Arc<Value> {
        self.answered(&WatchChange::Applied(object.clone()));
        let mut tables = self.write();
        let late = tables.instance(key).is_some_and(|row| row.is_newer_than(&object));
        match (late, tables.kept(key)) {
            (true, KeptInstance::Whole(newest)) => newest,
            // The later state is settled: there is nothing to do for it.
            (true, _) => object,
            (false, _) => {
                tables.instances.keep(key.clone(), object.clone());
                object
            }
        }
    }

    /// Marks an Instance dirty: a controller reconciles it, even if it is settled and healthy, until
    /// [`Self::mark_clean`].
    pub fn mark_dirty(&self, key: &NamespacedName) {
        self.write().instances.mark_dirty(key.clone());
    }

    /// Marks an Instance clean.
    pub fn mark_clean(&self, key: &NamespacedName) {
        self.write().instances.mark_clean(key);
    }

    /// Unpins an Instance.
    pub fn unpin(&self, key: &NamespacedName) {
        self.write().unpin(key);
    }

    /// Drops the Instance of that uid, which a read did not find; a newer one of its name stays. `None`
    /// where it was dropped before.
    pub fn forget_instance(&self, key: &NamespacedName, uid: Option<&str>) -> Option<Affected> {
        let object = json!({
            "apiVersion": meta::KUDO_API_VERSION, "kind": INSTANCE.kind,
            "metadata": {"namespace": key.namespace, "name": key.name, "uid": uid},
        });
        self.answered(&WatchChange::Deleted(Arc::new(object)))
    }

    /// Ticks after each change of a Namespace.
    pub fn namespace_changes(&self) -> watch::Receiver<u64> {
        self.namespace_changes.subscribe()
    }

    /// Sets the state of the policy on overrides of the rules about flavors.
    pub fn guard_overrides(&self, guard: GuardState) {
        self.write().overrides = guard;
    }

    /// Sets the state of the policy on guarded flavor sources.
    pub fn guard_sources(&self, guard: GuardState) {
        let mut tables = self.write();
        if tables.guarded_sources != guard {
            tables.guarded_sources = guard;
            drop(tables);
            self.flavor_changes.send_modify(|n| *n = n.wrapping_add(1));
        }
    }

    /// Whether that policy is in force; `None` while that is not known.
    pub fn are_sources_guarded(&self) -> Option<bool> {
        match &self.read().guarded_sources {
            GuardState::Intact => Some(true),
            GuardState::Broken(_) => Some(false),
            GuardState::Unknown => None,
        }
    }

    /// Ticks after each change that affects the flavors of gateways.
    pub fn flavor_changes(&self) -> watch::Receiver<u64> {
        self.flavor_changes.subscribe()
    }

    /// Sets the actions of the rules by namespace; returns whether they changed.
    pub fn set_rules(&self, rules: Rules) -> bool {
        let mut tables = self.write();
        if tables.rules == rules {
            return false;
        }
        tables.rules = rules;
        drop(tables);
        self.tick();
        true
    }

    /// Sets the packages' service accounts by namespace; returns whether they changed.
    pub fn set_accounts(&self, accounts: Accounts) -> bool {
        let mut tables = self.write();
        let new = tables.accounts != accounts;
        tables.accounts = accounts;
        new
    }

    /// Sets where plans write objects that no Instance made; returns whether that changed.
    pub fn set_adoptions(&self, adoptions: Adoptions) -> bool {
        let mut tables = self.write();
        let new = tables.adoptions != adoptions;
        tables.adoptions = adoptions;
        new
    }

    /// Sets what counts in the hashes of pods' dependencies; returns whether that changed.
    pub fn set_dependencies_hashes(&self, hashes: DependenciesHashes) -> bool {
        let mut tables = self.write();
        let new = tables.dependencies_hashes != hashes;
        tables.dependencies_hashes = hashes;
        new
    }
}
