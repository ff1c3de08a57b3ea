//! Tamper detection: whether our webhook configurations, policies and bindings are as installed. Edits of
//! these bypass admission, so they are only visible afterwards.
//!
//! `watch` watches, `compare` finds differences, `state` stores the state for code that acts only while
//! a guard is intact, `notify` decides when to notify people, `monitor` is the monitor.

mod compare;
mod monitor;
mod notify;
mod object;
mod state;
mod watch;

use serde_json::Value;

pub use self::monitor::{TamperMonitor, TamperNotifier};
pub use self::state::{GuardState, GuardStates, PolicyState};
pub use object::{GuardId, GuardKind, Observation};

/// The first field in which a found guard object guards less than the installed one; `None` where it guards
/// as much, and for objects of other kinds.
pub fn weakened(installed: &Value, found: &Value) -> Option<String> {
    compare::difference(GuardId::of(installed)?.kind, installed, found)
}
