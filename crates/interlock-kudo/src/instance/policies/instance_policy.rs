//! The common shape of the policies about Instances.

use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use interlock_core::kinds::descriptor::{PolicyOptions, PolicyScope, policy_over};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};

/// A policy about a resource of KUDO's group.
pub(super) fn policy(
    name: &str,
    (resource, operations): (&str, &[&str]),
    variables: &[(&str, &str)],
    validations: Vec<Validation>,
    options: &PolicyOptions,
) -> ValidatingAdmissionPolicy {
    let resources = &[(meta::KUDO_GROUP, meta::KUDO_VERSION, resource)];
    policy_over(name, &PolicyScope { resources, operations }, variables, validations, options)
}

/// A validation with two messages: `text`, and `plain` where `text` cannot be evaluated. `text` is inside
/// a CEL string, which it may close and open again. Both state the problem, then the remedy after a
/// semicolon; the rule and where to read about it follow.
///
/// The reason is `Invalid`, as kubectl then prints only the message, and not the whole patch before it.
pub(super) fn guard(
    options: &PolicyOptions,
    rule: Rule,
    expression: &str,
    plain: &str,
    text: &str,
) -> Validation {
    let named = options.named_rule(rule);
    Validation {
        expression: expression.to_owned(),
        message: Some(format!("{plain}{named}")),
        message_expression: Some(format!(
            "'Instance ' + request.namespace + '/' + request.name + ': {text}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    }
}
