//! What rules and controllers ask of OperatorVersions, and of the packages that they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use interlock_core::api::object::{Gvk, NamespacedName};
use interlock_core::kinds::fact;
use interlock_core::kinds::row::name;
use interlock_kudo::engine::rendered_kinds;
use interlock_kudo::instance::change::baseline::Baseline;
use interlock_kudo::operator_version::{NAMES_LISTED, PackageLister, PackageUsers};
use interlock_kudo::package::Package;
use serde_json::Value;

use super::packages;
use super::store::Store;

impl PackageLister for Store {
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>> {
        self.read().packages.get(key).cloned()
    }

    fn names_in(&self, namespace: &str) -> Vec<String> {
        self.read().packages.names_in(namespace).take(NAMES_LISTED).map(str::to_owned).collect()
    }

    fn left_out(&self, operator_version: &NamespacedName) -> Option<String> {
        self.read().packages.left_out(operator_version)
    }

    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers {
        let tables = self.read();
        let mut users = PackageUsers::default();
        for row in tables.users(operator_version) {
            users.total += 1;
            let locked = row.word(fact::LOCKED).filter(|plan| !plan.is_empty());
            users.locked.extend(locked.map(|plan| (name(&row.id()), plan.to_owned())));
        }
        users.locked.sort();
        users
    }
}

impl Store {
    /// Takes in an OperatorVersion, as it was read, that exceeded the size budget.
    pub fn keep_package(&self, object: &Value) {
        let Some(package) = packages::read(object) else { return };
        self.write().packages.keep(package);
        self.tick();
    }

    /// The package of the baseline, as last seen.
    pub fn package_of_basis(&self, basis: &Baseline) -> Option<Arc<Package>> {
        self.read().packages.of_basis(basis).cloned()
    }

    /// Existing OperatorVersions beyond the size budget.
    pub fn all_left_out(&self) -> Vec<NamespacedName> {
        self.read().packages.all_left_out()
    }

    /// The kinds that the templates of a package create; `None` for an unknown one.
    pub(super) fn kinds_of_package(&self, package: &NamespacedName) -> Option<BTreeSet<Gvk>> {
        self.operator_version(package).map(|package| rendered_kinds::written_out(&package))
    }
}
