//! The common shape of the policies of the second layer (ValidatingAdmissionPolicy).

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec, Validation, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::cel;
use crate::admission::Freeze;
use crate::api::docs::DocsUrl;
use crate::api::rule::Rule;

/// A policy, with the options of the installation.
pub type Policy = fn(&PolicyOptions) -> ValidatingAdmissionPolicy;

/// What the policies take from the options of an installation.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// The user of the process, which no policy concerns.
    pub controller_user: String,
    /// The namespaces that admission covers; `None` for all.
    pub namespaces: Option<LabelSelector>,
    /// How strictly a locked Instance is frozen.
    pub freeze: Freeze,
    /// Where the pages can be read that messages refer to.
    pub docs: Option<DocsUrl>,
    /// How a message says where to read about a rule: [`Rule::see`].
    pub see: fn(Rule, Option<&DocsUrl>) -> String,
    /// All rules, which a policy may list.
    pub rules: Vec<Rule>,
}

impl PolicyOptions {
    /// The end of every message: the rule, and where to read about it.
    pub fn named_rule(&self, rule: Rule) -> String {
        format!(" [{}]; see {}", rule.id(), (self.see)(rule, self.docs.as_ref()))
    }
}

/// Skips the user of the process, and no other: an exact match of the whole name.
pub fn not_the_controller(user: &str) -> MatchCondition {
    MatchCondition {
        name: NOT_THE_CONTROLLER.to_owned(),
        expression: format!("{IS_NOT}{}", cel::string(user)),
    }
}

/// Name of the match condition that skips the process.
pub const NOT_THE_CONTROLLER: &str = "not-the-controller";
/// Start of its expression; the name of the user follows, quoted.
pub const IS_NOT: &str = "request.userInfo.username != ";

/// The resources and operations of a policy.
pub struct PolicyScope<'a> {
    /// Group, version and resource of each.
    pub resources: &'a [(&'a str, &'a str, &'a str)],
    /// Operations, such as `CREATE`.
    pub operations: &'a [&'a str],
}

/// A policy about resources in namespaces.
pub fn policy_over(
    name: &str,
    scope: &PolicyScope<'_>,
    variables: &[(&str, &str)],
    validations: Vec<Validation>,
    options: &PolicyOptions,
) -> ValidatingAdmissionPolicy {
    let rule = |&(group, version, resource): &(&str, &str, &str)| NamedRuleWithOperations {
        api_groups: Some(vec![(*group).to_owned()]),
        api_versions: Some(vec![(*version).to_owned()]),
        operations: Some(scope.operations.iter().map(|&o| o.to_owned()).collect()),
        resources: Some(vec![(*resource).to_owned()]),
        scope: Some("Namespaced".to_owned()),
        resource_names: None,
    };
    let variables: Vec<_> = variables
        .iter()
        .map(|&(name, expression)| Variable { name: name.to_owned(), expression: expression.to_owned() })
        .collect();
    ValidatingAdmissionPolicy {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_conditions: Some(vec![not_the_controller(&options.controller_user)]),
            match_constraints: Some(MatchResources {
                match_policy: Some("Equivalent".to_owned()),
                namespace_selector: options.namespaces.clone(),
                resource_rules: Some(scope.resources.iter().map(rule).collect()),
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
pub fn only_where(
    mut policy: ValidatingAdmissionPolicy,
    name: &str,
    expression: &str,
) -> ValidatingAdmissionPolicy {
    if let Some(spec) = &mut policy.spec {
        spec.match_conditions
            .get_or_insert_default()
            .push(MatchCondition { name: name.to_owned(), expression: expression.to_owned() });
    }
    policy
}
