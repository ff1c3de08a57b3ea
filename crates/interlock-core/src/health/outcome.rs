//! The result of a health check, and the fields that checks read.

use serde_json::Value;

use crate::api::object::meta_str;

/// Health of an object, according to its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The object has reached its desired state.
    Healthy,
    /// The object may still reach it; the reason, for people.
    Waiting(String),
    /// The object cannot reach it; the reason, for people.
    Failed(String),
}

impl Health {
    pub(super) fn waiting_unless(healthy: bool, why: impl FnOnce() -> String) -> Self {
        if healthy { Self::Healthy } else { Self::Waiting(why()) }
    }
}

pub(super) fn name(object: &Value) -> &str {
    meta_str(object, "name").unwrap_or_default()
}

pub(super) fn full_name(object: &Value) -> String {
    format!("{}/{}", meta_str(object, "namespace").unwrap_or_default(), name(object))
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn is_observed(object: &Value) -> bool {
    number(&object["metadata"]["generation"]) <= number(&object["status"]["observedGeneration"])
}

pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == type_)
}

pub(super) fn holds(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|c| c["status"] == "True")
}
