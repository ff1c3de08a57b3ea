//! What the store keeps beside the graph, and how one change of an object updates both.

use std::collections::HashMap;
use std::sync::Arc;

use interlock_core::api::interlock::{Accounts, Adoptions, DependenciesHashes, Labels, Rules};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_core::kinds;
use interlock_core::kinds::descriptor::Kept;
use interlock_core::kinds::inventory::Inventories;
use interlock_core::kinds::row::{is, name};
use interlock_core::kinds::{INSTANCE, Kinds, NAMESPACE, fact, link};
use interlock_core::topology;
use interlock_core::topology::schema::Side;
use interlock_core::topology::{AffectedNodes, Epoch, Graph, KindId, NodeId, ObjectRow};
use serde_json::Value;

use super::affected::Concerned;
use super::instances::{Instances, KeptInstance};
use super::kept_objects::KeptObjects;
use super::object_bytes;
use super::object_bytes::{Bodies, ObjectBody};
use super::packages::{self, OPERATOR_VERSION, Packages, ReadPackage};
use crate::cluster::tamper::GuardState;
use crate::cluster::watch::WatchChange;
/// Computed from an object before the store is locked, as the cost depends on the object.
#[derive(Default)]
pub(super) struct Decoded {
    package: Option<ReadPackage>,
    body: Option<ObjectBody>,
    kept: Option<ObjectBody>,
}

impl Decoded {
    /// `kept` = what reconcilers read of the kind.
    pub(super) fn of(kind: &Gvk, change: &WatchChange, keep_objects: bool, kept: Option<&Kept>) -> Self {
        let (WatchChange::Listed(object) | WatchChange::Applied(object)) = change else {
            return Self::default();
        };
        let is_package = kind.group == OPERATOR_VERSION.group && kind.kind == OPERATOR_VERSION.kind;
        let labelled = object["metadata"]["labels"][meta::HERITAGE] == meta::HERITAGE_VALUE;
        Self {
            package: is_package.then(|| packages::read(object)).flatten(),
            body: (labelled && keep_objects && !is_package).then(|| ObjectBody::of(object)),
            kept: kept.map(|kept| ObjectBody::of(&kept.project(object))),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSource {
    /// A watch, with a controller behind it.
    Watch,
    /// An answer to this process, or a watch without a controller behind it.
    Elsewhere,
}

/// The graph, and tables of what cannot be a row of it.
pub(super) struct Tables {
    pub graph: Graph,
    pub kinds: Ids,
    pub packages: Packages,
    pub instances: Instances,
    /// Objects of packages.
    pub bodies: Bodies,
    /// Objects that reconcilers read.
    pub kept_objects: KeptObjects,
    pub labels: HashMap<String, Labels>,
    pub rules: Rules,
    pub accounts: Accounts,
    pub adoptions: Adoptions,
    pub dependencies_hashes: DependenciesHashes,
    /// What the domains keep.
    pub inventories: Inventories,
    /// Whether the policy checks who may override them.
    pub overrides: GuardState,
    /// The state of the policy on guarded flavor sources.
    pub guarded_sources: GuardState,
}

/// Kinds with special handling.
pub(super) struct Ids {
    pub instance: KindId,
    pub operator_version: KindId,
    pub namespace: KindId,
    /// Labelled parts of other kinds, which packages may make too.
    labelled: Vec<KindId>,
}

impl Ids {
    /// Whether a kind is the labelled part of another, which packages may make too.
    fn only_labelled(&self, kind: KindId) -> bool {
        self.labelled.contains(&kind)
    }
}

/// Names of the kinds of which only labelled objects are watched, in the topology.
fn labelled(kinds: Kinds) -> impl Iterator<Item = topology::KindName> {
    let watched = kinds.iter().filter(|kind| kind.watch.is_some_and(|watch| watch.labelled.is_some()));
    watched.filter_map(|kind| Some(kind.schema?.name))
}

impl Tables {
    /// Empty tables of the objects of these kinds.
    pub(super) fn new(all: Kinds) -> Self {
        let mut graph = kinds::graph(all);
        let mut id = |name: topology::KindName| graph.kind(name.group, name.kind);
        let kinds = Ids {
            instance: id(INSTANCE),
            operator_version: id(OPERATOR_VERSION),
            namespace: id(NAMESPACE),
            labelled: labelled(all).map(&mut id).collect(),
        };
        let kept_objects = KeptObjects::new(all, &mut graph);
        Self {
            graph,
            kinds,
            packages: Packages::default(),
            instances: Instances::default(),
            bodies: object_bytes::none(),
            kept_objects,
            labels: HashMap::new(),
            rules: Rules::default(),
            accounts: Accounts::default(),
            adoptions: Adoptions::default(),
            dependencies_hashes: DependenciesHashes::default(),
            inventories: kinds::inventories(all),
            overrides: GuardState::default(),
            guarded_sources: GuardState::default(),
        }
    }

    /// Applies a change to the graph and, if it is new, to the tables beside it; `keep` is the source of
    /// whole objects, `None` to cache none.
    pub(super) fn apply(
        &mut self,
        kind: KindId,
        epoch: Epoch,
        change: &WatchChange,
        keep: Option<ChangeSource>,
        decoded: Decoded,
    ) -> AffectedNodes {
        let graph_change = match change {
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
        let dirty = self.graph.apply(kind, epoch, graph_change);
        if let Some(object) = there.filter(|_| dirty.news) {
            let named = self.graph.name_of(kind);
            self.inventories.of(named).for_each(|inventory| inventory.take(object));
            // A write to a settled Instance causes one reconcile: it may have to be undone.
            let look = known && keep == Some(ChangeSource::Watch) && !dirty.roots.is_empty();
            self.keep(kind, object, decoded, keep.is_some(), look);
        }
        self.drop_objects(kind, &dirty.gone);
        dirty
    }

    /// Whether a kind affects what controllers follow of what domains keep.
    pub(super) fn is_followed(&self, kind: KindId) -> bool {
        self.inventories.are_followed(self.graph.name_of(kind))
    }

    /// The OperatorVersion that a change adds or updates.
    pub(super) fn operator_version(&self, kind: KindId, change: &WatchChange) -> Option<NamespacedName> {
        let (WatchChange::Listed(object) | WatchChange::Applied(object)) = change else { return None };
        let text = |field| meta_str(object, field).unwrap_or_default();
        (kind == self.kinds.operator_version).then(|| NamespacedName::new(text("namespace"), text("name")))
    }

    fn is_known(&self, kind: KindId, object: &Value) -> bool {
        let text = |field| meta_str(object, field).unwrap_or_default();
        self.graph.row(kind, text("namespace"), text("name")).is_some()
    }

    pub(super) fn unpin(&mut self, key: &NamespacedName) {
        if self.instance(key).is_some_and(|row| is(&row, fact::AT_REST)) {
            self.instances.unpin(key);
        }
    }

    fn keep(&mut self, kind: KindId, object: &Arc<Value>, decoded: Decoded, whole: bool, look: bool) {
        if let Some(kept) = decoded.kept {
            self.kept_objects.keep(kind, object, kept);
        }
        let namespace = meta_str(object, "namespace").unwrap_or_default();
        let name = meta_str(object, "name").unwrap_or_default();
        if kind == self.kinds.operator_version {
            decoded.package.into_iter().for_each(|package| self.packages.keep(package));
        } else if kind == self.kinds.namespace {
            self.labels.insert(name.to_owned(), labels_of(object));
        } else if !whole || self.kinds.only_labelled(kind) {
            // Only controllers read the rest.
        } else if kind == self.kinds.instance {
            let key = NamespacedName::new(namespace, name);
            let settled = self.instance(&key).is_some_and(|row| is(&row, fact::AT_REST));
            match settled && !look {
                true => self.instances.unpin(&key),
                false => self.instances.keep(key, object.clone()),
            }
        } else if let Some(row) = self.graph.row(kind, namespace, name) {
            let id = row.id();
            let mut makers = row.along(Side::Parent, link::MADE_BY).map(|row| row.id());
            let maker = makers.find(|maker| maker.kind == INSTANCE);
            match (decoded.body, maker) {
                // A plan reads objects without a cached maker when it needs them.
                (Some(body), Some(maker)) => {
                    self.bodies.keep(id, &maker.namespace, body.len(), body);
                }
                _ => _ = self.bodies.remove(&id),
            }
        }
    }

    pub(super) fn drop_objects(&mut self, kind: KindId, gone: &[NodeId]) {
        for id in gone {
            self.kept_objects.drop(kind, &id.namespace, &id.name);
            self.inventories.of(&id.kind).for_each(|inventory| inventory.drop(&id.kind.kind, &name(id)));
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

    /// The object of a name, where more than its row is cached.
    pub(super) fn whole(&self, id: &NodeId) -> Option<Arc<Value>> {
        match self.kept(&name(id)) {
            KeptInstance::Whole(object) if id.kind == INSTANCE => Some(object),
            _ => None,
        }
    }

    pub(super) fn kept(&self, key: &NamespacedName) -> KeptInstance {
        self.instances.kept(key, self.instance(key).as_ref())
    }

    /// The Instances among roots that need reconciling.
    pub(super) fn concerned<'r>(&'r self, roots: &'r [NodeId]) -> impl Iterator<Item = Concerned> + 'r {
        roots.iter().filter_map(|id| self.concerned_instance(id))
    }

    /// The Instances that objects of a kind affect and that need reconciling.
    pub(super) fn concerned_by(&self, kind: KindId) -> impl Iterator<Item = Concerned> + '_ {
        self.graph.concerned_by(kind).filter_map(|id| self.concerned_instance(&id))
    }

    fn concerned_instance(&self, id: &NodeId) -> Option<Concerned> {
        let instance = (id.kind == INSTANCE).then(|| name(id))?;
        let resting = self.instance(&instance).is_some_and(|row| is(&row, fact::AT_REST));
        let settled = matches!(self.kept(&instance), KeptInstance::AtRest { well: true });
        (!settled).then_some(Concerned { instance, resting })
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
