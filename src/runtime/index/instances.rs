//! The cache of Instances beside their rows: whole objects that controllers work on, and marks of settled
//! ones that need a re-check.

use std::collections::HashSet;
use std::sync::Arc;

use interlock_core::api::object::{NamespacedName, weight};
use interlock_core::kinds::row::is_well;
use interlock_core::topology::ObjectRow;
use serde_json::Value;

use super::size_budget::{INSTANCES, Shares};

/// A cached Instance.
#[derive(Clone, Debug)]
pub enum KeptInstance {
    /// All of it, as last seen.
    Whole(Arc<Value>),
    /// It is settled: only its row is cached.
    AtRest {
        /// Whether all objects of its package are healthy.
        well: bool,
    },
    /// It does not exist.
    Nothing,
}

/// Instances by name.
pub(super) struct Instances {
    /// Those that are not settled, and those that a controller read, as far as they fit into the size
    /// budget of their namespace.
    whole: Shares<NamespacedName, Arc<Value>>,
    /// Those with only a row that are marked dirty or not settled.
    dirty: HashSet<NamespacedName>,
}

impl Default for Instances {
    fn default() -> Self {
        Self { whole: Shares::new(INSTANCES), dirty: HashSet::new() }
    }
}

impl Instances {
    /// The cached Instance of this row; `row` is `None` without one.
    pub(super) fn kept(&self, key: &NamespacedName, row: Option<&ObjectRow<'_>>) -> KeptInstance {
        match (self.whole.get(key), row) {
            (Some(object), Some(_)) => KeptInstance::Whole(object.clone()),
            (None, Some(row)) => KeptInstance::AtRest { well: is_well(row) && !self.dirty.contains(key) },
            (_, None) => KeptInstance::Nothing,
        }
    }

    /// Caches an Instance that a controller works on. If it does not fit, the controller must read it.
    pub(super) fn keep(&mut self, key: NamespacedName, object: Arc<Value>) {
        let bytes = weight(&object);
        if !self.whole.keep(key.clone(), &key.namespace, bytes, object) {
            self.dirty.insert(key);
        }
    }

    pub(super) fn unpin(&mut self, key: &NamespacedName) {
        self.whole.remove(key);
    }

    /// Those cached as whole objects.
    pub(super) fn all(&self) -> Vec<NamespacedName> {
        self.whole.keys().cloned().collect()
    }

    pub(super) fn mark_dirty(&mut self, key: NamespacedName) {
        self.dirty.insert(key);
    }

    pub(super) fn mark_clean(&mut self, key: &NamespacedName) {
        self.dirty.remove(key);
    }

    /// The Instance is gone.
    pub(super) fn drop(&mut self, key: &NamespacedName) {
        self.whole.remove(key);
        self.dirty.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_there_to_be_read() {
        let mut instances = Instances::default();
        let large = Arc::new(json!({"spec": {"parameters": {"TEXT": "x".repeat(INSTANCES / 2)}}}));
        let keys = ["a", "b"].map(|name| NamespacedName::new("ns", name));
        for key in &keys {
            instances.keep(key.clone(), large.clone());
        }
        let kept = keys.each_ref().map(|key| instances.whole.get(key).is_some());
        assert_eq!((kept, instances.dirty.contains(&keys[1])), ([true, false], true));
        instances.unpin(&keys[0]);
        instances.keep(keys[1].clone(), large);
        assert!(instances.whole.get(&keys[1]).is_some());
    }
}
