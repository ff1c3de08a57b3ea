//! The patch of an Instance's status; pure, and empty where nothing changes.

use std::collections::BTreeMap;

use interlock_core::api::condition;
use interlock_core::api::condition::{ConditionChange, Time};
use interlock_core::api::meta::condition as types;
use interlock_kudo::api::{PlanStatus, Progress, RunRequests};
use interlock_kudo::instance::change::baseline::Baseline;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::view::InstanceView;

/// Changes of a status.
#[derive(Clone, Debug, Default)]
pub struct StatusChange {
    /// Wanted entries of `planStatus`.
    pub entries: BTreeMap<String, PlanStatus>,
    /// Changes of conditions; others stay.
    pub conditions: Vec<ConditionChange>,
    /// The wanted baseline; `None` where it stays.
    pub baseline: Option<Baseline>,
    /// The wanted progress of the run.
    pub progress: RecordChange<Progress>,
    /// The wanted record of requests about the run.
    pub requests: RecordChange<RunRequests>,
    /// Leaves the records of Interlock as they are.
    pub conditions_only: bool,
}

/// A change of one of the records of Interlock in a status.
#[derive(Clone, Debug, Default)]
pub enum RecordChange<T> {
    /// It stays.
    #[default]
    Keep,
    Set(T),
    /// What it was about is over.
    Remove,
}

impl<T> RecordChange<T> {
    fn of(self, found: Option<T>) -> Option<T> {
        match self {
            Self::Keep => found,
            Self::Set(wanted) => Some(wanted),
            Self::Remove => None,
        }
    }
}

/// The merge patch of a status; `None` when it would change nothing. `observedGeneration` alone is a change
/// only where no plan is scheduled or runs: the write that ends a run, or follows it, brings it up to date.
pub fn status(subject: &InstanceView, change: StatusChange, now: Timestamp) -> Option<Value> {
    let now = Time(now);
    let found = subject.instance.status.clone().unwrap_or_default();
    let mut patch = Map::new();
    let mut conditions = found.conditions.clone();
    condition::apply(&mut conditions, change.conditions, subject.generation(), &now);
    let baseline = change.baseline.or_else(|| subject.basis.clone()).map(Baseline::within_limit);
    if baseline != found.last_applied && !change.conditions_only {
        patch.insert("lastApplied".to_owned(), json!(baseline));
    }
    let recorded = subject.progress.clone().filter(|_| !subject.plan().is_empty());
    let progress = change.progress.of(recorded);
    if progress != found.progress && !change.conditions_only {
        patch.insert("progress".to_owned(), json!(progress));
    }
    let requests = change.requests.of(found.requests.clone());
    if requests != found.requests && !change.conditions_only {
        patch.insert("requests".to_owned(), json!(requests));
    }
    let observed = found.observed_generation == subject.generation()
        || !subject.plan().is_empty()
        || change.conditions_only;
    if !alike(&found.conditions, &conditions) || !observed {
        observe(&mut conditions, subject.generation());
        patch.insert("conditions".to_owned(), json!(conditions));
    }
    let found = subject.entries();
    let mut entries = Map::new();
    for (plan, mut entry) in change.entries {
        let old = found.get(&plan);
        entry.last_updated_timestamp = old.and_then(|o| o.last_updated_timestamp.clone());
        if old == Some(&entry) {
            continue;
        }
        if entry.status != interlock_kudo::api::ExecutionStatus::NeverRun {
            entry.last_updated_timestamp = Some(now.clone());
        }
        entries.insert(plan, entry_patch(&entry));
    }
    if !entries.is_empty() {
        patch.insert("planStatus".to_owned(), Value::Object(entries));
    }
    if patch.is_empty() {
        return None;
    }
    patch.insert("observedGeneration".to_owned(), json!(subject.generation()));
    Some(Value::Object(patch))
}

/// The merge patch of an entry; it keeps what it does not name.
pub(super) fn entry_patch(entry: &PlanStatus) -> Value {
    let mut patch = json!(entry);
    if entry.message.is_none() {
        patch["message"] = Value::Null;
    }
    patch
}

/// Our conditions describe this generation.
fn observe(conditions: &mut [condition::Condition], generation: Option<i64>) {
    let ours = conditions.iter_mut().filter(|condition| types::OURS.contains(&condition.type_.as_str()));
    ours.for_each(|condition| condition.observed_generation = generation);
}

/// The object with a merge patch of its status, for a replacement. Omits `managedFields`: the API server
/// keeps its own.
pub fn with_status(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    // Records are replaced as a whole.
    for record in ["lastApplied", "progress", "requests"] {
        if let (Some(_), Some(status)) = (patch.get(record), object["status"].as_object_mut()) {
            status.remove(record);
        }
    }
    if let Some(object) = object.as_object_mut() {
        json_patch::merge(object.entry("status").or_insert(Value::Null), patch);
    }
    object
}

/// Whether conditions agree, whichever generation they describe.
fn alike(before: &[condition::Condition], after: &[condition::Condition]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(a, b)| {
            (&a.type_, &a.status, &a.reason, &a.message) == (&b.type_, &b.status, &b.reason, &b.message)
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use interlock_core::api::object::NamespacedName;
    use interlock_kudo::instance::change::conditions;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::of_none(Value::Null, json!({"planStatus": {"deploy": {"status": "COMPLETE"}}}))]
    #[case::of_others(
        json!({"planStatus": {"deploy": {"status": "ERROR", "message": "m"}}, "theirs": {"n": 1}}),
        json!({"planStatus": {"deploy": {"status": "COMPLETE"}}, "theirs": {"n": 1}}),
    )]
    fn a_status_is_written_in_its_place(#[case] found: Value, #[case] written: Value) {
        let mut object =
            json!({"metadata": {"resourceVersion": "7", "managedFields": [{}]}, "spec": {"a": 1}});
        if !found.is_null() {
            object["status"] = found;
        }
        let patch = json!({"planStatus": {"deploy": {"status": "COMPLETE", "message": null}}});
        let expected = json!({"metadata": {"resourceVersion": "7"}, "spec": {"a": 1}, "status": written});
        assert_eq!(with_status(&object, &patch), expected);
    }

    /// A merge would keep what the new record no longer has.
    #[test]
    fn a_record_is_replaced_as_a_whole() {
        let object =
            json!({"status": {"lastApplied": {"hash": "a", "owed": {"deploy": "failed"}}, "theirs": 1}});
        let patch = json!({"lastApplied": {"hash": "b"}});
        assert_eq!(
            with_status(&object, &patch),
            json!({"status": {"lastApplied": {"hash": "b"}, "theirs": 1}})
        );
        assert_eq!(with_status(&object, &json!({"lastApplied": null})), json!({"status": {"theirs": 1}}));
    }

    /// An Instance at rest, of generation 3, with changes.
    fn at_rest(change: &Value) -> InstanceView {
        let text = include_str!("../../../crates/interlock-kudo/tests/data/instance-at-rest.json");
        let mut object: Value = serde_json::from_str(text).unwrap();
        json_patch::merge(&mut object, change);
        InstanceView::read(&NamespacedName::new("ns", "a"), Arc::new(object)).unwrap()
    }

    fn settled(subject: &InstanceView) -> Option<Value> {
        let change = StatusChange { conditions: conditions::settled(None), ..StatusChange::default() };
        status(subject, change, Timestamp::UNIX_EPOCH)
    }

    #[rstest]
    #[case::nothing_changed(json!({}), None)]
    #[case::a_generation_that_was_not_observed(json!({"metadata": {"generation": 4}}), Some(4))]
    #[case::while_a_plan_is_scheduled(
        json!({"metadata": {"generation": 4}, "spec": {"planExecution": {"planName": "deploy", "uid": "u"}}}), None)]
    fn the_generation_is_observed_at_rest(#[case] change: Value, #[case] observed: Option<i64>) {
        let patch = settled(&at_rest(&change));
        assert_eq!(
            patch.as_ref().map(|patch| patch["observedGeneration"].clone()),
            observed.map(Value::from)
        );
        if let (Some(patch), Some(observed)) = (patch, observed) {
            assert_eq!(patch["conditions"][0]["observedGeneration"], observed);
        }
    }

    #[test]
    fn records_stay_where_only_conditions_are_written() {
        let subject = at_rest(&json!({}));
        let baseline = subject.basis.clone().map(|found| Baseline { detail: None, ..found });
        let change = |conditions_only| StatusChange {
            baseline: baseline.clone(),
            conditions_only,
            ..StatusChange::default()
        };
        let written = |change| status(&subject, change, Timestamp::UNIX_EPOCH);
        let patch = written(change(false)).expect("there is something to write");
        assert_eq!(patch["lastApplied"], json!(baseline));
        assert_eq!(written(change(true)), None, "the definition would drop it");
    }
}
