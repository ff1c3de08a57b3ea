//! The inventories of runs in progress, as this process last read or wrote them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::api::inventory::ObjectInventory;
use interlock_core::api::object::NamespacedName;

use super::view::InstanceView;

#[derive(Clone, Debug, Default)]
pub struct KeptInventory {
    /// What is listed.
    pub inventory: ObjectInventory,
    /// The ControllerRevisions, by name, with their uids.
    pub parts: BTreeMap<String, String>,
}

impl KeptInventory {
    /// Whether there is none.
    pub fn is_absent(&self) -> bool {
        self.parts.is_empty()
    }
}

/// Bytes of an inventory as text that is remembered; larger ones are read again.
const LONGEST: usize = 4 << 10;
/// Inventories that are remembered.
const MOST: usize = 1024;

/// Inventories of runs in progress, as this process last read or wrote them: no other process writes them while it leads.
#[derive(Debug, Default)]
pub struct InventoryCache(Mutex<HashMap<NamespacedName, (String, KeptInventory)>>);

impl InventoryCache {
    /// Forgets the inventory of an Instance.
    pub fn forget(&self, key: &NamespacedName) {
        self.all().remove(key);
    }

    /// Forgets all of them: another process may lead from now on.
    pub fn clear(&self) {
        self.all().clear();
    }

    /// The inventory of an Instance, if it is known.
    pub fn get(&self, subject: &InstanceView) -> Option<KeptInventory> {
        let all = self.all();
        all.get(&subject.key).filter(|(uid, _)| uid == subject.uid()).map(|(_, kept)| kept.clone())
    }

    /// Remembers the inventory of an Instance.
    pub fn put(&self, subject: &InstanceView, kept: &KeptInventory, bytes: usize) {
        let mut all = self.all();
        if bytes <= LONGEST && all.len() < MOST {
            all.insert(subject.key.clone(), (subject.uid().to_owned(), kept.clone()));
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<NamespacedName, (String, KeptInventory)>> {
        // No code that holds the lock panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
