//! The status of an Instance.

use interlock_core::api::meta;
use interlock_core::kinds::descriptor::PolicyOptions;
use interlock_core::kinds::descriptor::cel;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::instance_policy::{guard, policy};
use crate::instance::rules::ids::STATUS_OWNER;

/// Only the process writes `planStatus` and our conditions.
pub const STATUS: &str = "interlock-status";

pub fn status(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let ours = meta::condition::OURS.map(cel::string).join(", ");
    let of_type = |object: &str| {
        format!("{object}.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == t)")
    };
    let alone = "written by Interlock only";
    let leave = "write conditions of your own type, or leave the status alone";
    let conditions = format!("the conditions {}", meta::condition::OURS.join(", "));
    let records = "status.observedGeneration, status.lastApplied, status.progress and status.requests";
    let kept = ["observedGeneration", "lastApplied", "progress", "requests"]
        .map(|field| format!("object.?status[?'{field}'] == oldObject.?status[?'{field}']"))
        .join(" && ");
    let validations = vec![
        guard(
            options,
            STATUS_OWNER,
            &kept,
            &format!("{records} are {alone}; {leave}"),
            &format!("{records} are {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
        guard(
            options,
            STATUS_OWNER,
            "object.?status.?planStatus.orValue({}) == oldObject.?status.?planStatus.orValue({})",
            &format!("status.planStatus is {alone}; {leave}"),
            &format!("status.planStatus is {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
        guard(
            options,
            STATUS_OWNER,
            &format!("[{ours}].all(t, {} == {})", of_type("object"), of_type("oldObject")),
            &format!("{conditions} are {alone}; {leave}"),
            &format!("{conditions} are {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
    ];
    policy(STATUS, ("instances/status", &["UPDATE"]), &[], validations, options)
}
