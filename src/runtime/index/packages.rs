//! Cached packages: equal content is stored once, whatever its name, and each namespace has a size budget.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_kudo::api::OperatorVersionSpec;
use interlock_kudo::instance::change::baseline::Baseline;
pub use interlock_kudo::names::OPERATOR_VERSION;
use interlock_kudo::package::time_limits::Words;
use interlock_kudo::package::{Package, PackageHash};
use serde_json::Value;
use tracing::warn;

use super::size_budget::{PACKAGES, Shares};

/// Packages by the names of their OperatorVersions.
pub(super) struct Packages {
    known: Shares<NamespacedName, Arc<Package>>,
    by_hash: HashMap<PackageHash, Weak<Package>>,
    /// Existing OperatorVersions that exceeded the size budget of their namespace.
    left_out: HashSet<NamespacedName>,
}

impl Default for Packages {
    fn default() -> Self {
        Self { known: Shares::new(PACKAGES), by_hash: HashMap::new(), left_out: HashSet::new() }
    }
}

/// A package that is read and not kept yet.
pub(super) type ReadPackage = Package;

/// An OperatorVersion as a package; decodes without a lock. `None` where it is invalid.
pub(super) fn read(object: &Value) -> Option<Package> {
    let text = |field| meta_str(object, field).unwrap_or_default();
    let key = NamespacedName::new(text("namespace"), text("name"));
    let spec = object.get("spec").cloned().unwrap_or_default();
    match serde_json::from_value::<OperatorVersionSpec>(spec) {
        Ok(spec) => Some(Package::new(key.clone(), spec).under(key, Words::of(object))),
        Err(error) => {
            warn!(operator_version = %key, %error, "an OperatorVersion could not be read");
            None
        }
    }
}

impl Packages {
    /// Caches a package. An invalid update leaves the previous one.
    pub(super) fn keep(&mut self, package: Package) {
        let (key, hash, weight) = (package.key.clone(), package.hash.clone(), package.weight);
        let known = self.by_hash.get(&hash).and_then(Weak::upgrade);
        let package = Arc::new(match known {
            Some(known) => known.under(key.clone(), package.limits),
            None => package,
        });
        self.by_hash.retain(|_, package| package.strong_count() > 0);
        if self.known.keep(key.clone(), &key.namespace, weight, package.clone()) {
            self.by_hash.entry(hash).or_insert_with(|| Arc::downgrade(&package));
            self.left_out.remove(&key);
        } else if self.left_out.insert(key.clone()) {
            warn!(operator_version = %key, "{}", over(&key.namespace));
        }
    }

    pub(super) fn get(&self, key: &NamespacedName) -> Option<&Arc<Package>> {
        self.known.get(key)
    }

    pub(super) fn names_in(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.known.keys().filter(move |key| key.namespace == namespace).map(|key| key.name.as_str())
    }

    /// Why an existing OperatorVersion is not used, for people.
    pub(super) fn left_out(&self, key: &NamespacedName) -> Option<String> {
        self.left_out.contains(key).then(|| over(&key.namespace))
    }

    /// All that are left out, in order.
    pub(super) fn all_left_out(&self) -> Vec<NamespacedName> {
        let mut all: Vec<_> = self.left_out.iter().cloned().collect();
        all.sort();
        all
    }

    pub(super) fn of_basis(&self, basis: &Baseline) -> Option<&Arc<Package>> {
        self.known.get(basis.version_among(self.known.keys())?)
    }

    /// The OperatorVersion is gone.
    pub(super) fn drop(&mut self, key: &NamespacedName) {
        self.known.remove(key);
        self.left_out.remove(key);
    }
}

fn over(namespace: &str) -> String {
    format!(
        "the OperatorVersions of namespace {namespace} take more than {} MiB of memory, and those read last are left \
         out; delete what no Instance uses (`kubectl get operatorversions -n {namespace}`)",
        PACKAGES >> 20
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(namespace: &str, name: &str, size: usize) -> Package {
        let text = name.repeat(size / name.len());
        let object = json!({
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"operator": {"name": "op"}, "version": "1.0.0", "templates": {"a.yaml": text}},
        });
        read(&object).unwrap()
    }

    #[test]
    fn what_does_not_fit_waits_with_a_reason_until_there_is_room() {
        let mut packages = Packages::default();
        let names: Vec<NamespacedName> =
            (0..5).map(|i| NamespacedName::new("a", format!("version-{i}").as_str())).collect();
        for name in &names {
            packages.keep(package("a", &name.name, 1 << 20));
        }
        let kept: Vec<bool> = names.iter().map(|name| packages.get(name).is_some()).collect();
        assert_eq!(kept, [true, true, true, false, false], "9 MiB each");
        let why = packages.left_out(&names[3]).unwrap();
        assert!(why.contains("namespace a") && why.contains("32 MiB") && why.contains("delete"), "{why}");
        assert_eq!(packages.left_out(&names[0]), None);
        packages.keep(package("b", "version-4", 1 << 20));
        assert!(
            packages.get(&NamespacedName::new("b", "version-4")).is_some(),
            "a neighbour has its own share"
        );
        packages.drop(&names[0]);
        packages.keep(package("a", "version-3", 1 << 20));
        assert_eq!((packages.get(&names[3]).is_some(), packages.left_out(&names[3])), (true, None));
        packages.drop(&names[4]);
        assert_eq!(packages.left_out(&names[4]), None, "it is gone");
    }
}
