//! Pods of a workload that the API server rejects. A Deployment reports it in a condition, the controllers of other
//! workloads only in an Event.

use serde_json::Value;

use super::outcome::{condition, holds, is_observed, number};
use crate::api::object::Gvk;
use crate::rejection::Rejection;

/// Reason of the Event of a controller that could not create a pod.
pub const FAILED_CREATE: &str = "FailedCreate";
/// Reason of the Event of a controller that created a pod.
pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";

/// Why the pods of a Deployment are rejected, according to its condition `ReplicaFailure`.
pub fn reported(object: &Value) -> Option<Rejection> {
    let failure = condition(object, "ReplicaFailure").filter(|_| is_observed(object))?;
    let fails = failure["status"] == "True" && failure["reason"] == FAILED_CREATE;
    refused(failure["message"].as_str().filter(|_| fails)?)
}

/// The rejection in a report, unless the next try may succeed by itself.
pub fn refused(report: &str) -> Option<Rejection> {
    Some(Rejection::of_report(report)).filter(|rejection| rejection.kind.needs_person())
}

/// To continue a sentence.
pub fn told(refused: &Rejection) -> String {
    format!("; its pods are refused: {}", refused.message)
}

/// Whether a workload that is not healthy has fewer pods than it asks for, of which its status does not say why.
pub fn lacks(object: &Value) -> bool {
    let Some(gvk) = Gvk::of(object) else { return false };
    let (spec, status) = (&object["spec"], &object["status"]);
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "StatefulSet") => {
            is_observed(object) && number(&status["replicas"]) < spec["replicas"].as_i64().unwrap_or(1)
        }
        ("apps", "DaemonSet") => {
            is_observed(object)
                && number(&status["currentNumberScheduled"]) < number(&status["desiredNumberScheduled"])
        }
        ("batch", "Job") => {
            let ended = holds(object, "Complete") || holds(object, "Failed");
            !ended && spec["suspend"] != true && number(&status["active"]) == 0
        }
        _ => false,
    }
}

/// The last report of the controller of a workload, of the Events on it: `None` where it has created a pod since.
pub fn last_report(events: &[Value]) -> Option<&str> {
    let time = |event: &Value| {
        let fields =
            [&event["series"]["lastObservedTime"], &event["deprecatedLastTimestamp"], &event["eventTime"]];
        fields.iter().find_map(|time| time.as_str()).unwrap_or_default().to_owned()
    };
    let created = |event: &&Value| event["reason"] == FAILED_CREATE || event["reason"] == SUCCESSFUL_CREATE;
    // At the same second the failure counts: pods are created in turn, and the first ones may be accepted.
    let last =
        events.iter().filter(created).max_by_key(|event| (time(event), event["reason"] == FAILED_CREATE))?;
    last["note"].as_str().filter(|_| last["reason"] == FAILED_CREATE)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const QUOTA: &str = "pods \"x-\" is forbidden: exceeded quota: q, requested: pods=1";

    fn object(kind: &str, spec: Value, status: Value) -> Value {
        let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        json!({"apiVersion": group, "kind": kind, "metadata": {"name": "x", "generation": 2}, "spec": spec, "status": status})
    }

    #[rstest]
    #[case::refused("True", "FailedCreate", QUOTA, 2, true)]
    #[case::of_before("True", "FailedCreate", QUOTA, 1, false)]
    #[case::over("False", "FailedCreate", QUOTA, 2, false)]
    #[case::deletes("True", "FailedDelete", QUOTA, 2, false)]
    #[case::may_pass(
        "True",
        "FailedCreate",
        "Operation cannot be fulfilled on resourcequotas \"q\"",
        2,
        false
    )]
    fn what_a_deployment_reports(
        #[case] status: &str,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] observed: i64,
        #[case] expected: bool,
    ) {
        let failure =
            json!({"type": "ReplicaFailure", "status": status, "reason": reason, "message": message});
        let status = json!({"observedGeneration": observed, "conditions": [failure]});
        assert_eq!(reported(&object("Deployment", json!({}), status)).is_some(), expected);
    }

    #[rstest]
    #[case::stateful_set("StatefulSet", json!({"replicas": 2}), json!({"observedGeneration": 2, "replicas": 1}), true)]
    #[case::not_observed("StatefulSet", json!({"replicas": 2}), json!({"observedGeneration": 1}), false)]
    #[case::all_created("StatefulSet", json!({}), json!({"observedGeneration": 2, "replicas": 1}), false)]
    #[case::daemon_set("DaemonSet", json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 1}), true)]
    #[case::no_node("DaemonSet", json!({}), json!({"observedGeneration": 2}), false)]
    #[case::job("Job", json!({}), json!({}), true)]
    #[case::suspended("Job", json!({"suspend": true}), json!({}), false)]
    #[case::active("Job", json!({}), json!({"active": 1}), false)]
    #[case::complete("Job", json!({}), json!({"conditions": [{"type": "Complete", "status": "True"}]}), false)]
    #[case::deployment("Deployment", json!({}), json!({"observedGeneration": 2}), false)]
    fn what_lacks_pods(
        #[case] kind: &str,
        #[case] spec: Value,
        #[case] status: Value,
        #[case] expected: bool,
    ) {
        assert_eq!(lacks(&object(kind, spec, status)), expected);
    }

    fn event(reason: &str, time: &str) -> Value {
        json!({"reason": reason, "note": reason, "deprecatedLastTimestamp": format!("2026-01-01T00:00:{time}Z")})
    }

    #[rstest]
    #[case::none(vec![], None)]
    #[case::failed(vec![event("FailedCreate", "02"), event("SuccessfulCreate", "01")], Some("FailedCreate"))]
    #[case::created_since(vec![event("FailedCreate", "02"), event("SuccessfulCreate", "03")], None)]
    #[case::at_once(vec![event("FailedCreate", "02"), event("SuccessfulCreate", "02")], Some("FailedCreate"))]
    #[case::others(vec![event("FailedCreate", "02"), event("Other", "03")], Some("FailedCreate"))]
    #[case::forged(vec![json!({"reason": 1}), json!("x")], None)]
    fn the_last_event(#[case] events: Vec<Value>, #[case] expected: Option<&str>) {
        assert_eq!(last_report(&events), expected);
    }
}
