//! The condition `Ready` of an Instance: its status, reason and message. It is set by [`super::conditions`] where a plan failed,
//! the spec drifted or the OperatorVersion is missing; in `controllers/instance` by `record` while a plan runs and when it ends,
//! `package_health` at rest (asked by `execute`), `plan_request` for a pause where kinds were not served, `unavailable` while a
//! definition is missing. `api_calls::patch_status` there writes it.

use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, WantedCondition};
use interlock_core::api::meta::condition as types;

/// Whether the objects of an Instance's package are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Healthy,
    /// These are not, for people.
    Unhealthy(Vec<String>),
    /// Their kinds are not served, for people.
    Unserved(String),
    /// This plan runs, which decides it.
    InProgress(String),
    /// A plan failed, or is not carried out: the reason, and for people.
    Failed(String, String),
}

impl Readiness {
    pub fn condition(self) -> WantedCondition {
        let of = |status, reason: &str, message| WantedCondition {
            type_: types::READY,
            status,
            reason: reason.to_owned(),
            message,
        };
        match self {
            Self::Healthy => of(ConditionStatus::True, types::RESOURCES_READY, String::new()),
            Self::Unhealthy(why) => of(ConditionStatus::False, types::RESOURCE_NOT_READY, why.join(", ")),
            Self::Unserved(why) => of(ConditionStatus::Unknown, types::MISSING_DEPENDENCY, why),
            Self::InProgress(plan) => {
                of(ConditionStatus::Unknown, types::PLAN_IN_PROGRESS, format!("plan {plan} runs"))
            }
            Self::Failed(reason, why) => of(ConditionStatus::False, &reason, why),
        }
    }

    /// Sets the condition.
    pub fn change(self) -> ConditionChange {
        ConditionChange::Set(self.condition())
    }
}

/// The condition of an Instance whose last plan failed; it stays until one completes.
pub fn failed(conditions: &[Condition]) -> Option<&Condition> {
    of(conditions).filter(|ready| ready.reason == types::PLAN_IN_FATAL_ERROR)
}

/// Whether an Instance reports that kinds are not served.
pub fn is_unserved(conditions: &[Condition]) -> bool {
    of(conditions).is_some_and(|ready| ready.reason == types::MISSING_DEPENDENCY)
}

fn of(conditions: &[Condition]) -> Option<&Condition> {
    condition::find(conditions, types::READY)
}
