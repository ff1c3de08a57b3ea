//! Overrides of the rules about router flavors.

use k8s_openapi::api::admissionregistration::v1::{AuditAnnotation, ValidatingAdmissionPolicy, Validation};

use super::shape::{Subjects, named, only_where, policy_over};
use crate::api::kong;
use crate::api::meta;
use crate::api::rule::Rule;
use crate::install::Options;
use crate::install::webhooks::cel_string;

/// Overrides of the rules about router flavors, by the API server's own authorizer. Nothing is
/// overridden where policy and binding are not intact.
pub const OVERRIDES: &str = "interlock-flavor-overrides";

/// What a flavor is written in: group, version and resource.
const WRITTEN_IN: [(&str, &str, &str); 4] = [
    (kong::GROUP, kong::VERSION, "dataplanes"),
    ("apps", "v1", "deployments"),
    ("", "v1", "configmaps"),
    ("", "v1", "secrets"),
];

/// Whoever writes the annotation must have the verb on that object. Only writes that bring it are
/// looked at: one that stays allows nothing that it did not allow when it was written, and a new
/// object has nothing to override.
pub(super) fn overrides(options: &Options) -> ValidatingAdmissionPolicy {
    let key = cel_string(meta::ALLOW_FLAVOR);
    let of = |object: &str| format!("{object}.?metadata.?annotations[?{key}].orValue('')");
    let (new, old) = (of("object"), of("oldObject"));
    let verb = meta::ALLOW_FLAVOR_VERB;
    let resource =
        "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)";
    let named = named(Rule::FlavorAllowed);
    let validation = Validation {
        expression: format!(
            "authorizer.group(request.resource.group).resource(request.resource.resource)\
             .namespace(request.namespace).name(request.name).check({}).allowed()",
            cel_string(verb)
        ),
        message: Some(format!(
            "annotation {} needs the verb {verb} on the object; ask for a role that gives it{named}",
            meta::ALLOW_FLAVOR
        )),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ': user ' + request.userInfo.username + \
             ' has no verb {verb} on ' + {resource} + ' here, which annotation {} needs; ask for a role that gives it, as \
             admin does{named}'",
            meta::ALLOW_FLAVOR
        )),
        reason: Some("Invalid".to_owned()),
    };
    let subjects = Subjects { resources: &WRITTEN_IN, operations: &["UPDATE"] };
    let policy = policy_over(OVERRIDES, &subjects, &[], vec![validation], options);
    let mut policy = only_where(policy, "brings-an-override", &format!("{new} != '' && {new} != {old}"));
    if let Some(spec) = &mut policy.spec {
        spec.audit_annotations = Some(vec![AuditAnnotation {
            key: "router-flavor-override".to_owned(),
            value_expression: format!("request.userInfo.username + ': ' + {new}"),
        }]);
    }
    policy
}
