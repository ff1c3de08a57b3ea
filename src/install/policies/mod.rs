//! The second layer: rules that CEL can express, as ValidatingAdmissionPolicies.
//!
//! They apply while the webhook is down or its configuration is gone. They see the object after the
//! webhook's mutation, under the user's identity, so the webhook's own changes must pass too:
//! `planExecution` as `{plan, uid, NEVER_RUN}`.
//!
//! Two traps shape the expressions (both measured): a variable that holds an optional value reads as absent
//! later, so each ends in `orValue`; and the API server drops a message with a line break, so each is one
//! line, with a plain one beside it.

mod flavor;
mod instance;
mod locked;
mod shape;
mod status;
mod verbs;
mod versions;

use serde_json::{Value, json};

pub use flavor::{OVERRIDES, SOURCES};
pub use instance::{FREEZE, LOCK, PLAN_EXECUTION};
use shape::binding;
pub use status::STATUS;
pub use verbs::VERBS;
pub use versions::VERSIONS;

use super::InstallOptions;

/// Policies, each followed by its binding.
pub fn all(options: &InstallOptions) -> Vec<Value> {
    let all = [
        instance::freeze(options),
        instance::lock(options),
        instance::plan_execution(options),
        status::status(options),
        verbs::verbs(options),
        versions::versions(options),
        flavor::overrides(options),
        flavor::sources(options),
    ];
    all.into_iter().flat_map(|policy| [json!(policy), json!(binding(&policy))]).collect()
}

#[cfg(test)]
mod tests {
    use interlock_core::admission::Freeze;

    use super::*;

    fn policies(freeze: Freeze) -> Vec<Value> {
        let options = InstallOptions { freeze, ..InstallOptions::default() };
        all(&options).into_iter().filter(|o| o["kind"] == "ValidatingAdmissionPolicy").collect()
    }

    #[test]
    fn every_policy_fails_closed_and_is_bound() {
        let all = all(&InstallOptions::default());
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
                    let (said, page) = text.split_once("]; see docs/").expect("the page is named");
                    let (said, rule) = said.rsplit_once(" [").expect("the rule is named");
                    assert!(said.contains("; "), "does not say what to do: {said}");
                    let page = page.trim_end_matches('\'');
                    assert!(page == format!("denials/{rule}.md") || page == "router-flavor.md", "{text}");
                }
            }
            for variable in policy["spec"]["variables"].as_array().into_iter().flatten() {
                let expression = variable["expression"].as_str().unwrap();
                let optional = expression.contains(".?") || expression.contains("[?");
                assert!(!optional || expression.contains("orValue"), "{expression} keeps an optional value");
            }
        }
    }

    #[test]
    fn the_status_does_not_depend_on_the_mode() {
        let (strict, same) = (policies(Freeze::Strict), policies(Freeze::SamePlan));
        assert!(strict[..3].iter().zip(&same[..3]).all(|(strict, same)| strict != same));
        assert_eq!(strict[3], same[3]);
    }
}
