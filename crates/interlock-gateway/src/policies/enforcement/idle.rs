//! Policies that are not carried out.

/// Why nothing is carried out for a Gateway, or nothing of one kind of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Kuadrant's operator does it.
    Kuadrant,
    /// Something is missing; the text says what, and what to do.
    Lacks(String),
    /// Something is on its way; what was written stays.
    Awaits(String),
}
