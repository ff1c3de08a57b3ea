//! UPDATE of an Instance that is being deleted: kudo.md section 5, row 3. Objects with a
//! deletionTimestamp are validated like others (CVE-2023-34091).

use interlock_core::api::meta;
use interlock_core::kinds::static_lister::StaticLister;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, deleted, idle, kafka, ours, running};

fn worlds() -> [World; 2] {
    [World::strict(), World::same_plan()].map(|world| world.with(kafka("kafka-2", "2.0.0")))
}

#[rstest]
#[case::parameters(
    json!({"parameters": {"NODES": "5"}}),
    "parameter update and/or upgrade is not allowed when an instance is being deleted"
)]
#[case::upgrade(
    json!({"operatorVersion": {"name": "kafka-2"}}),
    "parameter update and/or upgrade is not allowed when an instance is being deleted"
)]
#[case::other_plan(
    json!({"planExecution": {"planName": "backup", "uid": "u"}}),
    "only 'cleanup' plan can be scheduled when an instance is being deleted"
)]
fn refused_in_both_modes(#[case] spec: Value, #[case] sentence: &str) {
    for world in worlds() {
        let said = world.merge(&deleted(idle(json!({"NODES": "3"}))), json!({"spec": spec}));
        said.assert_refused("instance-deleting", &format!("failed to update Instance team/prod: {sentence}"));
    }
}

#[rstest]
#[case::overridden(json!({"planName": "deploy", "uid": "u"}))]
#[case::cancelled(json!({"planName": ""}))]
fn cleanup_is_not_cancelled_or_overridden(#[case] execution: Value) {
    for world in worlds() {
        let said = world.merge(&deleted(running("cleanup")), json!({"spec": {"planExecution": execution}}));
        said.assert_refused(
            "instance-deleting",
            "'cleanup' plan can not be cancelled or overridden by another plan since the instance is being deleted",
        );
    }
}

/// KUDO denies a write that merely keeps a running `deploy`; here it is allowed.
#[rstest]
#[case::labels(json!({"metadata": {"labels": {"a": "b"}}}))]
#[case::annotations(json!({"metadata": {"annotations": {"a": "b"}}}))]
#[case::execution_left_out(json!({"spec": {"planExecution": null}}))]
fn what_changes_nothing_passes(#[case] patch: Value) {
    for world in worlds() {
        let old = deleted(running("deploy"));
        let said = world.merge(&old, patch.clone());
        said.assert_allowed();
        assert_eq!(said.execution(), &old["spec"]["planExecution"]);
    }
}

#[test]
fn cleanup_is_the_controllers_except_with_same_plan() {
    let [strict, same_plan] = worlds();
    for old in [deleted(idle(json!({}))), deleted(running("deploy"))] {
        let patch = json!({"spec": {"planExecution": {"planName": "cleanup", "uid": "u"}}});
        strict.merge(&old, patch.clone()).assert_refused(
            "plan-cleanup",
            "only the controller schedules the 'cleanup' plan when the instance is deleted",
        );
        let said = same_plan.merge(&old, patch);
        said.assert_allowed();
        assert_eq!(said.execution()["planName"], "cleanup");
        assert_eq!(said.execution()["uid"], json!(ours("cleanup", &old["spec"])));
    }
}

#[test]
fn the_finalizer_goes_when_nothing_runs_and_stays_while_something_does() {
    for world in worlds() {
        let patch = json!({"metadata": {"finalizers": null}});
        let said = world.merge(&deleted(idle(json!({}))), patch.clone());
        assert_eq!(said.object["metadata"].get("finalizers"), None);
        let said = world.merge(&deleted(running("cleanup")), patch);
        assert_eq!(said.object["metadata"]["finalizers"], json!([meta::FINALIZER]));
    }
}

/// A missing package does not prevent changes of labels and finalizers.
#[test]
fn nothing_is_looked_up() {
    let mut world = World::strict();
    world.view = StaticLister::of(crate::all());
    world
        .merge(&deleted(idle(json!({"A": "1"}))), json!({"metadata": {"finalizers": null}}))
        .assert_allowed();
    world
        .merge(&deleted(idle(json!({"A": "1"}))), json!({"spec": {"parameters": {"A": "2"}}}))
        .assert_refused("instance-deleting", "parameter update and/or upgrade is not allowed");
}
