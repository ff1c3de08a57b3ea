//! What the Instance controller works with.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;

use super::books::Books;
use crate::admission::view::View;
use crate::api::object::NamespacedName;
use crate::api::stamp::VersionRef;
use crate::cluster::apply::{Bookkeeping, Objects};
use crate::cluster::events::Events;
use crate::cluster::guard::Guard;
use crate::cluster::kinds::Kinds;
use crate::cluster::lease::Leadership;
use crate::cluster::queue::Queue;
use crate::controllers::observe::Store;
use crate::plan::package::Package;
use crate::telemetry::metrics::Metrics;

/// Collaborators of the controller, shared by its workers.
pub struct Context {
    /// What is watched.
    pub store: Arc<Store>,
    /// Instances that have something to do.
    pub queue: Arc<Queue<NamespacedName>>,
    /// Writes of the bookkeeping user.
    pub bookkeeping: Bookkeeping,
    /// Reads and writes under the effects identity.
    pub objects: Objects,
    /// Which kinds are served.
    pub kinds: Arc<Kinds>,
    /// For look-ups of kinds.
    pub client: Client,
    /// Events on Instances.
    pub events: Events,
    /// Whether this process leads.
    pub leadership: watch::Receiver<Leadership>,
    /// What status was last known to say.
    pub books: Books,
    /// Whether the policy that guards requests is as it was installed.
    pub guard: watch::Receiver<Guard>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

impl Context {
    /// A package, as last seen.
    pub fn package(&self, version: &VersionRef<'_>) -> Option<Arc<Package>> {
        self.store.operator_version(&NamespacedName::new(version.namespace.as_ref(), version.name.as_ref()))
    }

    /// Whether this process leads now.
    pub fn leads(&self) -> bool {
        self.leadership.borrow().holds()
    }
}
