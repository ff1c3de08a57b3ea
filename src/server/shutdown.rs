//! The order of a shutdown: announce, wait, close.
//!
//! An endpoint that turns unready keeps its open connections, and the API server still uses them: only an
//! answer with `Connection: close` ends one without losing a call. So a replica answers on until its
//! callers have moved to others, and only then stops accepting.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The state of the shutdown.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    lingering: CancellationToken,
    closing: CancellationToken,
}

impl Shutdown {
    /// Not shutting down.
    pub fn new() -> Self {
        Self::default()
    }

    /// Readiness is false and every answer closes its connection; work continues.
    pub fn begin(&self) {
        self.lingering.cancel();
    }

    /// Accepts no new connections.
    pub fn close(&self) {
        self.begin();
        self.closing.cancel();
    }

    /// Whether [`Self::begin`] was called.
    pub fn is_lingering(&self) -> bool {
        self.lingering.is_cancelled()
    }

    /// Returns after [`Self::begin`].
    pub async fn lingering(&self) {
        self.lingering.cancelled().await;
    }

    /// Returns after [`Self::close`].
    pub async fn closing(&self) {
        self.closing.cancelled().await;
    }

    /// For parts of the process that stop as soon as the shutdown is announced.
    pub fn lingering_token(&self) -> CancellationToken {
        self.lingering.clone()
    }

    /// From the first signal to closed ports.
    pub async fn run(&self, linger: Duration) {
        self.begin();
        tokio::time::sleep(linger).await;
        self.close();
    }
}
