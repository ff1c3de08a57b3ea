//! The second layer: rules that CEL can express, as ValidatingAdmissionPolicies.
//!
//! The kinds declare them. They apply while the webhook is down or its configuration is gone.
//!
//! Two traps shape the expressions (both measured): a variable that holds an optional value reads as absent
//! later, so each ends in `orValue`; and the API server drops a message with a line break, so each is one
//! line, with a plain one beside it.

use interlock_core::kinds::Kinds;
use interlock_core::kinds::descriptor::PolicyOptions;
use interlock_kong::data_plane::rollout::protect_live;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
};
use serde_json::{Value, json};

use super::InstallOptions;
use super::metadata::{cluster_wide, strings};

/// The policies of all kinds, each followed by its binding.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    let mut all = of(options.kinds, &options.policies());
    if options.protect_live {
        all.extend(protect_live(options));
    }
    all
}

pub(super) fn of(kinds: Kinds, given: &PolicyOptions) -> Vec<Value> {
    kinds.iter().flat_map(|kind| kind.policies).flat_map(|policy| bound(policy(given))).collect()
}

/// The policy that keeps people from deleting what is live of a DataPlane, with its binding. Opt-in: it stands
/// between people and the remedies that they know.
pub fn protect_live(options: &InstallOptions) -> Vec<Value> {
    protecting_live(&options.policies()).into()
}

pub(super) fn protecting_live(given: &PolicyOptions) -> [Value; 2] {
    bound(protect_live::protect_live(given))
}

fn bound(policy: ValidatingAdmissionPolicy) -> [Value; 2] {
    let name = policy.metadata.name.clone().unwrap_or_default();
    let policy = ValidatingAdmissionPolicy { metadata: cluster_wide(&name), ..policy };
    [json!(policy), json!(binding(name))]
}

fn binding(policy: String) -> ValidatingAdmissionPolicyBinding {
    ValidatingAdmissionPolicyBinding {
        metadata: cluster_wide(&policy),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: policy,
            validation_actions: strings(["Deny"]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::admission::Freeze;
    use interlock_core::kinds;

    use super::*;

    fn policies(freeze: Freeze) -> Vec<Value> {
        let options = InstallOptions { freeze, protect_live: true, ..InstallOptions::default() };
        all(&options).into_iter().filter(|o| o["kind"] == "ValidatingAdmissionPolicy").collect()
    }

    #[test]
    fn every_policy_fails_closed_and_is_bound() {
        let all = all(&InstallOptions { protect_live: true, ..InstallOptions::default() });
        for pair in all.chunks(2) {
            assert_eq!(pair[0]["spec"]["failurePolicy"], "Fail");
            assert_eq!(pair[1]["spec"]["policyName"], pair[0]["metadata"]["name"]);
            assert_eq!(pair[1]["spec"]["validationActions"], json!(["Deny"]));
        }
    }

    /// A line break loses the message; an optional value in a variable reads as absent.
    #[test]
    fn no_trap_is_stepped_into() {
        for policy in [Freeze::Strict, Freeze::SamePlan].into_iter().flat_map(policies) {
            for validation in policy["spec"]["validations"].as_array().unwrap() {
                for text in ["message", "messageExpression"] {
                    let text = validation[text].as_str().unwrap();
                    assert!(!text.contains('\n'), "{validation}");
                    let (said, see) = text.split_once("]; see ").expect("the page is named");
                    let (said, rule) = said.rsplit_once(" [").expect("the rule is named");
                    assert!(said.contains("; "), "does not say what to do: {said}");
                    assert_eq!(see.trim_end_matches('\''), format!("`interlock explain {rule}`"), "{text}");
                }
            }
            for variable in policy["spec"]["variables"].as_array().into_iter().flatten() {
                let expression = variable["expression"].as_str().unwrap();
                let optional = expression.contains(".?") || expression.contains("[?");
                assert!(!optional || expression.contains("orValue"), "{expression} keeps an optional value");
            }
        }
    }

    /// The second layer knows of no Override: what it refuses cannot be overridden.
    #[test]
    fn no_policy_keeps_a_rule_that_can_be_overridden() {
        let ids: Vec<&str> = kinds::rules(crate::kinds::all())
            .filter(|rule| rule.can_be_overridden())
            .map(|rule| rule.id())
            .collect();
        assert!(ids.len() > 4, "{ids:?}");
        for policy in [Freeze::Strict, Freeze::SamePlan].into_iter().flat_map(policies) {
            for validation in policy["spec"]["validations"].as_array().unwrap() {
                let text = validation["message"].as_str().unwrap();
                assert!(!ids.iter().any(|id| text.contains(&format!("[{id}]"))), "{text}");
            }
        }
    }

    #[test]
    fn messages_lead_to_the_documentation_of_the_installation() {
        let docs = Some("https://docs.example.org/guard/".parse().unwrap());
        let all = all(&InstallOptions { docs, ..InstallOptions::default() });
        let text = json!(all).to_string();
        assert!(!text.contains("`interlock explain"), "{text}");
        assert!(
            text.contains("[plan-running]; see https://docs.example.org/guard/docs/denials/plan-running.md"),
            "{text}"
        );
    }

    #[test]
    fn the_status_does_not_depend_on_the_mode() {
        let (strict, same) = (policies(Freeze::Strict), policies(Freeze::SamePlan));
        assert!(strict[..3].iter().zip(&same[..3]).all(|(strict, same)| strict != same));
        assert_eq!(strict[3], same[3]);
    }
}
