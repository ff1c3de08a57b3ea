//! Whether an Instance is settled: its spec is carried out, and no plan is pending.
//!
//! The controller has no work for it until it, its package, its namespace or an object of the
//! package changes, so it keeps only this flag.

use interlock_core::api::condition;
use interlock_core::api::meta;
use interlock_core::api::meta::condition as types;
use interlock_core::api::object::annotation;
use interlock_core::api::stamp::Envelope;
use serde::Deserialize;
use serde_json::Value;

use super::baseline;
use super::baseline::Baseline;
use super::lock;
use crate::api::Instance;

/// Conditions that, if true, require a reconcile.
const UNSETTLED: [&str; 3] = [types::STALLED, types::SPEC_DRIFT, types::RECONCILING];

/// Whether an object is a settled Instance.
pub fn is_settled(object: &Value) -> bool {
    Instance::deserialize(object).is_ok_and(|instance| is_settled_instance(&instance, object))
}

fn is_settled_instance(instance: &Instance, object: &Value) -> bool {
    let Some(status) = &instance.status else { return false };
    let conditions = &status.conditions;
    let execution = instance.spec.plan_execution.as_ref();
    let quiet = instance.metadata.deletion_timestamp.is_none()
        && execution.is_none_or(|execution| execution.plan().is_empty())
        && lock::of(instance).is_none()
        && annotation(object, meta::REQUEST).is_none()
        && status.observed_generation == instance.metadata.generation
        && condition::is_true(conditions, types::READY)
        && !UNSETTLED.iter().any(|type_| condition::is_true(conditions, type_));
    let baseline = status.last_applied.as_ref();
    quiet && baseline.is_some_and(|baseline| is_carried_out(instance, object, baseline))
}

/// Whether spec, last-applied spec and baseline agree, and no plan is pending.
fn is_carried_out(instance: &Instance, object: &Value, baseline: &Baseline) -> bool {
    let namespace = instance.metadata.namespace.as_deref().unwrap_or_default();
    let stamp = annotation(object, meta::LAST_APPLIED_SPEC).and_then(Envelope::parse);
    let own = instance.metadata.uid.as_deref();
    baseline.pending.is_empty()
        && baseline.hash == baseline::carried_out(instance, namespace).hash()
        && stamp.is_some_and(|stamp| {
            stamp.hash == baseline.hash && stamp.uid.as_deref().is_none_or(|uid| Some(uid) == own)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::instance::change::baseline::PendingPlan;

    /// A settled Instance; tests of the watches use it, too.
    fn settled() -> Value {
        serde_json::from_str(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/data/instance-at-rest.json"
        )))
        .unwrap()
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": "",
               "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    fn with_pending() -> Value {
        let instance = Instance::deserialize(&settled()).unwrap();
        let pending = BTreeMap::from([("update".to_owned(), PendingPlan::Failed)]);
        json!(Baseline::new(&baseline::carried_out(&instance, "ns"), pending))
    }

    #[test]
    fn an_instance_whose_plan_is_carried_out_is_settled() {
        assert!(is_settled(&settled()));
        let labelled = json!({"metadata": {"labels": {"team": "x"}, "finalizers": [meta::FINALIZER]}});
        assert!(is_settled(&merged(&labelled)));
    }

    #[rstest]
    #[case::scheduled(json!({"spec": {"planExecution": {"planName": "deploy", "uid": "y"}}}))]
    #[case::running(json!({"status": {"planStatus": {"update": {"name": "update", "status": "PENDING", "uid": "z"}}}}))]
    #[case::edited_unseen(json!({"spec": {"parameters": {"A": "2"}}}))]
    #[case::of_another_version(json!({"spec": {"operatorVersion": {"name": "other"}}}))]
    #[case::without_its_stamp(json!({"metadata": {"annotations": null}}))]
    #[case::with_the_stamp_of_another(json!({"metadata": {"uid": "other"}}))]
    #[case::being_deleted(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))]
    #[case::with_a_request(json!({"metadata": {"annotations": {"plan.interlock.dev/request": "retry/x/1"}}}))]
    #[case::without_status(json!({"status": null}))]
    #[case::not_ready(json!({"status": {"conditions": [condition("Ready", "False")]}}))]
    #[case::owing_a_plan(json!({"status": {"lastApplied": with_pending()}}))]
    #[case::without_a_baseline(json!({"status": {"lastApplied": null}}))]
    #[case::not_observed(json!({"status": {"observedGeneration": 2}}))]
    #[case::reconciling(json!({"status": {"conditions": [
        condition("Reconciling", "True"), condition("Ready", "True")]}}))]
    #[case::stalled(json!({"status": {"conditions": [condition("Stalled", "True"), condition("Ready", "True")]}}))]
    #[case::unreadable(json!({"spec": "x"}))]
    fn one_that_has_something_to_do_is_not(#[case] change: Value) {
        assert!(!is_settled(&merged(&change)));
    }

    fn merged(change: &Value) -> Value {
        let mut object = settled();
        json_patch::merge(&mut object, change);
        object
    }
}
