//! How reconciling goes on.

use std::time::Duration;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// Nothing is left to do until something changes.
    Settled,
    /// To be asked again after the back-off.
    Retry,
    /// To be asked again after this time.
    After(Duration),
}

/// What comes after a decision was carried out.
pub(super) enum Flow {
    /// Ask again, on what is now known.
    Again,
    End(ReconcileOutcome),
}
