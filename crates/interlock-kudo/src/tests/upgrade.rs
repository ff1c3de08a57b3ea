//! A change of the OperatorVersion: kudo.md section 5 rows 1, 2c, 4.3, 4.4, 5.1, and hole 20.

use interlock_core::api::meta;
use interlock_core::kinds::static_lister::StaticLister;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, hash_of, idle, kafka, kafka_with, ours, stamp_of};

fn base() -> Value {
    idle(json!({"NODES": "3", "PASSWORD": "s3cret", "ID": "7", "MEMORY": "1Gi"}))
}

fn to(name: &str) -> Value {
    json!({"spec": {"operatorVersion": {"name": name}}})
}

#[rstest]
#[case::upgrade(json!({}), Some("upgrade"))]
#[case::update(json!({"upgrade": null}), Some("update"))]
#[case::deploy(json!({"upgrade": null, "update": null}), Some("deploy"))]
#[case::none(json!({"upgrade": null, "update": null, "deploy": null}), None)]
fn row_5_1_the_first_of_upgrade_update_deploy(#[case] plans: Value, #[case] plan: Option<&str>) {
    let world = World::strict().with(kafka_with("kafka-2", "2.0.0", json!({"spec": {"plans": plans}})));
    let said = world.merge(&base(), to("kafka-2"));
    match plan {
        Some(plan) => {
            said.assert_allowed();
            let uid = ours(plan, &said.object["spec"]);
            assert_eq!(said.execution(), &json!({"planName": plan, "uid": uid, "status": "NEVER_RUN"}));
            assert_eq!(
                said.stamp()["spec"]["operatorVersion"],
                json!({"name": "kafka-2", "namespace": "team"})
            );
        }
        None => said.assert_refused(
            "plan-unknown",
            "couldn't find any suitable plan that would be triggered by an OperatorVersion upgrade",
        ),
    }
}

/// Row 5.1: the parameters' own plan is discarded if it is `deploy`; row 4.4 denies others.
#[test]
fn rows_4_4_and_5_1_parameters_along_with_an_upgrade() {
    let world = World::strict().with(kafka("kafka-2", "2.0.0"));
    let mut patch = to("kafka-2");
    patch["spec"]["parameters"] = json!({"PASSWORD": "n3w"});
    assert_eq!(world.merge(&base(), patch.clone()).execution()["planName"], "upgrade");
    patch["spec"]["parameters"] = json!({"BACKUP_FILE": "f"});
    world.merge(&base(), patch).assert_refused(
        "upgrade-and-edit",
        "failed to update Instance team/prod: upgrade to new OperatorVersion {  kafka-2    } together with a parameter update \
         triggering 'backup' is not allowed",
    );
}

#[test]
fn row_4_3_an_upgrade_and_a_trigger() {
    let world = World::strict().with(kafka("kafka-2", "2.0.0"));
    let mut patch = to("kafka-2");
    patch["spec"]["planExecution"] = json!({"planName": "backup", "uid": "u"});
    world.merge(&base(), patch).assert_refused(
        "plan-and-edit",
        "failed to update Instance team/prod: upgrade to new OperatorVersion {  kafka-2    } and triggering new plan 'backup' is \
         not allowed",
    );
}

/// Row 2b: parameters that only the new version defines trigger nothing.
#[test]
fn row_2b_a_parameter_that_is_new_does_not_trigger_its_plan() {
    let parameters = json!([{"name": "NEW", "trigger": "backup"}, {"name": "NODES"}, {"name": "PASSWORD"}]);
    let world =
        World::strict().with(kafka_with("kafka-2", "2.0.0", json!({"spec": {"parameters": parameters}})));
    let mut patch = to("kafka-2");
    patch["spec"]["parameters"] = json!({"NEW": "1"});
    let said = world.merge(&base(), patch);
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "upgrade");
    // Row 2c: parameters that the new version does not define are dropped.
    assert_eq!(said.object["spec"]["parameters"], json!({"NODES": "3", "PASSWORD": "s3cret", "NEW": "1"}));
    assert_eq!(said.warnings(), ["dropped, as the new OperatorVersion does not define them: ID, MEMORY"]);
    assert_eq!(said.stamp()["hash"], json!(hash_of(&said.object["spec"])));
}

/// Row 2c (KEP-30), and the hole in it: values of parameters that are immutable in both change.
#[rstest]
#[case::turned_immutable_without_a_value(
    json!([{"name": "SIZE", "immutable": true}]),
    json!({}),
    "failed to check immutable parameters for Instance team/prod: parameter 'SIZE' was changed to immutable in operator version \
     kafka-2 but no value was provided"
)]
#[case::added_without_a_value(
    json!([{"name": "RACK", "immutable": true}]),
    json!({}),
    "parameter 'RACK' was added in operator version kafka-2, but no value was provided"
)]
#[case::added_with_a_default(
    json!([{"name": "RACKS", "immutable": true, "default": "2", "value-type": "integer"}]),
    json!({}),
    "parameter 'RACKS' was added in operator version kafka-2, but no value was provided (default would be 2)"
)]
#[case::hole_15_changed(
    json!([{"name": "ID", "immutable": true, "value-type": "integer"}]),
    json!({"ID": "8"}),
    "parameter 'ID' is immutable but was changed from '7' to '8'"
)]
#[case::hole_15_removed(
    json!([{"name": "ID", "immutable": true, "value-type": "integer"}]),
    json!({"ID": null}),
    "parameter 'ID' is immutable but its value '7' was removed"
)]
fn row_2c_immutable_parameters(#[case] parameters: Value, #[case] values: Value, #[case] sentence: &str) {
    let world =
        World::strict().with(kafka_with("kafka-2", "2.0.0", json!({"spec": {"parameters": parameters}})));
    let mut patch = to("kafka-2");
    patch["spec"]["parameters"] = values;
    world.merge(&base(), patch).assert_refused("parameter-immutable", sentence);
}

#[rstest]
#[case::turned_immutable(json!([{"name": "SIZE", "immutable": true, "trigger": "deploy"}]), json!({"SIZE": "s"}))]
#[case::added(json!([{"name": "RACK", "immutable": true}]), json!({"RACK": "r"}))]
#[case::no_longer_immutable(json!([{"name": "ID", "trigger": "deploy"}]), json!({"ID": "8"}))]
#[case::immutable_in_both_and_kept(json!([{"name": "ID", "immutable": true}]), json!({}))]
#[case::immutable_and_dropped(json!([]), json!({}))]
fn row_2c_allowed(#[case] parameters: Value, #[case] values: Value) {
    let world =
        World::strict().with(kafka_with("kafka-2", "2.0.0", json!({"spec": {"parameters": parameters}})));
    let mut patch = to("kafka-2");
    patch["spec"]["parameters"] = values;
    world.merge(&base(), patch).assert_allowed();
}

/// Hole 20, from 1.0.0+2. Absent or non-semver versions are not validated, nor is build metadata.
#[rstest]
#[case::up(json!({"version": "1.0.1"}), None)]
#[case::same(json!({"version": "1.0.0"}), None)]
#[case::lower_build(json!({"version": "1.0.0+1"}), None)]
#[case::down(json!({"version": "0.9.0"}), Some("version 0.9.0 is lower than 1.0.0+2"))]
#[case::pre_release(json!({"version": "1.0.0-rc.1"}), Some("version 1.0.0-rc.1 is lower than 1.0.0+2"))]
#[case::not_semver(json!({"version": "one"}), None)]
#[case::no_version(json!({"version": null}), None)]
#[case::other_operator(
    json!({"operator": {"name": "zookeeper"}}),
    Some("the new OperatorVersion is of operator \"zookeeper\", not \"kafka\"")
)]
#[case::no_operator(json!({"operator": null}), None)]
#[case::listed(json!({"upgradableFrom": [{"name": "kafka-0"}, {"name": "kafka-1"}]}), None)]
#[case::not_listed(
    json!({"upgradableFrom": [{"name": "kafka-0"}]}),
    Some("OperatorVersion kafka-2 can be upgraded to from [kafka-0] only")
)]
#[case::empty_list(json!({"upgradableFrom": []}), None)]
fn hole_20_where_an_upgrade_may_go(#[case] spec: Value, #[case] sentence: Option<&str>) {
    let world = World::strict().with(kafka("kafka-1", "1.0.0+2")).with(kafka_with(
        "kafka-2",
        "2.0.0",
        json!({"spec": spec}),
    ));
    let said = world.merge(&base(), to("kafka-2"));
    match sentence {
        Some(sentence) => said.assert_refused("upgrade-path", sentence),
        None => said.assert_allowed(),
    }
}

#[test]
fn hole_20_back_to_previous_is_allowed() {
    let world = World::strict().with(kafka("kafka-0", "0.9.0"));
    let mut old = base();
    let mut before = old["spec"].clone();
    before["operatorVersion"]["name"] = json!("kafka-0");
    let mut stamp = stamp_of(&old["spec"]);
    stamp["previous"] = json!({"hash": hash_of(&before), "ref": "Secret"});
    old["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
    // In full, by its hash.
    world.merge(&old, to("kafka-0")).assert_allowed();
    // To its version with other parameters, if the annotation still names it.
    let mut patch = to("kafka-0");
    patch["spec"]["parameters"] = json!({"PASSWORD": "n3w"});
    world.merge(&old, patch.clone()).assert_refused("upgrade-path", "version 0.9.0 is lower than 1.0.0");
    stamp["previous"] = json!({"hash": hash_of(&before), "spec": super::applied(&before)});
    old["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
    world.merge(&old, patch).assert_allowed();
}

#[test]
fn row_1_the_new_version() {
    let said = World::strict().merge(&base(), json!({"spec": {"operatorVersion": {"name": ""}}}));
    said.assert_refused("version-required", "");
}

/// An Instance of KUDO's that already refers to another namespace can still be changed.
#[test]
fn a_reference_to_another_namespace_that_is_there_already_stays() {
    let mut version = kafka("kafka-1", "1.0.0");
    version["metadata"]["namespace"] = json!("shared");
    let world = World::strict().with(version);
    let mut old = base();
    old["spec"]["operatorVersion"]["namespace"] = json!("shared");
    old["status"]["lastApplied"] = Value::Null;
    let said = world.merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "update");
}

/// A missing old version does not block an Instance forever.
#[test]
fn row_1_away_from_a_version_that_is_gone() {
    let mut world = World::strict();
    world.view = StaticLister::of(crate::all());
    let world = world.with(kafka("kafka-2", "2.0.0"));
    let said = world.merge(&base(), to("kafka-2"));
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "upgrade");
}
