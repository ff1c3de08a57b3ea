//! What is kept of Instances beside their rows: whole those that controllers have something to do
//! with; of those at rest, which are not to be trusted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::row::is_well;
use crate::api::object::NamespacedName;
use crate::topology::Row;

/// What is kept of an Instance.
#[derive(Clone, Debug)]
pub enum Kept {
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
#[derive(Default)]
pub(super) struct Instances {
    /// Those that are not at rest, and those that a controller asked for.
    whole: HashMap<NamespacedName, Arc<Value>>,
    /// Those at rest that something may be wrong with, of which no row tells.
    doubted: HashSet<NamespacedName>,
}

impl Instances {
    /// What is kept of the one that has this row, or none.
    pub(super) fn kept(&self, key: &NamespacedName, row: Option<&Row<'_>>) -> Kept {
        match (self.whole.get(key), row) {
            (Some(object), Some(_)) => Kept::Whole(object.clone()),
            (None, Some(row)) => Kept::AtRest { well: is_well(row) && !self.doubted.contains(key) },
            (_, None) => Kept::Nothing,
        }
    }

    pub(super) fn keep(&mut self, key: NamespacedName, object: Arc<Value>) {
        self.whole.insert(key, object);
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
