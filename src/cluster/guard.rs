//! Whether a ValidatingAdmissionPolicy and its binding are as they were installed, watched by name.

use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client};
use tokio::sync::watch;

/// How a policy stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// As it was installed.
    Intact,
    /// Not; why, for people.
    Broken(String),
}

impl Guard {
    /// Whether it guards.
    pub fn holds(&self) -> bool {
        *self == Self::Intact
    }
}

/// A policy and its binding as they must be; both have one name.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The policy.
    pub policy: ValidatingAdmissionPolicy,
    /// Its binding.
    pub binding: ValidatingAdmissionPolicyBinding,
}

/// What is there; the outer `None` where nobody has looked.
#[derive(Default)]
struct Found {
    policy: Option<Option<ValidatingAdmissionPolicy>>,
    binding: Option<Option<ValidatingAdmissionPolicyBinding>>,
}

/// Watches for ever.
pub async fn follow(client: Client, expected: Expected, guard: watch::Sender<Guard>) {
    let name = expected.policy.metadata.name.clone().unwrap_or_default();
    let policies =
        watch_object(Api::<ValidatingAdmissionPolicy>::all(client.clone()), &name).default_backoff();
    let bindings =
        watch_object(Api::<ValidatingAdmissionPolicyBinding>::all(client), &name).default_backoff();
    let (mut policies, mut bindings) = (std::pin::pin!(policies), std::pin::pin!(bindings));
    let mut found = Found::default();
    loop {
        let failed = tokio::select! {
            Some(event) = policies.next() => event.map(|seen| found.policy = Some(seen)).err(),
            Some(event) = bindings.next() => event.map(|seen| found.binding = Some(seen)).err(),
            else => return,
        };
        if let Some(error) = failed {
            tracing::warn!(policy = name, %error, "the policy cannot be watched; trying again");
        }
        let now = judge(&expected, &found);
        guard.send_if_modified(|guard| {
            let changed = *guard != now;
            *guard = now;
            changed
        });
    }
}

fn judge(expected: &Expected, found: &Found) -> Guard {
    let name = expected.policy.metadata.name.as_deref().unwrap_or_default();
    let (Some(policy), Some(binding)) = (&found.policy, &found.binding) else { return Guard::Unknown };
    let problem = match (policy, binding) {
        (None, _) => Some(format!("ValidatingAdmissionPolicy {name} is not there")),
        (_, None) => Some(format!("ValidatingAdmissionPolicyBinding {name} is not there")),
        (Some(policy), Some(binding)) => differs(&expected.policy, policy)
            .map(|part| format!("ValidatingAdmissionPolicy {name} differs from what was installed in {part}"))
            .or_else(|| {
                let part = unbound(&expected.binding, binding)?;
                Some(format!(
                    "ValidatingAdmissionPolicyBinding {name} differs from what was installed in {part}"
                ))
            }),
    };
    match problem {
        None => Guard::Intact,
        Some(problem) => Guard::Broken(format!("{problem}; apply what `interlock render policies` prints")),
    }
}

/// The first part of a policy that makes it guard less. Texts do not matter, nor do further
/// validations.
fn differs(expected: &ValidatingAdmissionPolicy, found: &ValidatingAdmissionPolicy) -> Option<&'static str> {
    let (wanted, found) = (expected.spec.clone().unwrap_or_default(), found.spec.clone().unwrap_or_default());
    let there: Vec<String> = found.validations.iter().flatten().map(|v| v.expression.clone()).collect();
    let all = wanted.validations.iter().flatten().all(|v| there.contains(&v.expression));
    let checks = [
        ("failurePolicy", wanted.failure_policy == found.failure_policy),
        ("paramKind", wanted.param_kind == found.param_kind),
        ("matchConditions", wanted.match_conditions == found.match_conditions),
        ("matchConstraints", matched(wanted.match_constraints) == matched(found.match_constraints)),
        ("variables", wanted.variables == found.variables),
        ("validations", all),
    ];
    checks.into_iter().find(|(_, same)| !same).map(|(part, _)| part)
}

fn unbound(
    expected: &ValidatingAdmissionPolicyBinding,
    found: &ValidatingAdmissionPolicyBinding,
) -> Option<&'static str> {
    let (wanted, found) = (expected.spec.clone(), found.spec.clone());
    let acts = wanted.validation_actions.iter().all(|action| found.validation_actions.contains(action));
    let checks = [
        ("policyName", wanted.policy_name == found.policy_name),
        ("paramRef", wanted.param_ref == found.param_ref),
        ("matchResources", matched(wanted.match_resources) == matched(found.match_resources)),
        ("validationActions", acts),
    ];
    checks.into_iter().find(|(_, same)| !same).map(|(part, _)| part)
}

/// What is matched, without what the API server fills in.
fn matched(resources: Option<MatchResources>) -> MatchResources {
    let empty = |selector: &LabelSelector| {
        selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
            && selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
    };
    let mut found = resources.unwrap_or_default();
    found.namespace_selector = found.namespace_selector.filter(|selector| !empty(selector));
    found.object_selector = found.object_selector.filter(|selector| !empty(selector));
    found.match_policy = found.match_policy.filter(|policy| policy != "Equivalent");
    found.exclude_resource_rules = found.exclude_resource_rules.filter(|rules| !rules.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn policy(change: &Value) -> ValidatingAdmissionPolicy {
        let mut policy = json!({
            "metadata": {"name": "p"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConditions": [{"name": "c", "expression": "a"}],
                "matchConstraints": {"resourceRules": [{"apiGroups": ["g"], "resources": ["r"]}]},
                "variables": [{"name": "v", "expression": "1"}],
                "validations": [{"expression": "x", "message": "m"}, {"expression": "y"}],
            },
        });
        json_patch::merge(&mut policy, change);
        serde_json::from_value(policy).unwrap()
    }

    fn binding(change: &Value) -> ValidatingAdmissionPolicyBinding {
        let mut binding =
            json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
        json_patch::merge(&mut binding, change);
        serde_json::from_value(binding).unwrap()
    }

    /// What the API server fills in, texts and additions change nothing; everything else does.
    #[rstest]
    #[case::same(json!({}), json!({}), None)]
    #[case::filled_in(json!({"spec": {"matchConstraints": {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}}}), json!({"spec": {"matchResources": {"matchPolicy": "Equivalent"}}}), None)]
    #[case::more(json!({"spec": {"validations": [{"expression": "z"}, {"expression": "x"}, {"expression": "y"}]}}), json!({"spec": {"validationActions": ["Audit", "Deny"]}}), None)]
    #[case::less(json!({"spec": {"validations": [{"expression": "x"}]}}), json!({}), Some("validations"))]
    #[case::other(json!({"spec": {"validations": [{"expression": "x"}, {"expression": "true"}]}}), json!({}), Some("validations"))]
    #[case::open(json!({"spec": {"failurePolicy": "Ignore"}}), json!({}), Some("failurePolicy"))]
    #[case::exempt(json!({"spec": {"matchConditions": [{"name": "c", "expression": "false"}]}}), json!({}), Some("matchConditions"))]
    #[case::elsewhere(json!({"spec": {"matchConstraints": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}}), json!({}), Some("matchConstraints"))]
    #[case::excluded(json!({"spec": {"matchConstraints": {"excludeResourceRules": [{"resources": ["r"]}]}}}), json!({}), Some("matchConstraints"))]
    #[case::variable(json!({"spec": {"variables": [{"name": "v", "expression": "2"}]}}), json!({}), Some("variables"))]
    #[case::warns(json!({}), json!({"spec": {"validationActions": ["Warn"]}}), Some("validationActions"))]
    #[case::of_another(json!({}), json!({"spec": {"policyName": "q"}}), Some("policyName"))]
    #[case::bound_elsewhere(json!({}), json!({"spec": {"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}}), Some("matchResources"))]
    fn what_matters(
        #[case] policy_change: Value,
        #[case] binding_change: Value,
        #[case] broken: Option<&str>,
    ) {
        let expected = Expected { policy: policy(&json!({})), binding: binding(&json!({})) };
        let found = Found {
            policy: Some(Some(policy(&policy_change))),
            binding: Some(Some(binding(&binding_change))),
        };
        match (judge(&expected, &found), broken) {
            (Guard::Intact, None) => {}
            (Guard::Broken(why), Some(part)) => assert!(why.contains(part), "{why}"),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_not_there_guards_nothing() {
        let expected = Expected { policy: policy(&json!({})), binding: binding(&json!({})) };
        let there = || Some(Some(policy(&json!({}))));
        let judged = |found: Found| judge(&expected, &found);
        assert_eq!(judged(Found::default()), Guard::Unknown);
        assert_eq!(judged(Found { policy: there(), binding: None }), Guard::Unknown);
        assert!(matches!(judged(Found { policy: there(), binding: Some(None) }), Guard::Broken(_)));
        assert!(matches!(judged(Found { policy: Some(None), binding: Some(None) }), Guard::Broken(_)));
    }
}
