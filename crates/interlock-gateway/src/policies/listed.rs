//! The graph of a list of objects, for decisions without a cluster.

use std::collections::BTreeSet;
use std::sync::Arc;

use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::ObjectKey;
use interlock_core::kinds::inventory::{Inventory as _, ReadKinds};
use interlock_core::kinds::listed::ListedObjects;
use serde_json::Value;

use super::attachments::Attachments;

/// A graph, and the kinds of which the list has objects: those of others are unknown.
#[derive(Default)]
pub(crate) struct ListedAttachments {
    attachments: Attachments,
    kinds: BTreeSet<(String, String)>,
}

impl ListedAttachments {
    /// None.
    pub(crate) fn empty() -> Arc<dyn ListedObjects> {
        Arc::new(Self::default())
    }
}

impl ListedObjects for ListedAttachments {
    fn add(&mut self, key: &ObjectKey, object: &Value, _: &str) -> Result<(), serde_json::Error> {
        self.attachments.take(object);
        self.kinds.insert((key.gvk.group.clone(), key.gvk.kind.clone()));
        Ok(())
    }

    fn listers(self: Arc<Self>, listers: KindListers) -> KindListers {
        self.attachments.listers(listers).with::<dyn ReadKinds>(self)
    }

    fn copied(&self) -> Arc<dyn ListedObjects> {
        Arc::new(Self { attachments: self.attachments.copied(), kinds: self.kinds.clone() })
    }
}

impl ReadKinds for ListedAttachments {
    fn is_read(&self, group: &str, kind: &str, _: &str) -> bool {
        self.kinds.contains(&(group.to_owned(), kind.to_owned()))
    }
}
