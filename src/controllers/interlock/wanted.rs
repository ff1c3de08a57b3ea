//! Conditions of an Interlock object as they are to be.

use interlock_core::api::condition::ConditionStatus;
use interlock_core::api::interlock::Interlock;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Whether the object is honoured, completely.
pub(super) const ACCEPTED: &str = "Accepted";
/// Whether the second layer follows the rules of the spec.
pub(super) const RULES_APPLIED: &str = "RulesApplied";

/// When a state that passes is looked at again, if one does.
pub(super) type PassingUntil = Option<Timestamp>;

/// A condition as it is to be.
pub(super) struct Wanted {
    pub(super) type_: String,
    pub(super) status: ConditionStatus,
    pub(super) reason: String,
    pub(super) message: String,
}

pub(super) fn wanted(
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) -> Wanted {
    Wanted { type_: type_.to_owned(), status, reason: reason.to_owned(), message: message.into() }
}

/// A condition of the object as it is.
pub(super) fn found<'a>(object: &'a Interlock, type_: &str) -> Option<&'a Condition> {
    object.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
}
