//! What is wrong with an Instance, the most pressing first: from its conditions, or from its row where only that is
//! known. Pure.

use std::cmp::Reverse;

use interlock_core::api::meta::condition as types;
use interlock_core::kinds::age::seconds;
use interlock_core::kinds::fact;
use interlock_core::kinds::page::TroubleState;
use interlock_core::topology::ObjectRow;
use interlock_core::topology::schema::{Fact, ReadDepth};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::summary;
use super::summary::{FAILED, NOT_READY, condition, is};

/// Since when an Instance has been in trouble.
pub(super) const SINCE: Fact = Fact { name: fact::TROUBLED, read: ReadDepth::Mark(since) };

/// How long a plan may wait before that is a trouble: every rollout waits for its pods.
pub const WAIT_GRACE: SignedDuration = SignedDuration::from_secs(30);

/// A condition that reports a trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble<'a> {
    /// What is wrong.
    pub state: TroubleState,
    /// Type of the condition.
    pub type_: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
    /// Its `lastTransitionTime`; of a request that is sent again, when it first failed.
    pub since: Option<&'a str>,
}

/// The troubles of an Instance. Conditions that repeat a message are left out.
pub fn of(object: &Value) -> Vec<Trouble<'_>> {
    let drifts = is(object, types::SPEC_DRIFT);
    let state = summary::state(object);
    let at_rest = state == FAILED || state == NOT_READY;
    let found = [types::STALLED, types::SPEC_DRIFT, types::READY, types::RECONCILING].map(|type_| {
        let condition = condition(object, type_)?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let holds = text("status") == "True";
        let state = match (type_, text("reason")) {
            (types::STALLED, types::PLAN_IN_FATAL_ERROR) if holds => TroubleState::Failed,
            (types::STALLED, _) if holds && drifts => TroubleState::Drifted,
            (types::STALLED, _) if holds => TroubleState::Stalled,
            (types::SPEC_DRIFT, _) if holds => TroubleState::Drifted,
            (types::READY, _) if !holds && at_rest => TroubleState::NotReady,
            (types::RECONCILING, types::WAITING | types::RETRYING | types::PAUSED) if holds => {
                TroubleState::Waiting
            }
            _ => return None,
        };
        let changed = condition["lastTransitionTime"].as_str();
        let failing = object["status"]["progress"]["retryingSince"].as_str();
        let since = failing.filter(|_| text("reason") == types::RETRYING).or(changed);
        Some(Trouble { state, type_, reason: text("reason"), message: text("message"), since })
    });
    found.into_iter().flatten().fold(Vec::new(), |mut known: Vec<Trouble<'_>>, next| {
        if known.iter().all(|trouble| trouble.message != next.message) {
            known.push(next);
        }
        known
    })
}

fn since(object: &Value) -> u64 {
    seconds(of(object).first().and_then(|trouble| trouble.since))
}

/// What is wrong, by the row alone.
pub fn at_a_glance(row: &ObjectRow<'_>, now: Timestamp) -> Option<TroubleState> {
    let word = |fact| row.word(fact).unwrap_or_default();
    let since = row.number(fact::TROUBLED).and_then(|since| i64::try_from(since).ok()).unwrap_or_default();
    let long = now.as_second() - since >= WAIT_GRACE.as_secs();
    match (word(fact::STATE), word(fact::WAITS)) {
        (FAILED, _) => Some(TroubleState::Failed),
        _ if word(fact::DRIFTED) == fact::YES => Some(TroubleState::Drifted),
        (_, types::WAITING | types::RETRYING | types::PAUSED) => long.then_some(TroubleState::Waiting),
        (NOT_READY, "") => Some(TroubleState::NotReady),
        (_, "") => None,
        (_, _) => Some(TroubleState::Stalled),
    }
}

/// The order in which troubles are shown: the most pressing first, of equal ones the most recent.
pub(super) fn order(state: TroubleState, since: u64) -> (TroubleState, Reverse<u64>) {
    (state, Reverse(since))
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds;
    use interlock_core::topology::{Epoch, GraphChange};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": message,
               "lastTransitionTime": "2026-01-01T00:00:10Z"})
    }

    fn entry(status: &str) -> Value {
        json!({"name": "deploy", "uid": "u", "status": status, "lastUpdatedTimestamp": "2999-01-01T00:00:00Z"})
    }

    /// An Instance with the last run of its plan, and these conditions.
    fn instance(plan: &str, conditions: &[(&str, &str, &str)]) -> Value {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status, reason)| {
                // Ready repeats what Stalled says, as the reconciler writes them.
                let message = if *type_ == "Ready" { "Stalled" } else { type_ };
                condition(type_, status, reason, message)
            })
            .collect();
        json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"namespace": "team", "name": "demo", "uid": "1", "resourceVersion": "1"},
            "spec": {},
            "status": {"planStatus": {"deploy": entry(plan)}, "conditions": conditions},
        })
    }

    const FAILURE: [(&str, &str, &str); 3] = [
        ("Ready", "False", "PlanInFatalError"),
        ("Stalled", "True", "PlanInFatalError"),
        ("SpecDrift", "True", "PlanOwed"),
    ];

    #[rstest]
    #[case::well("COMPLETE", &[("Ready", "True", "ResourcesReady")], &[])]
    #[case::runs("IN_PROGRESS", &[("Ready", "Unknown", "PlanInProgress"), ("Reconciling", "True", "PlanInProgress")], &[])]
    #[case::failed("FATAL_ERROR", &FAILURE, &["failed PlanInFatalError", "drifted PlanOwed"])]
    #[case::owed("COMPLETE", &[("Stalled", "True", "PlanOwed"), ("SpecDrift", "True", "PlanOwed")], &["drifted PlanOwed", "drifted PlanOwed"])]
    #[case::stalled("IN_PROGRESS", &[("Ready", "Unknown", "R"), ("Stalled", "True", "RequestRefused")], &["stalled RequestRefused"])]
    #[case::unhealthy("COMPLETE", &[("Ready", "False", "ResourceNotReady")], &["not ready ResourceNotReady"])]
    #[case::unknown("COMPLETE", &[("Ready", "Unknown", "MissingDependency")], &["not ready MissingDependency"])]
    #[case::waits("IN_PROGRESS", &[("Reconciling", "True", "Waiting")], &["waiting Waiting"])]
    #[case::over("COMPLETE", &[("Ready", "True", "R"), ("Stalled", "False", "R"), ("SpecDrift", "False", "R")], &[])]
    fn what_is_wrong(
        #[case] plan: &str,
        #[case] conditions: &[(&str, &str, &str)],
        #[case] expected: &[&str],
    ) {
        let object = instance(plan, conditions);
        let found: Vec<String> = of(&object)
            .iter()
            .map(|trouble| format!("{} {}", trouble.state.as_str(), trouble.reason))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_request_that_is_sent_again_fails_since_it_first_did() {
        let mut object = instance("ERROR", &[("Reconciling", "True", "Retrying")]);
        assert_eq!(of(&object)[0].since, Some("2026-01-01T00:00:10Z"));
        object["status"]["progress"] = json!({"retryingSince": "2026-01-01T00:00:20Z"});
        assert_eq!(of(&object)[0].since, Some("2026-01-01T00:00:20Z"));
        assert_eq!(since(&object), 1_767_225_620);
    }

    #[rstest]
    #[case(json!(null))]
    #[case(json!({"conditions": "x", "planStatus": []}))]
    #[case(json!({"conditions": [{"type": "Stalled", "status": true, "reason": 1}]}))]
    fn a_forged_status_is_no_trouble(#[case] status: Value) {
        let object = json!({"metadata": {}, "status": status});
        assert_eq!((of(&object), since(&object)), (Vec::new(), 0));
    }

    /// The row, and what the whole object says.
    #[rstest]
    #[case::well("COMPLETE", &[("Ready", "True", "ResourcesReady")], 99, None)]
    #[case::failed("FATAL_ERROR", &FAILURE, 99, Some(TroubleState::Failed))]
    #[case::owed("COMPLETE", &[("Stalled", "True", "PlanOwed"), ("SpecDrift", "True", "PlanOwed")], 99, Some(TroubleState::Drifted))]
    #[case::stalled("IN_PROGRESS", &[("Stalled", "True", "RequestRefused")], 99, Some(TroubleState::Stalled))]
    #[case::unhealthy("COMPLETE", &[("Ready", "False", "ResourceNotReady")], 99, Some(TroubleState::NotReady))]
    #[case::waits("IN_PROGRESS", &[("Reconciling", "True", "Waiting")], 99, Some(TroubleState::Waiting))]
    #[case::waits_briefly("IN_PROGRESS", &[("Reconciling", "True", "Waiting")], 29, None)]
    fn the_row_says_the_same(
        #[case] plan: &str,
        #[case] conditions: &[(&str, &str, &str)],
        #[case] seconds: i64,
        #[case] expected: Option<TroubleState>,
    ) {
        let object = instance(plan, conditions);
        let mut graph = kinds::graph(crate::all());
        let kind = graph.kind(interlock_core::api::meta::KUDO_GROUP, "Instance");
        graph.kind_available(kind, Epoch(1));
        graph.apply(kind, Epoch(1), GraphChange::Applied(&object));
        let began: Timestamp = "2026-01-01T00:00:10Z".parse().unwrap();
        let row = graph.rows(kind).next().unwrap();
        let glance = at_a_glance(&row, began + SignedDuration::from_secs(seconds));
        assert_eq!(glance, expected);
        if let Some(state) = expected {
            assert_eq!(of(&object).first().map(|trouble| trouble.state), Some(state));
            assert_eq!(row.number(fact::TROUBLED), Some(1_767_225_610));
        }
    }

    #[test]
    fn what_failed_comes_before_what_waits_and_the_latest_first() {
        let mut all = [(TroubleState::Waiting, 9), (TroubleState::Failed, 1), (TroubleState::Failed, 5)];
        all.sort_by_key(|(state, since)| order(*state, *since));
        assert_eq!(all, [(TroubleState::Failed, 5), (TroubleState::Failed, 1), (TroubleState::Waiting, 9)]);
    }
}
