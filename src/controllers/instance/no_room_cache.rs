//! The Instances that leave no room even for the least status.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;

use super::view::InstanceView;

/// With the hash of the spec of each: with that nothing of it is scheduled again.
#[derive(Debug, Default)]
pub struct NoRoomCache(Mutex<HashMap<NamespacedName, SpecHash>>);

impl NoRoomCache {
    fn all(&self) -> MutexGuard<'_, HashMap<NamespacedName, SpecHash>> {
        // Changes of the map do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn remember(&self, subject: &InstanceView) {
        self.all().insert(subject.key.clone(), subject.hash.clone());
    }

    /// Whether this Instance, as it is, is one of them.
    pub fn holds(&self, subject: &InstanceView) -> bool {
        subject.plan().is_empty() && self.all().get(&subject.key).is_some_and(|hash| *hash == subject.hash)
    }

    /// The Instance is gone.
    pub fn forget(&self, key: &NamespacedName) {
        self.all().remove(key);
    }
}
