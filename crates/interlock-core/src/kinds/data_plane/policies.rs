//! Overrides of the rules about router flavors.

use crate::api::kong;
use crate::api::meta;
use crate::api::rule::Rule;
use k8s_openapi::api::admissionregistration::v1::{AuditAnnotation, ValidatingAdmissionPolicy, Validation};

use crate::kinds::descriptor::cel;
use crate::kinds::descriptor::{PolicyOptions, PolicyScope, only_where, policy_over};

/// Overrides of the rules about router flavors, by the API server's own authorizer. No override counts
/// unless policy and binding are intact.
pub const OVERRIDES: &str = "interlock-flavor-overrides";

/// Resources that declare a flavor: group, version and resource.
const WRITTEN_IN: [(&str, &str, &str); 4] = [
    (kong::GROUP, kong::VERSION, "dataplanes"),
    ("apps", "v1", "deployments"),
    ("", "v1", "configmaps"),
    ("", "v1", "secrets"),
];

/// The author of the annotation must have the verb on that object. Only writes that add it are checked: an
/// unchanged one permits nothing new, and a new object has nothing to override.
pub fn overrides(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let key = cel::string(meta::ALLOW_FLAVOR);
    let of = |object: &str| format!("{object}.?metadata.?annotations[?{key}].orValue('')");
    let (new, old) = (of("object"), of("oldObject"));
    let verb = meta::ALLOW_FLAVOR_VERB;
    let may = may_override();
    let resource =
        "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)";
    let named = options.named_rule(Rule::FLAVOR_ALLOWED);
    let validation = Validation {
        expression: may,
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
    let scope = PolicyScope { resources: &WRITTEN_IN, operations: &["UPDATE"] };
    let policy = policy_over(OVERRIDES, &scope, &[], vec![validation], options);
    let mut policy = only_where(policy, "brings-an-override", &format!("{new} != '' && {new} != {old}"));
    if let Some(spec) = &mut policy.spec {
        spec.audit_annotations = Some(vec![AuditAnnotation {
            key: "router-flavor-override".to_owned(),
            value_expression: format!("request.userInfo.username + ': ' + {new}"),
        }]);
    }
    policy
}

/// Whether the user may override the rules about flavors on the written object.
pub(crate) fn may_override() -> String {
    format!(
        "authorizer.group(request.resource.group).resource(request.resource.resource)\
         .namespace(request.namespace).name(request.name).check({}).allowed()",
        cel::string(meta::ALLOW_FLAVOR_VERB)
    )
}
