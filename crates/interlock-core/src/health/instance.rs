//! Health of an Instance, as a plan of another one sees it.
//!
//! KUDO treats any idle Instance as healthy, also after a failed plan; here the plan that ended last decides, and what
//! the Instance itself reports of its spec.

use serde_json::Value;

use super::outcome::{Health, condition, full_name, number};
use crate::api::meta::condition as types;

/// Longest part of a message of the Instance that is repeated, in bytes: it may contain those of Instances below it.
const EXCERPT: usize = 1024;

/// The health of an Instance.
pub(super) fn health(object: &Value) -> Health {
    let name = full_name(object);
    if let Some(state) = active(object) {
        return Health::Waiting(format!("instance {name} active plan is in state {state}"));
    }
    // KUDO's manager writes no observedGeneration.
    let observed = &object["status"]["observedGeneration"];
    if observed.is_i64() && number(observed) < number(&object["metadata"]["generation"]) {
        return Health::Waiting(format!("instance {name} has a spec that is not observed yet"));
    }
    let Some(last) = last_ended(object) else {
        let why = told(object, types::READY, types::OPERATOR_VERSION_MISSING);
        return Health::Waiting(format!("instance {name} has not run a plan yet{why}"));
    };
    let plan = last["name"].as_str().unwrap_or_default();
    if last["status"] == "FATAL_ERROR" {
        let why = told(object, types::READY, types::PLAN_IN_FATAL_ERROR);
        return Health::Failed(format!("instance {name} plan {plan} ended with FATAL_ERROR{why}"));
    }
    match condition(object, types::SPEC_DRIFT).filter(|drift| drift["status"] == "True") {
        Some(drift) if drift["reason"] == types::PLAN_OWED => Health::Failed(format!(
            "instance {name} has plans that failed{}",
            told(object, types::SPEC_DRIFT, types::PLAN_OWED)
        )),
        Some(drift) => {
            let reason = drift["reason"].as_str().unwrap_or_default();
            let why = told(object, types::SPEC_DRIFT, reason);
            Health::Waiting(format!("instance {name} has a spec that is not carried out{why}"))
        }
        None => Health::Healthy,
    }
}

/// The state of the plan that is scheduled or runs. What waits for it learns of errors: that it begins, and that its
/// end is recorded, changes nothing for those, and would be a write of a status each time.
fn active(object: &Value) -> Option<&str> {
    let scheduled = object["spec"]["planExecution"]["planName"].as_str().is_some_and(|plan| !plan.is_empty());
    let states = || runs(object).filter_map(|run| run["status"].as_str());
    let runs = states().any(|status| matches!(status, "PENDING" | "IN_PROGRESS"));
    let failing = states().find(|status| *status == "ERROR");
    failing.or_else(|| (runs || scheduled).then_some("IN_PROGRESS"))
}

fn runs(object: &Value) -> impl Iterator<Item = &Value> {
    object["status"]["planStatus"].as_object().into_iter().flat_map(serde_json::Map::values)
}

/// The entry of the run that ended last; of two that ended in one second, which is how exact the times are, the one
/// that failed.
pub fn last_ended(object: &Value) -> Option<&Value> {
    let ended = runs(object).filter(|run| matches!(run["status"].as_str(), Some("COMPLETE" | "FATAL_ERROR")));
    // Times of one format have the order of their texts.
    ended.max_by_key(|run| (run["lastUpdatedTimestamp"].as_str(), run["status"] == "FATAL_ERROR"))
}

/// The message of a condition with that reason, to continue a sentence.
fn told(object: &Value, type_: &str, reason: &str) -> String {
    let found = condition(object, type_).filter(|found| found["reason"] == reason);
    match found.and_then(|found| found["message"].as_str()).filter(|message| !message.is_empty()) {
        Some(message) => format!(": {}", &message[..message.floor_char_boundary(EXCERPT)]),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::health::of;
    use crate::health::tests::told;

    /// An Instance of generation 2.
    fn instance(execution: &Value, status: &Value) -> Value {
        json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": "x", "namespace": "ns", "generation": 2},
            "spec": {"planExecution": execution}, "status": status,
        })
    }

    #[rstest]
    #[case::scheduled(json!({"planName": "deploy", "status": "NEVER_RUN"}), json!({}), "instance ns/x active plan is in state IN_PROGRESS")]
    #[case::running(json!({"planName": "deploy"}), json!({"deploy": {"name": "deploy", "status": "IN_PROGRESS"}}), "instance ns/x active plan is in state IN_PROGRESS")]
    #[case::not_cleared(json!({"planName": "deploy", "status": "COMPLETE"}), json!({"deploy": {"name": "deploy", "status": "COMPLETE"}}), "instance ns/x active plan is in state IN_PROGRESS")]
    #[case::failing(json!({"planName": "deploy"}), json!({"deploy": {"name": "deploy", "status": "ERROR"}}), "instance ns/x active plan is in state ERROR")]
    #[case::not_begun(json!({}), json!({}), "instance ns/x has not run a plan yet")]
    #[case::complete(json!({}), json!({"deploy": {"name": "deploy", "status": "COMPLETE"}}), "healthy")]
    #[case::failed(json!({}), json!({"deploy": {"name": "deploy", "status": "FATAL_ERROR"}}), "FAILED instance ns/x plan deploy ended with FATAL_ERROR")]
    #[case::mended(json!({}), json!({"deploy": {"name": "deploy", "status": "FATAL_ERROR", "lastUpdatedTimestamp": "2026-01-01T00:00:00Z"}, "update": {"name": "update", "status": "COMPLETE", "lastUpdatedTimestamp": "2026-01-02T00:00:00Z"}}), "healthy")]
    fn its_plans(#[case] execution: Value, #[case] plans: Value, #[case] expected: &str) {
        assert_eq!(told(of(&instance(&execution, &json!({"planStatus": plans})))), expected);
    }

    fn reports(type_: &str, reason: &str) -> Value {
        json!([{"type": type_, "status": "True", "reason": reason, "message": "it is so"}])
    }

    #[rstest]
    #[case::observed("COMPLETE", json!(2), json!([]), "healthy")]
    #[case::of_before("COMPLETE", json!(1), json!([]), "instance ns/x has a spec that is not observed yet")]
    #[case::failed_before("FATAL_ERROR", json!(1), json!([]), "instance ns/x has a spec that is not observed yet")]
    #[case::why("FATAL_ERROR", json!(2), json!([{"type": "Ready", "status": "False", "reason": "PlanInFatalError", "message": "no"}]), "FAILED instance ns/x plan deploy ended with FATAL_ERROR: no")]
    #[case::of_its_objects("FATAL_ERROR", json!(2), json!([{"type": "Ready", "status": "False", "reason": "ResourceNotReady", "message": "no"}]), "FAILED instance ns/x plan deploy ended with FATAL_ERROR")]
    #[case::owed("COMPLETE", json!(2), reports("SpecDrift", "PlanOwed"), "FAILED instance ns/x has plans that failed: it is so")]
    #[case::refused("COMPLETE", json!(2), reports("SpecDrift", "UpgradePath"), "instance ns/x has a spec that is not carried out: it is so")]
    #[case::stalled("COMPLETE", json!(2), reports("Stalled", "Other"), "healthy")]
    fn what_it_reports(
        #[case] last: &str,
        #[case] observed: Value,
        #[case] conditions: Value,
        #[case] expected: &str,
    ) {
        let plans = json!({"deploy": {"name": "deploy", "status": last}});
        let status = json!({"planStatus": plans, "observedGeneration": observed, "conditions": conditions});
        assert_eq!(told(of(&instance(&json!({}), &status))), expected);
    }

    #[test]
    fn a_long_message_is_cut() {
        let message = "é".repeat(EXCERPT);
        let status = json!({
            "planStatus": {"deploy": {"name": "deploy", "status": "FATAL_ERROR"}},
            "conditions": [{"type": "Ready", "reason": "PlanInFatalError", "message": message}],
        });
        let said = told(of(&instance(&json!({}), &status)));
        assert!(said.len() < EXCERPT + 100, "{}", said.len());
    }
}
