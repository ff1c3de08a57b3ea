//! What others ask of the supervisor, and what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::object::Gvk;
use tokio::sync::{mpsc, watch};

use super::definitions::{Definitions, Said};
use super::kind::Report;
use super::need::{Needer, Want};
use super::state::{Epoch, Sight, Snapshot};
use super::step::Work;

/// What the supervisor is told.
#[derive(Debug)]
pub(super) enum Order {
    /// These kinds are needed, and no others any more.
    Need(Needer, BTreeSet<Gvk>),
    /// The watch of the definitions said something.
    Definitions(Said),
    /// Stream `usize` of the watch of a kind reported.
    Report(Want, Epoch, usize, Report),
    /// The controller of a capability was told that, and does this.
    AtWork(&'static str, Assignment, Work),
}

/// What the controller of a capability is told to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// What.
    pub work: Work,
    /// When it was told; another number is another assignment, also to the same work.
    pub epoch: Epoch,
}

/// How a watched kind is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watching {
    /// How it is seen.
    pub sight: Sight,
    /// Whether whole objects are watched at this version, not only their metadata.
    pub whole: bool,
    /// Whether its definition is being deleted.
    pub leaving: bool,
}

/// Kinds that are watched, each at every version that is spoken of.
pub type Watches = BTreeMap<Gvk, Watching>;

/// Talks to the supervisor; cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) orders: mpsc::UnboundedSender<Order>,
    pub(super) snapshot: watch::Receiver<Arc<Snapshot>>,
    pub(super) watches: watch::Receiver<Arc<Watches>>,
    pub(super) works: Arc<BTreeMap<&'static str, watch::Receiver<Assignment>>>,
    pub(super) definitions: Definitions,
}

impl Handle {
    /// The state of every capability; changes are told.
    pub fn snapshot(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.clone()
    }

    /// The table of definitions.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Says which kinds somebody needs watched; what was said before is replaced.
    pub fn need(&self, needer: Needer, kinds: BTreeSet<Gvk>) {
        // Nobody listens only while the process ends.
        let _ = self.orders.send(Order::Need(needer, kinds));
    }

    /// What the controller of a capability shall do.
    pub fn work(&self, capability: &str) -> Option<watch::Receiver<Assignment>> {
        self.works.get(capability).cloned()
    }

    /// Tells what the controller of a capability does now that it was told this.
    pub fn at_work(&self, capability: &'static str, told: Assignment, does: Work) {
        let _ = self.orders.send(Order::AtWork(capability, told, does));
    }

    /// How a kind is seen, if it is watched.
    pub fn watching(&self, kind: &Gvk) -> Option<Watching> {
        self.watches.borrow().get(kind).cloned()
    }

    /// Like [`Self::watching`], after waiting a moment for a kind that is about to be listed.
    pub async fn watching_soon(&self, kind: &Gvk, patience: Duration) -> Option<Watching> {
        let mut watches = self.watches.clone();
        let settled = |watches: &Arc<Watches>| watches.get(kind).is_some_and(|w| w.sight != Sight::Listing);
        let _ = tokio::time::timeout(patience, watches.wait_for(settled)).await;
        self.watching(kind)
    }
}
