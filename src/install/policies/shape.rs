//! The common shape of the policies.

use interlock_core::api::meta;
use interlock_core::api::rule::Rule;
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation, Variable,
};

use crate::install::InstallOptions;
use crate::install::metadata::{cluster_wide, strings};
use crate::install::webhooks::{condition, not_ourselves};

/// A validation with two messages: `text`, and `plain` where `text` cannot be evaluated. `text` is inside a
/// CEL string, which it may close and open again. Both state the problem, then the remedy after a
/// semicolon; the rule and its page follow.
///
/// The reason is `Invalid`, as kubectl then prints only the message, and not the whole patch before it.
pub(super) fn guard(rule: Rule, expression: &str, plain: &str, text: &str) -> Validation {
    let named = named(rule);
    Validation {
        expression: expression.to_owned(),
        message: Some(format!("{plain}{named}")),
        message_expression: Some(format!(
            "'Instance ' + request.namespace + '/' + request.name + ': {text}{named}'"
        )),
        reason: Some("Invalid".to_owned()),
    }
}

/// The end of every message: the rule, and the page that explains it.
pub(super) fn named(rule: Rule) -> String {
    format!(" [{}]; see {}", rule.id(), rule.page())
}

/// The resources and operations of a policy.
pub(super) struct Subjects<'a> {
    /// Group, version and resource of each.
    pub resources: &'a [(&'a str, &'a str, &'a str)],
    /// Operations, such as `CREATE`.
    pub operations: &'a [&'a str],
}

/// A policy about a resource of KUDO's group.
pub(super) fn policy(
    name: &str,
    (resource, operations): (&str, &[&str]),
    variables: &[(&str, &str)],
    validations: Vec<Validation>,
    options: &InstallOptions,
) -> ValidatingAdmissionPolicy {
    let resources = &[(meta::KUDO_GROUP, meta::KUDO_VERSION, resource)];
    policy_over(name, &Subjects { resources, operations }, variables, validations, options)
}

pub(super) fn policy_over(
    name: &str,
    subjects: &Subjects<'_>,
    variables: &[(&str, &str)],
    validations: Vec<Validation>,
    options: &InstallOptions,
) -> ValidatingAdmissionPolicy {
    let rule = |&(group, version, resource): &(&str, &str, &str)| NamedRuleWithOperations {
        api_groups: Some(strings([group])),
        api_versions: Some(strings([version])),
        operations: Some(subjects.operations.iter().map(|&o| o.to_owned()).collect()),
        resources: Some(strings([resource])),
        scope: Some("Namespaced".to_owned()),
        resource_names: None,
    };
    let variables: Vec<_> = variables
        .iter()
        .map(|&(name, expression)| Variable { name: name.to_owned(), expression: expression.to_owned() })
        .collect();
    ValidatingAdmissionPolicy {
        metadata: cluster_wide(name),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(vec![not_ourselves(options)]),
            match_constraints: Some(MatchResources {
                match_policy: Some("Equivalent".to_owned()),
                namespace_selector: options.namespace_selector(),
                resource_rules: Some(subjects.resources.iter().map(rule).collect()),
                ..MatchResources::default()
            }),
            validations: Some(validations),
            variables: (!variables.is_empty()).then_some(variables),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    }
}

/// Applies the policy only where a condition is true: otherwise the API server skips its variables,
/// validations and messages, all of which it evaluates for each write.
pub(super) fn only_where(
    mut policy: ValidatingAdmissionPolicy,
    name: &str,
    expression: &str,
) -> ValidatingAdmissionPolicy {
    if let Some(spec) = &mut policy.spec {
        spec.match_conditions.get_or_insert_default().push(condition(name, expression));
    }
    policy
}

pub(super) fn binding(policy: &ValidatingAdmissionPolicy) -> ValidatingAdmissionPolicyBinding {
    let name = policy.metadata.name.clone().unwrap_or_default();
    ValidatingAdmissionPolicyBinding {
        metadata: cluster_wide(&name),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: name,
            validation_actions: strings(["Deny"]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    }
}
