//! Faults of a spec that its schema cannot reject.

/// A part of the spec that cannot be honoured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingProblem {
    /// Such as `spec.rules[0].group`.
    pub field: String,
    /// The value and the remedy, for people.
    pub problem: String,
}
