//! The status of an Instance.

use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::shape::{guard, policy};
use crate::install::InstallOptions;
use crate::install::webhooks::cel_string;

/// Only the process writes `planStatus` and our conditions.
pub const STATUS: &str = "interlock-status";

pub(super) fn status(options: &InstallOptions) -> ValidatingAdmissionPolicy {
    let ours = meta::condition::OURS.map(cel_string).join(", ");
    let of_type = |object: &str| {
        format!("{object}.?status.?conditions.orValue([]).filter(c, c.?type.orValue('') == t)")
    };
    let alone = "written by Interlock only";
    let leave = "write conditions of your own type, or leave the status alone";
    let conditions = format!("the conditions {}", meta::condition::OURS.join(", "));
    let validations = vec![
        guard(
            Rule::StatusOwner,
            "object.?status.?planStatus.orValue({}) == oldObject.?status.?planStatus.orValue({})",
            &format!("status.planStatus is {alone}; {leave}"),
            &format!("status.planStatus is {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
        guard(
            Rule::StatusOwner,
            &format!("[{ours}].all(t, {} == {})", of_type("object"), of_type("oldObject")),
            &format!("{conditions} are {alone}; {leave}"),
            &format!("{conditions} are {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
    ];
    policy(STATUS, ("instances/status", &["UPDATE"]), &[], validations, options)
}
