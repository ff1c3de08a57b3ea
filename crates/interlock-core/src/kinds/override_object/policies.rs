//! Who may create an Override, and of which rules: by the API server's own authorizer.

use crate::kinds::override_object::ids::OVERRIDE_RIGHTS;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, Validation};

use crate::api::meta::INTERLOCK_GROUP;
use crate::kinds::descriptor::{PolicyOptions, PolicyScope, cel, policy_over};

/// Overrides. The verb is a right beside that to create the object, so that a role which may write everything of
/// a group gives it only where it says so.
pub const OVERRIDES: &str = "interlock-overrides";

/// The verb on `overrides.interlock.dev`, with the rule as the name.
const VERB: &str = "override";

pub(super) fn overrides(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let ids: Vec<&str> =
        options.rules.iter().filter(|rule| rule.can_be_overridden()).map(|rule| rule.id()).collect();
    let listed = ids.iter().map(|id| cel::string(id)).collect::<Vec<_>>().join(", ");
    let may = format!(
        "authorizer.group({}).resource('overrides').name(object.spec.rule).check('{VERB}').allowed()",
        cel::string(INTERLOCK_GROUP)
    );
    let named = options.named_rule(OVERRIDE_RIGHTS);
    let guard = |expression: String, plain: String, text: String| Validation {
        expression,
        message: Some(format!("{plain}{named}")),
        message_expression: Some(format!("'Override ' + request.name + ': {text}{named}'")),
        reason: Some("Invalid".to_owned()),
    };
    let known = ids.join(", ");
    let validations = vec![
        guard(
            format!("object.spec.rule in [{listed}]"),
            format!("no other rule can be overridden; name one of {known}"),
            format!("spec.rule is none that can be overridden; name one of {known}"),
        ),
        guard(
            may,
            format!("this needs the verb {VERB} on overrides.interlock.dev; ask for a role that gives it"),
            format!(
                "user ' + request.userInfo.username + ' has no verb {VERB} on overrides.interlock.dev for rule ' + \
                 object.spec.rule + '; ask for a role that gives it"
            ),
        ),
    ];
    let resources = &[(INTERLOCK_GROUP, "v1alpha1", "overrides")];
    let scope = PolicyScope { resources, operations: &["CREATE"] };
    let mut policy = policy_over(OVERRIDES, &scope, &[], validations, options);
    let constraints = policy.spec.as_mut().and_then(|spec| spec.match_constraints.as_mut());
    if let Some(constraints) = constraints {
        // A selector of namespaces is no selector of cluster-scoped objects.
        constraints.namespace_selector = None;
        for rule in constraints.resource_rules.iter_mut().flatten() {
            rule.scope = Some("Cluster".to_owned());
        }
    }
    policy
}
