//! What metrics say of an Instance, in a few words from closed lists: its state, when its plan started,
//! whether its spec has drifted, and what it waits for. Pure, from the object alone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use interlock_core::api::meta::{condition as types, event};
use interlock_core::health::instance::last_ended;
use interlock_core::kinds::fact;
use interlock_core::kinds::gauge::Gauge;
use interlock_core::topology::ObjectRow;
use interlock_core::topology::schema::{Fact, ReadDepth};
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use super::change::lock;
use super::change::lock::LockEntry;
use crate::api::ExecutionStatus;

/// The states of an Instance; each is in exactly one.
const STATES: [&str; 6] = [DELETING, SCHEDULED, RUNNING, FAILED, READY, NOT_READY];
const DELETING: &str = "deleting";
const SCHEDULED: &str = "scheduled";
const RUNNING: &str = "running";
pub(super) const FAILED: &str = "failed";
const READY: &str = "ready";
pub(super) const NOT_READY: &str = "not_ready";

/// What an Instance waits for: reasons of `Reconciling`, then those of `Stalled`; any other is [`OTHER`].
const WAITING: [&str; 12] = [
    types::WAITING,
    types::RETRYING,
    types::PAUSED,
    types::TRANSIENT_ERROR,
    types::NEVER_DONE,
    types::MISSING_DEPENDENCY,
    types::NO_SERVICE_ACCOUNT,
    types::MISSING_RIGHT,
    types::SPEC_NOT_KEPT,
    types::OPERATOR_VERSION_MISSING,
    event::INVALID_OPERATOR_VERSION,
    OTHER,
];
const OTHER: &str = "Other";

/// The facts that metrics are made of.
pub(super) const FACTS: [Fact; 4] = [
    Fact { name: fact::STATE, read: ReadDepth::Word(|object| state(object).into()) },
    Fact { name: fact::DRIFTED, read: ReadDepth::Word(drifted) },
    Fact { name: fact::WAITS, read: ReadDepth::Word(|object| waits(object).into()) },
    Fact { name: fact::STARTED, read: ReadDepth::Mark(started) },
];

/// What metrics say of all Instances: by their rows, whatever the size of the objects.
pub(super) fn gauges(rows: &mut dyn Iterator<Item = ObjectRow<'_>>, now: u64) -> Vec<Gauge> {
    Totals::of(rows).gauges(now)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Instances by state.
    states: BTreeMap<&'static str, u64>,
    /// Those whose spec has drifted.
    drifted: u64,
    /// Those that wait, by reason.
    waiting: BTreeMap<&'static str, u64>,
    /// When the oldest run that is not over was started, in Unix seconds.
    oldest_start: Option<u64>,
}

impl Totals {
    fn of<'g>(rows: impl Iterator<Item = ObjectRow<'g>>) -> Self {
        let mut totals = Self::default();
        rows.for_each(|row| totals.add(&row));
        totals
    }

    fn gauges(&self, now: u64) -> Vec<Gauge> {
        let count =
            |counts: &BTreeMap<&str, u64>, word: &'static str| (word, counts.get(word).copied().unwrap_or(0));
        let help = "Instances by state, as this replica has them";
        let states = STATES.map(|state| count(&self.states, state));
        let waiting = WAITING.map(|reason| count(&self.waiting, reason));
        let age = self.oldest_start.map_or(0, |start| now.saturating_sub(start));
        vec![
            Gauge::by(("instances", "state"), help, states),
            Gauge::of(
                "instances_drifted",
                "Instances whose spec differs from what was carried out",
                self.drifted,
            ),
            Gauge::by(
                ("instances_waiting", "reason"),
                "Instances that wait, by the reason of their condition Reconciling or Stalled",
                waiting,
            ),
            Gauge::of(
                "oldest_running_plan_age_seconds",
                "Seconds since the start of the oldest run that has not ended; 0 without one",
                age,
            ),
        ]
    }

    fn add(&mut self, row: &ObjectRow<'_>) {
        let word = |fact, list: &[&'static str]| {
            let found = row.word(fact)?;
            list.iter().copied().find(|word| *word == found)
        };
        *self.states.entry(word(fact::STATE, &STATES).unwrap_or(NOT_READY)).or_default() += 1;
        self.drifted += u64::from(row.word(fact::DRIFTED) == Some(fact::YES));
        if let Some(reason) = word(fact::WAITS, &WAITING) {
            *self.waiting.entry(reason).or_default() += 1;
        }
        let started = row.number(fact::STARTED).filter(|started| *started > 0);
        self.oldest_start = [self.oldest_start, started].into_iter().flatten().min();
    }
}

/// The state: the first of these that holds.
pub(super) fn state(object: &Value) -> &'static str {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return DELETING;
    }
    match is_running(object) {
        Some(true) => RUNNING,
        Some(false) => SCHEDULED,
        None if last_ended(object).is_some_and(|run| run["status"] == "FATAL_ERROR") => FAILED,
        None if is(object, types::READY) => READY,
        None => NOT_READY,
    }
}

/// Whether the plan that holds the lock runs already; `None` where none holds it.
fn is_running(object: &Value) -> Option<bool> {
    let execution = &object["spec"]["planExecution"];
    let entries = object["status"]["planStatus"].as_object().into_iter().flatten();
    let entries: Vec<(&str, &str, ExecutionStatus)> = entries
        .filter_map(|(plan, entry)| {
            let status = ExecutionStatus::deserialize(&entry["status"]).ok()?;
            Some((plan.as_str(), entry["uid"].as_str().unwrap_or_default(), status))
        })
        .collect();
    let entries = entries.iter().map(|(plan, uid, status)| LockEntry { plan, uid, status });
    let given = |field: &str| execution[field].as_str().unwrap_or_default();
    let lock = lock::lock(given("planName"), given("uid"), entries)?;
    Some(lock.status.is_some_and(ExecutionStatus::is_running))
}

fn drifted(object: &Value) -> Cow<'_, str> {
    if is(object, types::SPEC_DRIFT) { fact::YES.into() } else { "".into() }
}

/// What an Instance waits for; empty for nothing. A failed plan is a state and drift a count of its own, so
/// neither is one of them.
fn waits(object: &Value) -> &'static str {
    let reason =
        |type_| condition(object, type_).filter(|found| found["status"] == "True")?["reason"].as_str();
    let known = |reason: &str| WAITING.iter().copied().find(|known| *known == reason);
    if let Some(word) = reason(types::RECONCILING).and_then(known) {
        return word;
    }
    match reason(types::STALLED) {
        None | Some(types::PLAN_IN_FATAL_ERROR | types::PLAN_OWED) => "",
        Some(_) if is(object, types::SPEC_DRIFT) => "",
        Some(reason) => known(reason).unwrap_or(OTHER),
    }
}

/// When the plan that runs was started, in Unix seconds; 0 while none runs.
fn started(object: &Value) -> u64 {
    let at = object["status"]["progress"]["started"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    at.and_then(|at| u64::try_from(at.as_second()).ok()).unwrap_or(0)
}

pub(super) fn is(object: &Value, type_: &str) -> bool {
    condition(object, type_).is_some_and(|found| found["status"] == "True")
}

pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "",
               "lastTransitionTime": "2026-01-01T00:00:10Z"})
    }

    /// An Instance at rest, whose plan `deploy` is COMPLETE.
    fn changed(change: &Value) -> Value {
        let mut object = serde_json::from_str(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/data/instance-at-rest.json"
        )))
        .unwrap();
        json_patch::merge(&mut object, change);
        object
    }

    fn entry(status: &str, at: &str) -> Value {
        json!({"name": "update", "uid": "u", "status": status, "lastUpdatedTimestamp": at})
    }

    #[rstest]
    #[case::ready(json!({}), READY)]
    #[case::deleting(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), DELETING)]
    #[case::scheduled(json!({"spec": {"planExecution": {"planName": "deploy", "uid": "y"}}}), SCHEDULED)]
    #[case::running(json!({"status": {"planStatus": {"update": entry("IN_PROGRESS", "2026-01-01T00:00:00Z")}}}), RUNNING)]
    #[case::failed(json!({"status": {"planStatus": {"update": entry("FATAL_ERROR", "2999-01-01T00:00:00Z")}}}), FAILED)]
    #[case::failed_before(json!({"status": {"planStatus": {
        "deploy": entry("COMPLETE", "2026-01-01T00:00:00Z"), "update": entry("FATAL_ERROR", "1999-01-01T00:00:00Z")
    }}}), READY)]
    #[case::failed_in_the_second_in_which_another_completed(json!({"status": {"planStatus": {
        "a": entry("FATAL_ERROR", "2999-01-01T00:00:00Z"), "b": entry("COMPLETE", "2999-01-01T00:00:00Z")
    }}}), FAILED)]
    #[case::failed_before_one_that_never_ran(json!({"status": {"planStatus": {
        "a": entry("FATAL_ERROR", "2998-01-01T00:00:00Z"), "b": entry("NEVER_RUN", "2999-01-01T00:00:00Z")
    }}}), FAILED)]
    #[case::not_ready(json!({"status": {"conditions": [condition("Ready", "False", "R")]}}), NOT_READY)]
    #[case::without_status(json!({"status": null}), NOT_READY)]
    #[case::forged(json!({"status": {"planStatus": [], "conditions": "x"}}), NOT_READY)]
    fn an_instance_is_in_one_state(#[case] change: Value, #[case] expected: &str) {
        let found = state(&changed(&change));
        assert_eq!(found, expected);
        assert!(STATES.contains(&found));
    }

    #[rstest]
    #[case::nothing(json!([]), "")]
    #[case::going_on(json!([condition("Reconciling", "True", "PlanInProgress")]), "")]
    #[case::waiting(json!([condition("Reconciling", "True", "Waiting")]), "Waiting")]
    #[case::retrying(json!([condition("Reconciling", "True", "Retrying")]), "Retrying")]
    #[case::paused(json!([condition("Reconciling", "True", "Paused")]), "Paused")]
    #[case::stalled(json!([condition("Stalled", "True", "MissingRight")]), "MissingRight")]
    #[case::not_stalled(json!([condition("Stalled", "False", "MissingRight")]), "")]
    #[case::failed(json!([condition("Stalled", "True", "PlanInFatalError")]), "")]
    #[case::drifted(json!([condition("SpecDrift", "True", "R"), condition("Stalled", "True", "R")]), "")]
    #[case::unknown(json!([condition("Stalled", "True", "SomethingNew")]), OTHER)]
    fn what_it_waits_for_is_a_word_of_a_closed_list(#[case] conditions: Value, #[case] expected: &str) {
        assert_eq!(waits(&changed(&json!({"status": {"conditions": conditions}}))), expected);
    }

    #[rstest]
    #[case::running(json!({"started": "2026-01-01T00:00:10Z"}), 1_767_225_610)]
    #[case::over(json!(null), 0)]
    #[case::forged(json!({"started": "soon"}), 0)]
    fn a_run_has_a_start(#[case] progress: Value, #[case] expected: u64) {
        assert_eq!(started(&changed(&json!({"status": {"progress": progress}}))), expected);
    }

    #[test]
    fn drift_is_that_of_the_condition() {
        let with =
            |status| changed(&json!({"status": {"conditions": [condition("SpecDrift", status, "R")]}}));
        assert_eq!((drifted(&with("True")).as_ref(), drifted(&with("False")).as_ref()), (fact::YES, ""));
    }

    /// The fold over the rows of a graph gives what the objects say.
    #[test]
    fn totals_are_those_of_the_rows() {
        let mut graph = interlock_core::kinds::graph(crate::all());
        let kind = graph.kind(interlock_core::api::meta::KUDO_GROUP, "Instance");
        let epoch = interlock_core::topology::Epoch(1);
        graph.kind_available(kind, epoch);
        let running = |at: &str| {
            json!({"status": {
                "planStatus": {"update": entry("IN_PROGRESS", "2026-01-01T00:00:00Z")},
                "progress": {"started": at},
                "conditions": [condition("Reconciling", "True", "Waiting"), condition("SpecDrift", "True", "R")],
            }})
        };
        let changes = [json!({}), running("2026-01-01T00:00:20Z"), running("2026-01-01T00:00:10Z")];
        for (number, change) in changes.iter().enumerate() {
            let mut object = changed(change);
            object["metadata"]["name"] = json!(format!("i{number}"));
            object["metadata"]["uid"] = json!(format!("00000000-0000-4000-8000-00000000000{number}"));
            graph.apply(kind, epoch, interlock_core::topology::GraphChange::Applied(&object));
        }
        let totals = Totals::of(graph.rows(kind));
        assert_eq!(totals.states, BTreeMap::from([(READY, 1), (RUNNING, 2)]));
        assert_eq!(totals.waiting, BTreeMap::from([("Waiting", 2)]));
        assert_eq!((totals.drifted, totals.oldest_start), (2, Some(1_767_225_610)));
    }

    #[test]
    fn every_state_and_reason_has_a_value_and_the_oldest_run_its_age() {
        let totals = Totals {
            states: [("ready", 3)].into(),
            waiting: [("Waiting", 2)].into(),
            drifted: 1,
            oldest_start: Some(100),
        };
        let gauges = totals.gauges(400);
        let names: Vec<_> =
            gauges.iter().map(|gauge| (gauge.name, gauge.label, gauge.values.len())).collect();
        assert_eq!(
            names,
            [
                ("instances", Some("state"), STATES.len()),
                ("instances_drifted", None, 1),
                ("instances_waiting", Some("reason"), WAITING.len()),
                ("oldest_running_plan_age_seconds", None, 1),
            ]
        );
        assert!(gauges[0].values.contains(&("ready", 3)) && gauges[0].values.contains(&("failed", 0)));
        assert!(gauges[2].values.contains(&("Waiting", 2)));
        assert_eq!((&gauges[1].values[..], &gauges[3].values[..]), (&[("", 1)][..], &[("", 300)][..]));
    }
}
