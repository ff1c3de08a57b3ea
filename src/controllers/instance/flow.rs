//! Results of reconciling.

use std::time::Duration;

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileOutcome {
    /// Wait for the next change.
    Settled,
    /// Requeue with back-off.
    Retry,
    /// Requeue after this time.
    After(Duration),
}

/// What follows the execution of a decision.
pub(super) enum Flow {
    /// Decide again, on the new state.
    Again,
    End(ReconcileOutcome),
}
