//! What is kept of Instances beside their rows: whole those that controllers have something to do
//! with; of those at rest, which are not to be trusted.

use std::collections::HashSet;
use std::sync::Arc;

use interlock_core::api::object::NamespacedName;
use interlock_core::plan::rendered::weight;
use interlock_core::topology::ObjectRow;
use serde_json::Value;

use super::row::is_well;
use super::share::{INSTANCES, Shares};

/// What is kept of an Instance.
#[derive(Clone, Debug)]
pub enum KeptInstance {
    /// All of it, as last seen.
    Whole(Arc<Value>),
    /// It is at rest: its row.
    AtRest {
        /// Whether all that its package made is as it should be.
        well: bool,
    },
    /// Nothing: it is not there.
    Nothing,
}

/// Instances by name.
pub(super) struct Instances {
    /// Those that are not at rest, and those that a controller asked for, as far as they fit into the
    /// share of their namespace.
    whole: Shares<NamespacedName, Arc<Value>>,
    /// Those of which only the row is kept, that something may be wrong with or that are not at rest.
    doubted: HashSet<NamespacedName>,
}

impl Default for Instances {
    fn default() -> Self {
        Self { whole: Shares::new(INSTANCES), doubted: HashSet::new() }
    }
}

impl Instances {
    /// What is kept of the one that has this row, or none.
    pub(super) fn kept(&self, key: &NamespacedName, row: Option<&ObjectRow<'_>>) -> KeptInstance {
        match (self.whole.get(key), row) {
            (Some(object), Some(_)) => KeptInstance::Whole(object.clone()),
            (None, Some(row)) => KeptInstance::AtRest { well: is_well(row) && !self.doubted.contains(key) },
            (_, None) => KeptInstance::Nothing,
        }
    }

    /// Keeps one that a controller has something to do with. Where it does not fit, the controller is
    /// to read it.
    pub(super) fn keep(&mut self, key: NamespacedName, object: Arc<Value>) {
        let bytes = weight(&object);
        if !self.whole.keep(key.clone(), &key.namespace, bytes, object) {
            self.doubted.insert(key);
        }
    }

    pub(super) fn let_go(&mut self, key: &NamespacedName) {
        self.whole.remove(key);
    }

    /// Those that are kept whole.
    pub(super) fn all(&self) -> Vec<NamespacedName> {
        self.whole.keys().cloned().collect()
    }

    pub(super) fn doubt(&mut self, key: NamespacedName) {
        self.doubted.insert(key);
    }

    pub(super) fn trust(&mut self, key: &NamespacedName) {
        self.doubted.remove(key);
    }

    /// It is gone.
    pub(super) fn drop(&mut self, key: &NamespacedName) {
        self.whole.remove(key);
        self.doubted.remove(key);
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
        assert_eq!((kept, instances.doubted.contains(&keys[1])), ([true, false], true));
        instances.let_go(&keys[0]);
        instances.keep(keys[1].clone(), large);
        assert!(instances.whole.get(&keys[1]).is_some());
    }
}
