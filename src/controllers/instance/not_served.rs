//! The `Ready` condition of an Instance while a definition is missing.

use interlock_core::api::condition;
use interlock_core::api::condition::Condition;
use interlock_core::api::meta::condition as types;

/// Reason of `Ready` where a definition is missing.
pub const MISSING_DEPENDENCY: &str = "MissingDependency";

/// Whether an Instance reports a missing definition.
pub fn says(conditions: &[Condition]) -> bool {
    condition::find(conditions, types::READY).is_some_and(|ready| ready.reason == MISSING_DEPENDENCY)
}
