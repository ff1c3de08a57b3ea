//! The status of an Instance.

use crate::api::meta;
use crate::api::rule::Rule;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::kinds::descriptor::cel;
use crate::kinds::descriptor::{PolicyOptions, guard, policy};

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
    let validations = vec![
        guard(
            Rule::STATUS_OWNER,
            "object.?status.?planStatus.orValue({}) == oldObject.?status.?planStatus.orValue({})",
            &format!("status.planStatus is {alone}; {leave}"),
            &format!("status.planStatus is {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
        guard(
            Rule::STATUS_OWNER,
            &format!("[{ours}].all(t, {} == {})", of_type("object"), of_type("oldObject")),
            &format!("{conditions} are {alone}; {leave}"),
            &format!("{conditions} are {alone}, and not by ' + request.userInfo.username + '; {leave}"),
        ),
    ];
    policy(STATUS, ("instances/status", &["UPDATE"]), &[], validations, options)
}
