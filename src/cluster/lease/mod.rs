//! Leader election: client-go's algorithm on a Lease, with the decision apart from the calls.
//!
//! No clock of another machine is trusted: a peer leaves a holder alone for the lease's duration counted
//! from the moment at which *it* saw the record change. A leader stops earlier than that,
//! [`Timing::renew_deadline`] after it sent its last renewal. It renews only while the workers under the
//! lease have a [`Heartbeat`]: a stuck process releases the lease.

mod election;
mod heartbeat;
mod holder;
mod step;

use std::time::Duration;

use tokio::time::Instant;

pub use election::{Election, LeaseName};
pub use heartbeat::Heartbeat;
pub use holder::LeaseHolder;
pub use step::{LeaseDecision, Peer, Timing, step};

/// The controllers check this before each write. Correctness does not depend on it (writes are
/// conditional): it keeps two processes from doing the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another process leads, or none.
    Standby,
    /// This process leads.
    Leader {
        /// Number of the leader epoch, counted by this process; between two epochs another process may have
        /// led.
        leader_epoch: u64,
        /// End of leadership unless renewed before, also for a process that was suspended.
        until: Instant,
    },
}

impl Leadership {
    /// Whether this process leads now.
    pub fn holds(&self) -> bool {
        self.leader_epoch().is_some()
    }

    /// The current leader epoch.
    pub fn leader_epoch(&self) -> Option<u64> {
        match self {
            Self::Leader { leader_epoch, until } => (Instant::now() < *until).then_some(*leader_epoch),
            Self::Standby => None,
        }
    }
}

impl Default for Timing {
    /// client-go's own defaults.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}
