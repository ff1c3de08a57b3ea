//! The packages of a list of objects, and the Instances that use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::admission::lister::KindListers;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
use interlock_core::kinds::listed::ListedObjects;
use serde::Deserialize as _;
use serde_json::Value;

use super::change::lock;
use crate::api::{Instance, OperatorVersion};
use crate::operator_version::{NAMES_LISTED, PackageLister, PackageUsers};
use crate::package::Package;

/// OperatorVersions, and who uses them.
#[derive(Clone, Debug, Default)]
pub struct ListedPackages {
    versions: BTreeMap<NamespacedName, Arc<Package>>,
    users: BTreeMap<NamespacedName, PackageUsers>,
}

impl ListedPackages {
    /// None.
    pub fn empty() -> Arc<dyn ListedObjects> {
        Arc::new(Self::default())
    }

    fn instance(&mut self, name: NamespacedName, instance: &Instance) {
        let Some(version) = &instance.spec.operator_version else { return };
        let version = NamespacedName::new(version.namespace_or(&name.namespace), version.name());
        let users = self.users.entry(version).or_default();
        users.total += 1;
        if let Some(lock) = lock::of(instance) {
            users.locked.push((name, lock.plan.to_owned()));
            users.locked.sort();
        }
    }
}

impl ListedObjects for ListedPackages {
    fn add(&mut self, key: &ObjectKey, object: &Value, namespace: &str) -> Result<(), serde_json::Error> {
        let name = NamespacedName::new(key.namespace.as_deref().unwrap_or(namespace), key.name.clone());
        if key.gvk == Gvk::new(meta::KUDO_API_VERSION, "OperatorVersion") {
            let version = OperatorVersion::deserialize(object)?;
            self.versions.insert(name.clone(), Arc::new(Package::new(name, version.spec)));
        } else if key.gvk == Gvk::new(meta::KUDO_API_VERSION, "Instance") {
            self.instance(name, &Instance::deserialize(object)?);
        }
        Ok(())
    }

    fn listers(self: Arc<Self>, listers: KindListers) -> KindListers {
        listers.with::<dyn PackageLister>(self)
    }

    fn copied(&self) -> Arc<dyn ListedObjects> {
        Arc::new(self.clone())
    }
}

impl PackageLister for ListedPackages {
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
