//! What follows a step of a reconcile.

use crate::runtime::controller::Action;

/// What follows the execution of a decision.
pub(super) enum Flow {
    /// Decide again, on the new state.
    Again,
    /// The reconcile ends.
    End(Action),
}
