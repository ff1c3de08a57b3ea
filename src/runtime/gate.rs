//! The gate of controllers that depend on the leader epoch, and perhaps on a capability.

use std::sync::Arc;

use tokio::sync::watch;

use super::controller::Gate;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, CapabilityStatus};

/// The number of a leader epoch; between two epochs another process may have led.
pub type LeaderEpoch = u64;

/// Open while this process leads and a capability permits it.
pub struct LeaderGate {
    leadership: watch::Receiver<Leadership>,
    capability: Option<CapabilityGate>,
    known: Option<LeaderEpoch>,
}

/// The condition of a capability.
#[derive(Clone)]
struct CapabilityGate {
    name: &'static str,
    snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    permits: fn(&CapabilityStatus) -> bool,
}

/// Whether a capability runs; running work continues while the definitions cannot be watched.
pub fn runs(status: &CapabilityStatus) -> bool {
    matches!(status.state, CapabilityPhase::Running(_) | CapabilityPhase::Unknown(Some(_)))
}

impl LeaderGate {
    /// Open while this process leads.
    pub fn new(leadership: watch::Receiver<Leadership>) -> Self {
        Self { leadership, capability: None, known: None }
    }

    /// Only while the state of a capability permits it, too.
    #[must_use]
    pub fn while_capability(
        self,
        name: &'static str,
        snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
        permits: fn(&CapabilityStatus) -> bool,
    ) -> Self {
        Self { capability: Some(CapabilityGate { name, snapshot, permits }), ..self }
    }

    fn now(&mut self) -> Option<LeaderEpoch> {
        let permitted = self.capability.as_mut().is_none_or(|capability| {
            capability.snapshot.borrow_and_update().get(capability.name).is_some_and(capability.permits)
        });
        let epoch = self.leadership.borrow_and_update().leader_epoch();
        epoch.filter(|_| permitted)
    }
}

impl Gate for LeaderGate {
    type Term = LeaderEpoch;

    fn term(&mut self) -> Option<LeaderEpoch> {
        self.known = self.now();
        self.known
    }

    async fn changed(&mut self) -> bool {
        loop {
            let changed = match &mut self.capability {
                None => self.leadership.changed().await,
                Some(capability) => tokio::select! {
                    changed = self.leadership.changed() => changed,
                    changed = capability.snapshot.changed() => changed,
                },
            };
            // An error means that the elector or the supervisor is gone, and the process with it.
            if changed.is_err() {
                return false;
            }
            if self.now() != self.known {
                return true;
            }
        }
    }
}
