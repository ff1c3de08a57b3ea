//! What rules read of a fixed list of objects.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::lister::KindListers;
use crate::api::object::ObjectKey;

/// The objects of a list, as far as the rules of one domain read them.
pub trait ListedObjects: Send + Sync {
    /// Adds an object; ignores kinds that these rules do not read. `namespace` is the default for an absent one.
    ///
    /// # Errors
    /// An unreadable object of a kind that they do read.
    fn add(&mut self, key: &ObjectKey, object: &Value, namespace: &str) -> Result<(), serde_json::Error>;

    /// Adds what these rules ask.
    fn listers(self: Arc<Self>, listers: KindListers) -> KindListers;

    /// The same objects.
    fn copied(&self) -> Arc<dyn ListedObjects>;
}
