//! Permits checks of gateways while this process leads and the capability `flavors` runs.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;

use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot};
use crate::controllers::capabilities::FLAVORS;

/// The conditions of the permit.
#[derive(Clone)]
pub struct Permit {
    /// Whether this process may write.
    pub leadership: watch::Receiver<Leadership>,
    /// The state of every capability.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
}

impl Permit {
    /// Waits until both hold; an error where the process ends.
    pub async fn given(&mut self) -> Result<(), RecvError> {
        loop {
            self.leadership.wait_for(Leadership::holds).await?;
            self.snapshot.wait_for(|snapshot| runs(snapshot)).await?;
            if self.leadership.borrow().holds() {
                return Ok(());
            }
        }
    }

    /// Waits until one no longer holds.
    pub async fn withdrawn(&mut self) {
        let Self { leadership, snapshot } = self;
        // The senders end with the process.
        tokio::select! {
            _ = leadership.wait_for(|leadership| !leadership.holds()) => {}
            _ = snapshot.wait_for(|snapshot| !runs(snapshot)) => {}
        }
    }
}

/// Running work continues while the definitions cannot be watched.
fn runs(snapshot: &CapabilitySnapshot) -> bool {
    let flavors = snapshot.get(FLAVORS);
    flavors.is_some_and(|flavors| {
        matches!(flavors.state, CapabilityPhase::Running(_) | CapabilityPhase::Unknown(Some(_)))
    })
}
