//! Why a DataPlane is left to another operator, as its condition `Managed` says it.

use std::time::Duration;

use interlock_core::api::meta::condition;

/// Why a DataPlane is left to another operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// Reason of the condition `Managed`.
    pub reason: &'static str,
    /// For people; the same as long as the cause is.
    pub message: String,
    /// When to look again; `None` = with the next event.
    pub again: Option<Duration>,
}

impl LeftAlone {
    /// For a cause that only an event of the DataPlane, or of what belongs to it, takes away.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), again: None }
    }

    /// As what was found cannot be taken over.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(condition::TAKE_OVER_REFUSED, message)
    }
}
