//! When gateways are looked at: while this process leads and the capability `flavors` runs.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;

use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot};
use crate::controllers::capabilities::FLAVORS;

/// What has to be so.
#[derive(Clone)]
pub struct Permit {
    /// Whether this process may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Where every capability stands.
    pub snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
}

impl Permit {
    /// Waits until it is so; an error where the process ends.
    pub async fn given(&mut self) -> Result<(), RecvError> {
        loop {
            self.leadership.wait_for(Leadership::holds).await?;
            self.snapshot.wait_for(|snapshot| runs(snapshot)).await?;
            if self.leadership.borrow().holds() {
                return Ok(());
            }
        }
    }

    /// Waits until it is not so any more.
    pub async fn withdrawn(&mut self) {
        let Self { leadership, snapshot } = self;
        // Who tells ends with the process.
        tokio::select! {
            _ = leadership.wait_for(|leadership| !leadership.holds()) => {}
            _ = snapshot.wait_for(|snapshot| !runs(snapshot)) => {}
        }
    }
}

/// Definitions that cannot be watched end nothing that ran.
fn runs(snapshot: &CapabilitySnapshot) -> bool {
    let flavors = snapshot.get(FLAVORS);
    flavors.is_some_and(|flavors| {
        matches!(flavors.state, CapabilityPhase::Running(_) | CapabilityPhase::Unknown(Some(_)))
    })
}
