//! An object of a package, cached as text: a tenth of the size of the decoded one.

use std::sync::Arc;

use interlock_core::topology::NodeId;
use serde_json::Value;

use super::size_budget::{BODIES, Shares};

/// Cached objects of packages.
pub(super) type Bodies = Shares<NodeId, ObjectBody>;

/// An empty cache.
pub(super) fn none() -> Bodies {
    Shares::new(BODIES)
}

#[derive(Clone, Debug)]
pub struct ObjectBody(Arc<[u8]>);

impl ObjectBody {
    pub fn of(object: &Value) -> Self {
        // A JSON value always serialises.
        Self(serde_json::to_vec(object).unwrap_or_default().into())
    }

    /// Its length as text.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The object again.
    pub fn open(&self) -> Option<Arc<Value>> {
        serde_json::from_slice(&self.0).ok().map(Arc::new)
    }
}

/// An object that a plan looks up, as far as it is cached.
#[derive(Clone, Debug)]
pub enum Child {
    /// It does not exist, according to the watches.
    Absent,
    /// It exists, and must be read: no cached Instance owns it, or the size budget of the Instance's
    /// namespace is exceeded.
    Unread,
    /// It exists; its content.
    Kept(Arc<Value>),
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey};
    use interlock_core::topology::Epoch;
    use serde_json::json;

    use super::*;
    use crate::cluster::watch::WatchChange;
    use crate::runtime::index::{Store, settled};

    /// Every change has a newer version.
    static VERSION: AtomicU64 = AtomicU64::new(1);

    /// The cached ConfigMap of that owner and size, as a plan looks it up.
    fn found(store: &Store, owner: Option<&str>, size: usize, name: &str) -> Child {
        let kind = Gvk::new("v1", "ConfigMap");
        let owners: Vec<Value> = owner.iter().map(|uid| json!({"uid": uid, "kind": "Instance"})).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": name, "namespace": "ns", "resourceVersion": VERSION.fetch_add(1, Ordering::Relaxed).to_string(),
                "labels": {"heritage": "kudo"}, "ownerReferences": owners,
            },
            "data": {"text": "x".repeat(size)},
        });
        store.observe(&kind, Epoch(1), &WatchChange::Applied(Arc::new(object)));
        store.get_child(&ObjectKey { gvk: kind, namespace: Some("ns".to_owned()), name: name.to_owned() })
    }

    /// A store with one Instance, and its uid.
    fn store() -> (Arc<Store>, String) {
        let store = Store::new(crate::kinds::all(), true);
        let instance = settled();
        let uid = instance["metadata"]["uid"].as_str().unwrap().to_owned();
        let kind = Gvk::new("kudo.dev/v1beta1", "Instance");
        store.observe(&kind, Epoch(1), &WatchChange::Listing("".into()));
        store.observe(&kind, Epoch(1), &WatchChange::Listed(Arc::new(instance)));
        store.observe(&kind, Epoch(1), &WatchChange::Synced("".into()));
        (store, uid)
    }

    #[test]
    fn an_object_is_kept_whole_only_for_an_instance_that_is_known() {
        let (store, uid) = store();
        assert!(matches!(found(&store, Some(&uid), 1, "ours"), Child::Kept(_)));
        assert!(matches!(found(&store, None, 1, "of-nobody"), Child::Unread));
        assert!(matches!(found(&store, Some("forged"), 1, "of-another"), Child::Unread));
        assert!(matches!(found(&store, None, 2, "ours"), Child::Unread), "it lost its owner");
        let absent =
            ObjectKey { gvk: Gvk::new("v1", "ConfigMap"), namespace: Some("ns".into()), name: "no".into() };
        assert!(matches!(store.get_child(&absent), Child::Absent));
    }

    #[test]
    fn what_is_over_the_share_of_a_namespace_is_there_and_not_kept() {
        let (store, uid) = store();
        let third = BODIES / 3;
        for name in ["a", "b"] {
            assert!(matches!(found(&store, Some(&uid), third, name), Child::Kept(_)), "{name}");
        }
        assert!(matches!(found(&store, Some(&uid), third, "c"), Child::Unread));
        let instance = NamespacedName::new("ns", "inst");
        let (kept, unread) = store.children_of(&instance, &["ConfigMap"]);
        assert!(kept.len() + unread.len() <= 3);
        assert!(matches!(found(&store, Some(&uid), 1, "a"), Child::Kept(_)));
        assert!(matches!(found(&store, Some(&uid), third + 1, "c"), Child::Kept(_)), "there is room again");
    }
}
