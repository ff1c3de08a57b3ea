//! Requests to the supervisor, and its published state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::object::Gvk;
use tokio::sync::{mpsc, watch};

use super::definitions::{Definitions, DefinitionsReport};
use super::kind::KindReport;
use super::machine::Work;
#[cfg(test)]
use super::state::CapabilityStatus;
use super::state::{CapabilitySnapshot, Epoch, WatchState};
use super::watch_request::{KindRequester, RequestedKind};

/// A message to the supervisor.
#[derive(Debug)]
pub(super) enum SupervisorCommand {
    /// The requester needs these kinds, and no others any more.
    Need(KindRequester, BTreeSet<Gvk>),
    /// A report of the watch of the definitions.
    Definitions(DefinitionsReport),
    /// Stream `usize` of the watch of a kind reported.
    Report(RequestedKind, Epoch, usize, KindReport),
    /// The controller of a capability reports its current work under an assignment.
    AtWork(&'static str, Assignment, Work),
}

/// The work that a controller of a capability is assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    pub work: Work,
    /// Its number; another number is another assignment, also of the same work.
    pub epoch: Epoch,
}

/// The state of a watched kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watching {
    pub watch_state: WatchState,
    /// Whether whole objects are watched at this version, not only their metadata.
    pub whole: bool,
    /// Whether its definition is being deleted.
    pub terminating: bool,
}

/// Watched kinds, each at every version that lookups may name.
pub type Watches = BTreeMap<Gvk, Watching>;

/// Talks to the supervisor; cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) orders: mpsc::UnboundedSender<SupervisorCommand>,
    pub(super) snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    pub(super) watches: watch::Receiver<Arc<Watches>>,
    pub(super) works: Arc<BTreeMap<&'static str, watch::Receiver<Assignment>>>,
    pub(super) definitions: Definitions,
}

impl Handle {
    /// The state of every capability; notifies on change.
    pub fn snapshot(&self) -> watch::Receiver<Arc<CapabilitySnapshot>> {
        self.snapshot.clone()
    }

    /// The table of definitions.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Sets the kinds that a requester needs watched; replaces its earlier set.
    pub fn request(&self, requester: KindRequester, kinds: BTreeSet<Gvk>) {
        // The receiver is closed only while the process ends.
        let _ = self.orders.send(SupervisorCommand::Need(requester, kinds));
    }

    /// The assignment of a capability's controller.
    pub fn work(&self, capability: &str) -> Option<watch::Receiver<Assignment>> {
        self.works.get(capability).cloned()
    }

    /// Reports the work of a capability's controller under this assignment.
    pub fn at_work(&self, capability: &'static str, assignment: Assignment, current: Work) {
        let _ = self.orders.send(SupervisorCommand::AtWork(capability, assignment, current));
    }

    /// The state of a kind, if it is watched.
    pub fn watching(&self, kind: &Gvk) -> Option<Watching> {
        self.watches.borrow().get(kind).cloned()
    }

    /// Like [`Self::watching`], after waiting a moment for a kind that is about to be listed.
    pub async fn watching_soon(&self, kind: &Gvk, grace: Duration) -> Option<Watching> {
        let mut watches = self.watches.clone();
        let settled =
            |watches: &Arc<Watches>| watches.get(kind).is_some_and(|w| w.watch_state != WatchState::Listing);
        let _ = tokio::time::timeout(grace, watches.wait_for(settled)).await;
        self.watching(kind)
    }
}

#[cfg(test)]
impl Handle {
    /// A handle whose supervisor is gone, with these watches open for good.
    pub fn of_watches(watches: Watches) -> Self {
        Self {
            orders: mpsc::unbounded_channel().0,
            snapshot: watch::channel(Arc::default()).1,
            watches: watch::channel(Arc::new(watches)).1,
            works: Arc::default(),
            definitions: Definitions::default(),
        }
    }

    /// The same with capabilities that are so for good.
    pub fn with_capabilities(self, capabilities: Vec<CapabilityStatus>) -> Self {
        Self { snapshot: watch::channel(Arc::new(CapabilitySnapshot { capabilities })).1, ..self }
    }
}
