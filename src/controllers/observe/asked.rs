//! What controllers ask of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::body::Body;
use super::instances::Kept;
use super::row::name;
use super::store::Store;
use super::told::gateways;
use crate::api::interlock::{Account, Labels};
use crate::api::object::{NamespacedName, ObjectKey};
use crate::plan::basis::Basis;
use crate::plan::package::Package;
use crate::rollout::flavor::sources::Source;
use crate::rollout::flavor::subject::Subject;
use crate::topology::Id;
use crate::topology::declare::Side;
use crate::topology::kinds::{DATA_PLANE, GUARDED_DEPLOYMENT, link};

impl Store {
    /// What the flavors of gateways may come from; of these, those without the label (Secrets,
    /// which nobody watches, where they are not `known`); and what has our label to no use.
    pub fn sources_due(&self, known: &BTreeSet<Source>) -> (BTreeSet<Source>, Vec<Source>, Vec<Source>) {
        let inner = self.read();
        let wanted = inner.flavors.wanted_sources();
        let labelled = |source: &Source| inner.flavors.sources().holds(source) || known.contains(source);
        let due = wanted.iter().filter(|source| !labelled(source)).cloned().collect();
        let unused = inner.flavors.our_sources().difference(&wanted).cloned().collect();
        (wanted, due, unused)
    }

    /// Every gateway.
    pub fn gateways(&self) -> Vec<Subject> {
        let inner = self.read();
        let kinds = [DATA_PLANE, GUARDED_DEPLOYMENT].map(|kind| inner.graph.find_kind(kind.group, kind.kind));
        let rows = kinds.into_iter().flatten().flat_map(|kind| inner.graph.rows(kind));
        gateways(&rows.map(|row| row.id()).collect::<Vec<_>>())
    }

    /// Names and labels of all Namespaces.
    pub fn namespaces(&self) -> BTreeMap<String, Labels> {
        self.read().labels.iter().map(|(name, labels)| (name.clone(), labels.clone())).collect()
    }

    /// The service account that packages act as in a namespace.
    pub fn account(&self, namespace: &str) -> Account {
        let inner = self.read();
        inner.accounts.of(namespace, inner.labels.get(namespace))
    }

    /// What is known of an Instance.
    pub fn instance(&self, key: &NamespacedName) -> Kept {
        self.read().kept(key)
    }

    /// Which Instance of that name is known.
    pub fn uid_of(&self, key: &NamespacedName) -> Option<String> {
        self.read().instance(key).and_then(|row| row.uid())
    }

    /// Every Instance.
    pub fn instances(&self) -> Vec<NamespacedName> {
        let inner = self.read();
        inner.graph.rows(inner.kinds.instance).map(|row| name(&row.id())).collect()
    }

    /// How many Instances are known.
    pub fn count_instances(&self) -> usize {
        let inner = self.read();
        inner.graph.rows(inner.kinds.instance).count()
    }

    /// Every Instance that has something to do.
    pub fn restless(&self) -> Vec<NamespacedName> {
        let inner = self.read();
        let keys = inner.graph.rows(inner.kinds.instance).map(|row| name(&row.id()));
        keys.filter(|key| !matches!(inner.kept(key), Kept::AtRest { well: true })).collect()
    }

    /// The Instances that refer to an OperatorVersion.
    pub fn instances_of(&self, operator_version: &NamespacedName) -> Vec<NamespacedName> {
        let inner = self.read();
        let mut users: Vec<_> = inner.users(operator_version).map(|row| name(&row.id())).collect();
        users.sort();
        users
    }

    /// The OperatorVersion that an Instance refers to, also one that is not there.
    pub fn package_of(&self, instance: &NamespacedName) -> Option<NamespacedName> {
        let inner = self.read();
        let row = inner.instance(instance)?;
        row.along(Side::Parent, link::OPERATOR_VERSION).next().map(|row| name(&row.id()))
    }

    /// The package of what was carried out, as last seen.
    pub fn package_of_basis(&self, basis: &Basis) -> Option<Arc<Package>> {
        self.read().packages.of_basis(basis).cloned()
    }

    /// Whether any Instance refers to an OperatorVersion.
    pub fn is_used(&self, operator_version: &NamespacedName) -> bool {
        self.read().users(operator_version).next().is_some()
    }

    /// Whether an Instance has something to do, or needs a look.
    pub fn is_restless(&self, key: &NamespacedName) -> bool {
        !matches!(self.instance(key), Kept::AtRest { well: true })
    }

    /// An object of a package as last seen.
    pub fn get_child(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        let inner = self.read();
        let kind = inner.graph.find_kind(&key.gvk.group, &key.gvk.kind)?;
        let row = inner.graph.row(kind, key.namespace.as_deref().unwrap_or_default(), &key.name)?;
        inner.bodies.get(&row.id()).and_then(Body::open)
    }

    /// Objects of some kinds that belong to an Instance, in order.
    pub fn children_of(&self, instance: &NamespacedName, kinds: &[&str]) -> Vec<Arc<Value>> {
        let inner = self.read();
        let Some(row) = inner.instance(instance) else { return Vec::new() };
        let made = row.along(Side::Child, link::MADE_BY).map(|row| row.id());
        let mut made: Vec<Id> = made.filter(|id| kinds.contains(&&*id.kind.kind)).collect();
        made.sort();
        made.iter().filter_map(|id| inner.bodies.get(id)?.open()).collect()
    }
}
