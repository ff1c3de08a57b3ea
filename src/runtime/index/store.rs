//! The store: the topology, and tables of what cannot be a row. It takes in events; [`super::lister`] and
//! [`super::queries`] answer queries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use interlock_core::api::interlock::{Accounts, Adoptions, Labels, Rules};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_core::kinds::data_plane::flavor::deferred::DeferredChecks;
use interlock_core::kinds::data_plane::flavor::inventory::GatewayInventory;
use interlock_core::kinds::descriptor::Watch;
use interlock_core::kinds::{self, Kinds, capabilities};
use interlock_core::kinds::{INSTANCE, NAMESPACE, OPERATOR_VERSION, fact, link};
use interlock_core::package::Package;
use interlock_core::topology::schema::Side;
use interlock_core::topology::{self, AffectedNodes, Epoch, Graph, KindId, NodeId, ObjectRow};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::affected::{Affected, Concerned, gateways};
use super::instances::{Instances, KeptInstance};
use super::object_bytes;
use super::object_bytes::{Bodies, ObjectBody};
use super::packages::{self, Packages};
use super::row::{is, name};
use crate::cluster::arrivals::Arrivals;
use crate::cluster::tamper::GuardState;
use crate::cluster::watch::WatchChange;

/// The cluster cache of the process. Eventually consistent; shared by reference.
pub struct Store {
    all: Kinds,
    inner: RwLock<Inner>,
    changes: watch::Sender<u64>,
    namespace_changes: watch::Sender<u64>,
    flavor_changes: watch::Sender<u64>,
    /// OperatorVersions that reviews wait for.
    arrivals: Arc<Arrivals>,
    /// Whether whole objects are cached, as controllers need them.
    keep_objects: bool,
    /// Whether a controller reconciles settled Instances on changes.
    looked_at: AtomicBool,
}

/// Computed from an object before the store is locked, as the cost depends on the object.
#[derive(Default)]
struct Prepared {
    package: Option<Package>,
    body: Option<ObjectBody>,
}

impl Prepared {
    fn of(kind: &Gvk, change: &WatchChange, keep_objects: bool) -> Self {
        let (WatchChange::Listed(object) | WatchChange::Applied(object)) = change else {
            return Self::default();
        };
        let is_package = kind.group == OPERATOR_VERSION.group && kind.kind == OPERATOR_VERSION.kind;
        let labelled = object["metadata"]["labels"][meta::HERITAGE] == meta::HERITAGE_VALUE;
        Self {
            package: is_package.then(|| packages::read(object)).flatten(),
            body: (labelled && keep_objects && !is_package).then(|| ObjectBody::of(object)),
        }
    }
}

/// The source of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// A watch, with a controller behind it.
    Watch,
    /// An answer to this process, or a watch without a controller behind it.
    Elsewhere,
}

pub(super) struct Inner {
    pub graph: Graph,
    pub kinds: Ids,
    pub packages: Packages,
    instances: Instances,
    /// Objects of packages.
    pub bodies: Bodies,
    pub labels: HashMap<String, Labels>,
    pub rules: Rules,
    pub accounts: Accounts,
    pub adoptions: Adoptions,
    /// The data of the rules about flavors.
    pub flavors: GatewayInventory,
    /// Whether the policy checks who may override them.
    pub overrides: GuardState,
}

/// Kinds with special handling.
pub(super) struct Ids {
    pub instance: KindId,
    pub operator_version: KindId,
    pub namespace: KindId,
    /// Kinds that affect the flavors of gateways.
    flavored: Vec<KindId>,
    /// Of these, the labelled parts of other kinds, which packages may make too.
    labelled: Vec<KindId>,
}

impl Ids {
    /// Whether a kind is the labelled part of another, which packages may make too.
    fn only_labelled(&self, kind: KindId) -> bool {
        self.labelled.contains(&kind)
    }
}

/// Names of the kinds that affect the flavors of gateways, in the topology.
fn flavored(kinds: Kinds, which: fn(&Watch) -> bool) -> impl Iterator<Item = topology::KindName> {
    let inventory = [capabilities::FLAVORS.name, capabilities::ROUTES.name];
    let watched = kinds.iter().filter_map(|kind| Some((kind.watch.as_ref()?, kind.schema?)));
    watched
        .filter(move |(watch, _)| inventory.contains(&watch.capability.name) && which(watch))
        .map(|(_, schema)| schema.name)
}

impl Store {
    /// An empty store of the objects of these kinds.
    pub fn new(all: Kinds, keep_objects: bool) -> Arc<Self> {
        let mut graph = kinds::graph(all);
        let mut id = |name: topology::KindName| graph.kind(name.group, name.kind);
        let kinds = Ids {
            instance: id(INSTANCE),
            operator_version: id(OPERATOR_VERSION),
            namespace: id(NAMESPACE),
            flavored: flavored(all, |_| true).map(&mut id).collect(),
            labelled: flavored(all, |watch| watch.labelled.is_some()).map(&mut id).collect(),
        };
        let inner = Inner {
            graph,
            kinds,
            packages: Packages::default(),
            instances: Instances::default(),
            bodies: object_bytes::none(),
            labels: HashMap::new(),
            rules: Rules::default(),
            accounts: Accounts::default(),
            adoptions: Adoptions::default(),
            flavors: GatewayInventory::default(),
            overrides: GuardState::default(),
        };
        Arc::new(Self {
            all,
            inner: RwLock::new(inner),
            changes: watch::Sender::new(0),
            namespace_changes: watch::Sender::new(0),
            flavor_changes: watch::Sender::new(0),
            arrivals: Arc::default(),
            keep_objects,
            looked_at: AtomicBool::new(false),
        })
    }

    /// The kinds whose objects it takes in.
    pub fn kinds(&self) -> Kinds {
        self.all
    }

    /// A controller starts or stops to reconcile Instances on changes; on a stop, the store drops the whole
    /// objects of settled ones.
    pub fn looked_at(&self, by_a_controller: bool) {
        self.looked_at.store(by_a_controller, Ordering::SeqCst);
        if !by_a_controller {
            let mut inner = self.write();
            inner.instances.all().iter().for_each(|key| inner.let_go(key));
        }
    }

    /// Ticks after each change of data that admission reads.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes the reviews that wait for an OperatorVersion.
    pub fn arrivals(&self) -> Arc<Arrivals> {
        self.arrivals.clone()
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Inner> {
        // Writers do not panic half-way through a change.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        self.changes.send_modify(|n| *n = n.wrapping_add(1));
    }

    /// The watch of a kind is closed: its cached objects are frozen. Returns the Instances that these
    /// affect.
    pub fn kind_unavailable(&self, kind: &Gvk) -> Vec<Concerned> {
        let mut inner = self.write();
        let kind = inner.graph.kind(&kind.group, &kind.kind);
        inner.graph.kind_unavailable(kind);
        inner.concerned_by(kind).collect()
    }

    /// Drops the objects of a kind without requesters, which may still exist. The labels of Namespaces
    /// stay, as rules depend on them.
    pub fn forget_kind(&self, kind: &Gvk) {
        let mut inner = self.write();
        let forgotten = inner.graph.kind(&kind.group, &kind.kind);
        if inner.kinds.flavored.contains(&forgotten) {
            inner.flavors.forget(&kind.kind);
        }
        for id in inner.graph.forget(forgotten) {
            if forgotten == inner.kinds.operator_version {
                inner.packages.drop(&name(&id));
            } else if forgotten == inner.kinds.instance {
                inner.instances.drop(&name(&id));
            }
            inner.bodies.remove(&id);
        }
    }

    /// A kind is gone, and every object of it with it.
    pub fn kind_gone(&self, kind: &Gvk) -> Affected {
        let mut inner = self.write();
        let id = inner.graph.kind(&kind.group, &kind.kind);
        let dirty = inner.graph.gone(id);
        inner.bury(id, &dirty.gone);
        let concerned = inner.concerned(&dirty.roots).collect();
        let of_namespaces = id == inner.kinds.namespace;
        let of_flavors = inner.kinds.flavored.contains(&id);
        drop(inner);
        self.reported(of_namespaces, of_flavors);
        Affected { concerned, gateways: gateways(&dirty.roots), roots: dirty.roots, gone: dirty.gone }
    }

    /// Takes in an event of a watch. The first event of an epoch makes the kind available, as an ended
    /// epoch delivers none.
    pub fn observe(&self, kind: &Gvk, epoch: Epoch, change: &WatchChange) -> Affected {
        let prepared = Prepared::of(kind, change, self.keep_objects);
        let mut inner = self.write();
        let id = inner.graph.kind(&kind.group, &kind.kind);
        let begins = inner.graph.epoch(id) != Some(epoch);
        if begins {
            inner.graph.kind_available(id, epoch);
        }
        let looked_at = self.looked_at.load(Ordering::SeqCst);
        let from = if looked_at { From::Watch } else { From::Elsewhere };
        let dirty = inner.take(id, epoch, change, self.keep_objects.then_some(from), prepared);
        let again = begins.then(|| inner.concerned_by(id)).into_iter().flatten();
        let concerned = again.chain(inner.concerned(&dirty.roots)).collect();
        let of_namespaces = id == inner.kinds.namespace;
        let of_flavors = inner.kinds.flavored.contains(&id);
        let arrived = inner.operator_version(id, change);
        drop(inner);
        if let Some(key) = arrived {
            self.arrivals.arrived(&key);
        }
        if dirty.news {
            self.reported(of_namespaces, of_flavors);
        }
        Affected { concerned, gateways: gateways(&dirty.roots), roots: dirty.roots, gone: dirty.gone }
    }

    fn reported(&self, of_namespaces: bool, of_flavors: bool) {
        self.tick();
        if of_namespaces {
            self.namespace_changes.send_modify(|n| *n = n.wrapping_add(1));
        }
        if of_flavors {
            self.flavor_changes.send_modify(|n| *n = n.wrapping_add(1));
        }
    }

    /// Takes in an object from an answer to this process; returns the affected Instances and gateways,
    /// `None` without a change. Objects without a watch are not cached, as no event would report their
    /// deletion.
    pub fn answered(&self, change: &WatchChange) -> Option<Affected> {
        let (WatchChange::Applied(object) | WatchChange::Deleted(object)) = change else { return None };
        let gvk = Gvk::of(object)?;
        let prepared = Prepared::of(&gvk, change, self.keep_objects);
        let mut inner = self.write();
        let kind = inner.graph.find_kind(&gvk.group, &gvk.kind)?;
        let epoch = inner.graph.epoch(kind)?;
        let dirty = inner.take(kind, epoch, change, self.keep_objects.then_some(From::Elsewhere), prepared);
        if !dirty.news {
            return None;
        }
        let concerned = inner.concerned(&dirty.roots).collect();
        let of_namespaces = kind == inner.kinds.namespace;
        let of_flavors = inner.kinds.flavored.contains(&kind);
        let arrived = inner.operator_version(kind, change);
        drop(inner);
        if let Some(key) = arrived {
            self.arrivals.arrived(&key);
        }
        self.reported(of_namespaces, of_flavors);
        Some(Affected { concerned, gateways: gateways(&dirty.roots), roots: dirty.roots, gone: dirty.gone })
    }

    /// Pins a settled Instance, as it was read, until [`Self::let_go`].
    pub fn hold(&self, key: &NamespacedName, object: Arc<Value>) {
        self.answered(&WatchChange::Applied(object.clone()));
        self.write().instances.keep(key.clone(), object);
    }

    /// Marks an Instance dirty: a controller reconciles it, even if it is settled and healthy, until
    /// [`Self::trust`].
    pub fn doubt(&self, key: &NamespacedName) {
        self.write().instances.doubt(key.clone());
    }

    /// Marks an Instance clean.
    pub fn trust(&self, key: &NamespacedName) {
        self.write().instances.trust(key);
    }

    /// Unpins an Instance.
    pub fn let_go(&self, key: &NamespacedName) {
        self.write().let_go(key);
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

    /// Takes in an OperatorVersion, as it was read, that exceeded the size budget.
    pub fn keep_package(&self, object: &Value) {
        let Some(package) = packages::read(object) else { return };
        self.write().packages.keep(package);
        self.tick();
    }

    /// Ticks after each change of a Namespace.
    pub fn namespace_changes(&self) -> watch::Receiver<u64> {
        self.namespace_changes.subscribe()
    }

    /// Deployments with a rollout in progress whose previous template is unknown.
    pub fn untold_rollouts(&self) -> Vec<NamespacedName> {
        self.read().flavors.untold()
    }

    /// Sets the result for one: its previous pod template, `None` without pods, or why it is unknown.
    pub fn tell_rollout(&self, deployment: &NamespacedName, found: Result<Option<Value>, String>) {
        let found = found.as_ref().map(Option::as_ref).map_err(String::clone);
        self.write().flavors.tell(deployment, found);
    }

    /// Changes of flavor that admission allowed unread, and would have denied; each once.
    pub fn overlooked(&self) -> Vec<DeferredChecks> {
        self.write().flavors.take_deferred()
    }

    /// Sets the state of the policy on overrides of the rules about flavors.
    pub fn guard_overrides(&self, guard: GuardState) {
        self.write().overrides = guard;
    }

    /// Ticks after each change that affects the flavors of gateways.
    pub fn flavor_changes(&self) -> watch::Receiver<u64> {
        self.flavor_changes.subscribe()
    }

    /// Sets the actions of the rules by namespace; returns whether they changed.
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

    /// Sets the packages' service accounts by namespace; returns whether they changed.
    pub fn set_accounts(&self, accounts: Accounts) -> bool {
        let mut inner = self.write();
        let new = inner.accounts != accounts;
        inner.accounts = accounts;
        new
    }

    /// Sets where plans write objects that no Instance made; returns whether that changed.
    pub fn set_adoptions(&self, adoptions: Adoptions) -> bool {
        let mut inner = self.write();
        let new = inner.adoptions != adoptions;
        inner.adoptions = adoptions;
        new
    }
}

impl Inner {
    /// Applies a change to the graph and, if it is new, to the tables beside it; `keep` is the source of
    /// whole objects, `None` to cache none.
    fn take(
        &mut self,
        kind: KindId,
        epoch: Epoch,
        change: &WatchChange,
        keep: Option<From>,
        prepared: Prepared,
    ) -> AffectedNodes {
        let reported = match change {
            WatchChange::Listing(namespace) => topology::GraphChange::Listing(namespace),
            WatchChange::Listed(object) => topology::GraphChange::Listed(object),
            WatchChange::Applied(object) => topology::GraphChange::Applied(object),
            WatchChange::Deleted(object) => topology::GraphChange::Deleted(object),
            WatchChange::Synced(namespace) => topology::GraphChange::Synced(namespace),
        };
        let there = match change {
            WatchChange::Listed(object) | WatchChange::Applied(object) => Some(object),
            _ => None,
        };
        let known = there.is_some_and(|object| self.is_known(kind, object));
        let dirty = self.graph.apply(kind, epoch, reported);
        if let Some(object) = there.filter(|_| dirty.news && self.kinds.flavored.contains(&kind)) {
            self.flavors.take(object, "");
        }
        if let Some(object) = there.filter(|_| dirty.news) {
            // A write to a settled Instance causes one reconcile: it may have to be undone.
            let look = known && keep == Some(From::Watch) && !dirty.roots.is_empty();
            self.keep(kind, object, prepared, keep.is_some(), look);
        }
        self.bury(kind, &dirty.gone);
        dirty
    }

    /// The OperatorVersion that a change adds or updates.
    fn operator_version(&self, kind: KindId, change: &WatchChange) -> Option<NamespacedName> {
        let (WatchChange::Listed(object) | WatchChange::Applied(object)) = change else { return None };
        let text = |field| meta_str(object, field).unwrap_or_default();
        (kind == self.kinds.operator_version).then(|| NamespacedName::new(text("namespace"), text("name")))
    }

    fn is_known(&self, kind: KindId, object: &Value) -> bool {
        let text = |field| meta_str(object, field).unwrap_or_default();
        self.graph.row(kind, text("namespace"), text("name")).is_some()
    }

    fn let_go(&mut self, key: &NamespacedName) {
        if self.instance(key).is_some_and(|row| is(&row, fact::AT_REST)) {
            self.instances.let_go(key);
        }
    }

    fn keep(&mut self, kind: KindId, object: &Arc<Value>, prepared: Prepared, whole: bool, look: bool) {
        let namespace = meta_str(object, "namespace").unwrap_or_default();
        let name = meta_str(object, "name").unwrap_or_default();
        if kind == self.kinds.operator_version {
            prepared.package.into_iter().for_each(|package| self.packages.keep(package));
        } else if kind == self.kinds.namespace {
            self.labels.insert(name.to_owned(), labels_of(object));
        } else if !whole || self.kinds.only_labelled(kind) {
            // Only controllers read the rest.
        } else if kind == self.kinds.instance {
            let key = NamespacedName::new(namespace, name);
            let rests = self.instance(&key).is_some_and(|row| is(&row, fact::AT_REST));
            match rests && !look {
                true => self.instances.let_go(&key),
                false => self.instances.keep(key, object.clone()),
            }
        } else if let Some(row) = self.graph.row(kind, namespace, name) {
            let id = row.id();
            let mut makers = row.along(Side::Parent, link::MADE_BY).map(|row| row.id());
            let maker = makers.find(|maker| maker.kind == INSTANCE);
            match (prepared.body, maker) {
                // A plan reads objects without a cached maker when it needs them.
                (Some(body), Some(maker)) => {
                    self.bodies.keep(id, &maker.namespace, body.len(), body);
                }
                _ => _ = self.bodies.remove(&id),
            }
        }
    }

    fn bury(&mut self, kind: KindId, gone: &[NodeId]) {
        for id in gone {
            if self.kinds.flavored.contains(&kind) {
                self.flavors.drop(&id.kind.kind, &name(id));
            }
            if kind == self.kinds.operator_version {
                self.packages.drop(&name(id));
            } else if kind == self.kinds.namespace {
                self.labels.remove(&*id.name);
            } else if kind == self.kinds.instance {
                self.instances.drop(&name(id));
            } else {
                self.bodies.remove(id);
            }
        }
    }

    pub(super) fn kept(&self, key: &NamespacedName) -> KeptInstance {
        self.instances.kept(key, self.instance(key).as_ref())
    }

    /// The Instances among roots that need reconciling.
    fn concerned<'r>(&'r self, roots: &'r [NodeId]) -> impl Iterator<Item = Concerned> + 'r {
        roots.iter().filter_map(|id| self.to_do(id))
    }

    /// The Instances that objects of a kind affect and that need reconciling.
    fn concerned_by(&self, kind: KindId) -> impl Iterator<Item = Concerned> + '_ {
        self.graph.concerned_by(kind).filter_map(|id| self.to_do(&id))
    }

    fn to_do(&self, id: &NodeId) -> Option<Concerned> {
        let instance = (id.kind == INSTANCE).then(|| name(id))?;
        let resting = self.instance(&instance).is_some_and(|row| is(&row, fact::AT_REST));
        let rests = matches!(self.kept(&instance), KeptInstance::AtRest { well: true });
        (!rests).then_some(Concerned { instance, resting })
    }

    pub(super) fn instance(&self, key: &NamespacedName) -> Option<ObjectRow<'_>> {
        self.graph.row(self.kinds.instance, &key.namespace, &key.name)
    }

    /// The Instances that refer to an OperatorVersion, even to one that does not exist.
    pub(super) fn users(&self, operator_version: &NamespacedName) -> impl Iterator<Item = ObjectRow<'_>> {
        let NamespacedName { namespace, name } = operator_version;
        self.graph.along(self.kinds.operator_version, namespace, name, Side::Child, link::OPERATOR_VERSION)
    }
}

fn labels_of(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(text).collect()
}
