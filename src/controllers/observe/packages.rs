//! Packages as they were read: what has the same content is kept once, whatever it is called.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use serde_json::Value;
use tracing::warn;

use crate::api::kudo::OperatorVersionSpec;
use crate::api::object::NamespacedName;
use crate::plan::basis::Basis;
use crate::plan::limits::Words;
use crate::plan::package::{Package, PackageHash};

/// Packages by the names of their OperatorVersions.
#[derive(Default)]
pub(super) struct Packages {
    known: HashMap<NamespacedName, Arc<Package>>,
    by_hash: HashMap<PackageHash, Weak<Package>>,
}

impl Packages {
    /// Reads an OperatorVersion. Of one that cannot be read, what was known before stays.
    pub(super) fn read(&mut self, key: NamespacedName, object: &Value) {
        let spec = object.get("spec").cloned().unwrap_or_default();
        match serde_json::from_value::<OperatorVersionSpec>(spec) {
            Ok(spec) => {
                let package = Package::new(key.clone(), spec);
                let hash = package.hash.clone();
                let known = self.by_hash.get(&hash).and_then(Weak::upgrade);
                let shared = known.as_deref().unwrap_or(&package);
                let package = Arc::new(shared.under(key.clone(), Words::of(object)));
                self.by_hash.retain(|_, package| package.strong_count() > 0);
                self.by_hash.entry(hash).or_insert_with(|| Arc::downgrade(&package));
                self.known.insert(key, package);
            }
            Err(error) => warn!(operator_version = %key, %error, "an OperatorVersion could not be read"),
        }
    }

    pub(super) fn get(&self, key: &NamespacedName) -> Option<&Arc<Package>> {
        self.known.get(key)
    }

    /// The package that a basis is of.
    pub(super) fn of_basis(&self, basis: &Basis) -> Option<&Arc<Package>> {
        self.known.get(basis.version_among(self.known.keys())?)
    }

    /// The OperatorVersion is gone.
    pub(super) fn drop(&mut self, key: &NamespacedName) {
        self.known.remove(key);
    }
}
