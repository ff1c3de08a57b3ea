//! Progress of a run that must survive a restart and has no field in KUDO's status: `status.progress`. Interlock
//! 0.1 kept it as JSON in the message of the condition `PlanRunning`, which is still read.

use crate::api::condition;
use crate::api::kudo::InstanceStatus;
pub use crate::api::kudo::Progress;
use crate::api::meta;

impl Progress {
    /// Reads it from the status of an Instance.
    pub fn read(status: &InstanceStatus) -> Option<Self> {
        let legacy = || condition::find(&status.conditions, meta::condition::PLAN_RUNNING);
        status.progress.clone().or_else(|| serde_json::from_str(&legacy()?.message).ok())
    }
}
