//! Tamper detection: whether our webhook configurations, policies and bindings are as installed. Edits of
//! these bypass admission, so they are only visible afterwards.
//!
//! `follow` watches, `compare` finds differences, `standing` keeps the state for code that acts only while
//! a guard is intact, `alarm` decides when to notify people, `warden` is the monitor.

mod alarm;
mod compare;
mod follow;
mod object;
mod standing;
mod warden;

pub use object::{GuardId, GuardKind, Observation};
pub use standing::{GuardState, GuardStates, PolicyState};
pub use warden::{TamperMonitor, TamperNotifier};
