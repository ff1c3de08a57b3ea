//! Of which kinds the cache has all objects.

use std::sync::Arc;

use interlock_core::kinds::Kinds;
use interlock_core::kinds::inventory::ReadKinds;
use tokio::sync::watch;

use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{CapabilitySnapshot, WatchState};

/// The kinds of a process, and how their watches are.
pub struct CurrentKinds {
    /// All kinds.
    pub kinds: Kinds,
    /// The watch states of the kinds.
    pub capabilities: watch::Receiver<Arc<CapabilitySnapshot>>,
    /// The only watched namespaces; empty means all.
    pub namespaces: Vec<String>,
}

impl ReadKinds for CurrentKinds {
    fn is_read(&self, group: &str, kind: &str, namespace: &str) -> bool {
        let is_of_watched = namespace.is_empty()
            || self.namespaces.is_empty()
            || self.namespaces.iter().any(|own| own == namespace);
        let whole = self.kinds.iter().find(|known| {
            known.schema.is_some_and(|schema| (schema.name.group, schema.name.kind) == (group, kind))
                && known.watch.is_some_and(|watch| watch.labelled.is_none())
        });
        let Some(name) = whole.filter(|_| is_of_watched).map(|kind| kind.resource.name()) else {
            return false;
        };
        let snapshot = self.capabilities.borrow();
        let mut watches = snapshot.capabilities.iter().flat_map(|status| &status.kinds);
        watches.any(|own| own.name == name && own.watch_state == WatchState::Synced)
    }

    fn is_of_all_namespaces(&self) -> bool {
        self.namespaces.is_empty()
    }

    fn is_absent(&self, group: &str, kind: &str) -> bool {
        let known = self.kinds.iter().find(|known| {
            known.schema.is_some_and(|schema| (schema.name.group, schema.name.kind) == (group, kind))
        });
        let Some(name) = known.map(|kind| kind.resource.name()) else { return false };
        let snapshot = self.capabilities.borrow();
        let mut watches = snapshot.capabilities.iter().flat_map(|status| &status.kinds);
        watches.any(|own| own.name == name && own.watch_state == WatchState::Absent(Absence::Missing))
    }
}
