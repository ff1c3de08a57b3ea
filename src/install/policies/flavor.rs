//! Router flavors: overrides of their rules, and the label of their sources.

use interlock_core::api::kong;
use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use k8s_openapi::api::admissionregistration::v1::{AuditAnnotation, ValidatingAdmissionPolicy, Validation};

use super::shape::{Subjects, named, only_where, policy_over};
use crate::install::InstallOptions;
use crate::install::webhooks::cel_string;

/// Overrides of the rules about router flavors, by the API server's own authorizer. No override counts
/// unless policy and binding are intact.
pub const OVERRIDES: &str = "interlock-flavor-overrides";

/// ConfigMaps and Secrets that are sources of flavors keep the label that selects their changes, also while
/// the webhook is down.
pub const SOURCES: &str = "interlock-flavor-sources";

/// Resources that declare a flavor: group, version and resource.
const WRITTEN_IN: [(&str, &str, &str); 4] = [
    (kong::GROUP, kong::VERSION, "dataplanes"),
    ("apps", "v1", "deployments"),
    ("", "v1", "configmaps"),
    ("", "v1", "secrets"),
];

/// The author of the annotation must have the verb on that object. Only writes that add it are checked: an
/// unchanged one permits nothing new, and a new object has nothing to override.
pub(super) fn overrides(options: &InstallOptions) -> ValidatingAdmissionPolicy {
    let key = cel_string(meta::ALLOW_FLAVOR);
    let of = |object: &str| format!("{object}.?metadata.?annotations[?{key}].orValue('')");
    let (new, old) = (of("object"), of("oldObject"));
    let verb = meta::ALLOW_FLAVOR_VERB;
    let may = may_override();
    let resource =
        "request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group)";
    let named = named(Rule::FlavorAllowed);
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

/// Whether the user may override the rules about flavors on the written object.
fn may_override() -> String {
    format!(
        "authorizer.group(request.resource.group).resource(request.resource.resource)\
         .namespace(request.namespace).name(request.name).check({}).allowed()",
        cel_string(meta::ALLOW_FLAVOR_VERB)
    )
}

/// Resources that may be sources of flavors.
const HELD_IN: [(&str, &str, &str); 2] = [("", "v1", "configmaps"), ("", "v1", "secrets")];

/// Only the controller removes or replaces a label that it wrote: without it no later change reaches the
/// webhook. Removing a user's label takes the right to override the rules: the webhook decides
/// whether a gateway needs it.
pub(super) fn sources(options: &InstallOptions) -> ValidatingAdmissionPolicy {
    let key = cel_string(meta::FLAVOR_SOURCE);
    let ours = cel_string(meta::FLAVOR_SOURCE_OURS);
    let label = |object: &str| format!("{object}.?metadata.?labels[?{key}].orValue('')");
    let labelled = |object: &str| format!("({key} in {object}.?metadata.?labels.orValue({{}}))");
    let (new, old) = (label("object"), label("oldObject"));
    let named = named(Rule::FlavorSource);
    let remedy = format!(
        "leave it; Interlock takes it away when no gateway refers to the object any more, and verb {} takes one away \
         that people wrote",
        meta::ALLOW_FLAVOR_VERB
    );
    let what = format!("label {} shows Interlock what a router flavor comes from", meta::FLAVOR_SOURCE);
    let validation = Validation {
        expression: format!("{old} != {ours} && {}", may_override()),
        message: Some(format!("{what}; {remedy}{named}")),
        message_expression: Some(format!(
            "request.kind.kind + ' ' + request.namespace + '/' + request.name + ': {what}; {remedy}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    };
    let subjects = Subjects { resources: &HELD_IN, operations: &["UPDATE"] };
    let policy = policy_over(SOURCES, &subjects, &[], vec![validation], options);
    let lost = format!(
        "{} && (!{} || ({old} == {ours} && {new} != {ours}))",
        labelled("oldObject"),
        labelled("object")
    );
    only_where(policy, "loses-the-label", &lost)
}
