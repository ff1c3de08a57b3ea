//! The label of the sources of router flavors.

use interlock_core::api::meta;
use interlock_core::kinds::descriptor::{PolicyOptions, PolicyScope, cel, only_where, policy_over};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};

use crate::data_plane::policies::may_override;
use crate::data_plane::rules::ids::FLAVOR_SOURCE;

/// ConfigMaps and Secrets that are sources of flavors keep the label that selects their changes, also while
/// the webhook is down.
pub const SOURCES: &str = "interlock-flavor-sources";

/// Resources that may be sources of flavors.
const HELD_IN: [(&str, &str, &str); 2] = [("", "v1", "configmaps"), ("", "v1", "secrets")];

/// Only the controller removes or replaces a label that it wrote: without it no later change reaches the
/// webhook. Removing a user's label takes the right to override the rules: the webhook decides
/// whether a gateway needs it.
pub fn sources(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let key = cel::string(meta::FLAVOR_SOURCE);
    let ours = cel::string(meta::FLAVOR_SOURCE_OURS);
    let label = |object: &str| format!("{object}.?metadata.?labels[?{key}].orValue('')");
    let labelled = |object: &str| format!("({key} in {object}.?metadata.?labels.orValue({{}}))");
    let (new, old) = (label("object"), label("oldObject"));
    let named = options.named_rule(FLAVOR_SOURCE);
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
    let scope = PolicyScope { resources: &HELD_IN, operations: &["UPDATE"] };
    let policy = policy_over(SOURCES, &scope, &[], vec![validation], options);
    let lost = format!(
        "{} && (!{} || ({old} == {ours} && {new} != {ours}))",
        labelled("oldObject"),
        labelled("object")
    );
    only_where(policy, "loses-the-label", &lost)
}
