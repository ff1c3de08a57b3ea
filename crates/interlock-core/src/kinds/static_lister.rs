//! A static lister over a list of objects: for `interlock check`, tests and benchmarks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::capabilities::DATA_PLANES;
use super::data_plane::GatewayLister;
use super::namespace::NamespaceLister;
use super::operator_version::{NAMES_LISTED, PackageLister, PackageUsers};
use crate::admission::lister::{CacheState, KindListers, Lister};
use crate::api::interlock::{Actions, Labels, Rules};
use crate::api::kudo::{Instance, OperatorVersion};
use crate::api::meta;
use crate::api::object::{Gvk, NamespacedName, ObjectKey};
use crate::api::revision::Revisions;
use crate::api::rule::RuleGroup;
use crate::api::stamp::SpecHash;
use crate::kinds::data_plane::flavor::gateway_ref::GatewayRef;
use crate::kinds::data_plane::flavor::inventory::{FlavorDependent, GatewayContext, GatewayInventory};
use crate::kinds::data_plane::flavor::sources::FlavorSource;
use crate::kinds::instance::change::lock;
use crate::package::Package;

/// An unreadable object of a known kind.
#[derive(Debug, Error)]
#[error("{key} cannot be read: {source}; correct the field that it names")]
pub struct UnreadableObject {
    /// The object.
    pub key: String,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

/// A lister over a fixed list of objects.
#[derive(Clone, Default)]
pub struct StaticLister {
    objects: Arc<StaticObjects>,
    listers: KindListers,
    /// Whether another operator carries DataPlanes out.
    leaves_data_planes: bool,
    /// Whether OperatorVersions that are referred to must be in the list.
    requires_references: bool,
}

/// The objects, as far as rules read them.
#[derive(Clone, Debug, Default)]
struct StaticObjects {
    versions: BTreeMap<NamespacedName, Arc<Package>>,
    users: BTreeMap<NamespacedName, PackageUsers>,
    terminating: BTreeSet<String>,
    labels: BTreeMap<String, Labels>,
    rules: Rules,
    flavors: GatewayInventory,
    revisions: Revisions,
    /// Whether the list contains objects that flavors could depend on.
    has_flavor_objects: bool,
}

impl StaticLister {
    /// Adds an object; ignores kinds that no rule reads. `namespace` is the default for an absent one.
    pub fn add(&mut self, object: &Value, namespace: &str) -> Result<(), UnreadableObject> {
        self.change(|objects| objects.add(object, namespace))
    }

    /// Sets the actions of the rules by namespace; without them the defaults hold.
    pub fn set_rules(&mut self, rules: Rules) {
        self.change(|objects| objects.rules = rules);
    }

    /// Refuses references to OperatorVersions that are not in the list: nothing comes later.
    pub fn require_references(&mut self) {
        self.requires_references = true;
    }

    /// Sets whether Interlock carries DataPlanes out; without it, it does.
    pub fn carries_out_data_planes(&mut self, is_on: bool) {
        self.leaves_data_planes = !is_on;
    }

    /// Changes the objects in place: the listers hold no reference meanwhile.
    fn change<T>(&mut self, change: impl FnOnce(&mut StaticObjects) -> T) -> T {
        self.listers = KindListers::default();
        let changed = change(Arc::make_mut(&mut self.objects));
        self.listers = KindListers::default()
            .with::<dyn PackageLister>(self.objects.clone())
            .with::<dyn NamespaceLister>(self.objects.clone())
            .with::<dyn GatewayLister>(self.objects.clone());
        changed
    }
}

impl Lister for StaticLister {
    fn actions(&self, namespace: &str) -> Actions {
        let actions = self.objects.rules.within(self.objects.labels.get(namespace));
        if self.requires_references { actions.denying(RuleGroup::References) } else { actions }
    }

    fn cache(&self, capability: &str) -> CacheState {
        match capability == DATA_PLANES.name && self.leaves_data_planes {
            true => CacheState::Unavailable("another operator carries them out".to_owned()),
            false => CacheState::Synced,
        }
    }

    fn kinds(&self) -> &KindListers {
        &self.listers
    }
}

impl StaticObjects {
    fn add(&mut self, object: &Value, namespace: &str) -> Result<(), UnreadableObject> {
        let Some(key) = ObjectKey::of(object) else { return Ok(()) };
        let unreadable = |source| UnreadableObject { key: key.to_string(), source };
        let own = key.namespace.clone().unwrap_or_else(|| namespace.to_owned());
        let name = NamespacedName::new(own.clone(), key.name.clone());
        if key.gvk == Gvk::new(meta::KUDO_API_VERSION, "OperatorVersion") {
            let version = OperatorVersion::deserialize(object).map_err(unreadable)?;
            self.versions.insert(name.clone(), Arc::new(Package::new(name, version.spec)));
        } else if key.gvk == Gvk::new(meta::KUDO_API_VERSION, "Instance") {
            let instance = Instance::deserialize(object).map_err(unreadable)?;
            self.instance(&own, name, &instance);
        } else if key.gvk == Gvk::new("v1", "Namespace") {
            self.namespace(key.name.clone(), object).map_err(unreadable)?;
        } else if Revisions::is(object) {
            self.revisions.add(object, &own);
        } else {
            self.flavors.take(object, namespace);
            self.has_flavor_objects = true;
        }
        Ok(())
    }

    fn namespace(&mut self, name: String, object: &Value) -> Result<(), serde_json::Error> {
        if object.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null()) {
            self.terminating.insert(name.clone());
        }
        let labels = object.pointer("/metadata/labels").map(Option::<Labels>::deserialize).transpose()?;
        self.labels.insert(name, labels.flatten().unwrap_or_default());
        Ok(())
    }

    fn instance(&mut self, namespace: &str, name: NamespacedName, instance: &Instance) {
        let Some(version) = &instance.spec.operator_version else { return };
        let version = NamespacedName::new(version.namespace_or(namespace), version.name());
        let users = self.users.entry(version).or_default();
        users.total += 1;
        if let Some(lock) = lock::of(instance) {
            users.locked.push((name, lock.plan.to_owned()));
            users.locked.sort();
        }
    }
}

impl PackageLister for StaticObjects {
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>> {
        self.versions.get(key).cloned()
    }

    fn names_in(&self, namespace: &str) -> Vec<String> {
        let own = self.versions.keys().filter(|key| key.namespace == namespace);
        own.take(NAMES_LISTED).map(|key| key.name.clone()).collect()
    }

    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers {
        self.users.get(operator_version).cloned().unwrap_or_default()
    }
}

impl NamespaceLister for StaticObjects {
    fn namespace_terminating(&self, namespace: &str) -> bool {
        self.terminating.contains(namespace)
    }
}

impl GatewayLister for StaticObjects {
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        let gateway_context = self.flavors.context_of(gateway);
        match self.has_flavor_objects {
            true => gateway_context,
            false => GatewayContext { routes: GatewayContext::default().routes, ..gateway_context },
        }
    }

    fn live_spec(&self, data_plane: &NamespacedName, uid: &str, hash: &SpecHash) -> Option<String> {
        self.revisions.spec(data_plane, uid, hash)
    }

    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.flavors.dependents(source)
    }
}
