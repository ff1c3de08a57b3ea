//! The violations that the settings of an Interlock object admit, and those that they do not.

use interlock_core::admission::endpoint::WebhookEndpoint;
use interlock_core::api::interlock::Rules;
use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    NAMESPACE, RUN, Said, World, deleted, idle, kafka, kafka_with, manifest, ours, review, running, scheduled,
};

/// A world whose namespace has the label `tier: dev`.
fn world(settings: Value) -> World {
    with_rules(World::strict(), settings)
}

fn with_rules(world: World, settings: Value) -> World {
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"tier": "dev"}},
    });
    let mut world = world.with(kafka("kafka-2", "2.0.0")).with(namespace);
    let settings: Vec<_> = serde_json::from_value(settings).unwrap();
    let (rules, problems) = Rules::read(&settings);
    assert_eq!(problems, []);
    world.view.set_rules(rules);
    world
}

fn set(group: &str, action: &str) -> Value {
    let dev = json!({"matchLabels": {"tier": "dev"}});
    json!([{"group": group, "namespaceSelector": dev, "action": action}])
}

/// An admitted request leaves everything that Interlock owns unchanged.
fn assert_left_to_the_reconciler(said: &Said, old: &Value) {
    said.assert_allowed();
    assert_eq!(said.execution(), &old["spec"]["planExecution"]);
    assert_eq!(
        said.object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC],
        old["metadata"]["annotations"][meta::LAST_APPLIED_SPEC]
    );
}

/// Both endpoints decide the same, and the audit annotation and the record name the rule.
fn assert_told(said: &Said, rule: &str, sentence: &str) {
    let warnings = said.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with(sentence), "{}", warnings[0]);
    assert!(warnings[0].contains(&format!("[{rule}] (admitted: group ")), "{}", warnings[0]);
    assert!(warnings[0].len() <= 256 && !warnings[0].contains('\n'));
    assert_eq!(said.response["auditAnnotations"]["admitted"], rule);
    assert_eq!(said.record.admitted, [rule]);
}

#[rstest]
#[case::other_plan(json!({"parameters": {"NODES": "5"}}))]
#[case::same_plan(json!({"parameters": {"PASSWORD": "n3w"}}))]
#[case::upgrade(json!({"operatorVersion": {"name": "kafka-2"}}))]
fn a_frozen_edit_becomes_drift(#[case] spec: Value) {
    for old in [running("deploy"), scheduled("deploy")] {
        let said = world(set("freeze", "Warn")).merge(&old, json!({"spec": spec}));
        assert_left_to_the_reconciler(&said, &old);
        assert_told(&said, "plan-running", "failed to update Instance team/prod: ");
        let said = world(set("freeze", "Off")).merge(&old, json!({"spec": spec}));
        assert_left_to_the_reconciler(&said, &old);
        assert!(said.warnings().is_empty() && said.record.admitted.is_empty());
        let said = world(set("freeze", "Deny")).merge(&old, json!({"spec": spec}));
        said.assert_refused("plan-running", "failed to update Instance team/prod: ");
    }
}

/// An edit that the freeze admits is validated like any other.
#[rstest]
#[case::unknown(json!({"parameters": {"NODS": "1"}}), "parameter-unknown")]
#[case::invalid(json!({"parameters": {"NODES": "many"}}), "parameter-invalid")]
#[case::immutable(json!({"parameters": {"ZONE": "b"}}), "parameter-immutable")]
#[case::version(json!({"operatorVersion": {"name": ""}}), "version-required")]
fn the_other_groups_still_hold(#[case] spec: Value, #[case] rule: &str) {
    let old = running("deploy");
    for action in ["Warn", "Off"] {
        world(set("freeze", action)).merge(&old, json!({"spec": spec})).assert_refused(rule, "");
    }
}

/// No setting permits writes to the fields that Interlock owns.
#[rstest]
#[case::cancelled(running("deploy"), json!({"planExecution": {"planName": ""}}), "plan-cancel")]
#[case::replaced(running("deploy"), json!({"planExecution": {"planName": "backup", "uid": ""}}), "plan-override")]
#[case::restarted(running("deploy"), json!({"planExecution": {"uid": "x"}}), "plan-override")]
#[case::status(running("deploy"), json!({"planExecution": {"status": "COMPLETE"}}), "plan-status")]
#[case::deleting(deleted(running("deploy")), json!({"parameters": {"NODES": "5"}}), "instance-deleting")]
#[case::both(
    idle(json!({})),
    json!({"parameters": {"NODES": "5"}, "planExecution": {"planName": "backup", "uid": RUN}}),
    "plan-and-edit"
)]
#[case::unknown_plan(idle(json!({})), json!({"planExecution": {"planName": "ghost", "uid": RUN}}), "plan-unknown")]
#[case::cleanup(idle(json!({})), json!({"parameters": {"CLEAN": "x"}}), "plan-cleanup")]
fn the_books_are_kept(#[case] old: Value, #[case] spec: Value, #[case] rule: &str) {
    let all = ["freeze", "parameters", "plans", "upgrades", "versions"];
    for action in ["Warn", "Off"] {
        let settings: Vec<Value> =
            all.iter().map(|group| json!({"group": group, "action": action})).collect();
        world(json!(settings)).merge(&old, json!({"spec": spec.clone()})).assert_refused(rule, "");
    }
}

/// Parameters: the change is scheduled as if the rule did not exist.
#[rstest]
#[case::unknown(json!({"NODES": "5", "NODS": "1"}), "parameter-unknown", "failed to update Instance team/prod")]
#[case::invalid(json!({"NODES": "many"}), "parameter-invalid", "failed to validate parameters for Instance")]
#[case::immutable(json!({"ZONE": "b"}), "parameter-immutable", "failed to check immutable parameters")]
fn a_parameter_is_carried_out(#[case] parameters: Value, #[case] rule: &str, #[case] sentence: &str) {
    let old = idle(json!({"NODES": "3", "ZONE": "a"}));
    let edit = json!({"spec": {"parameters": parameters}});
    let said = world(set("parameters", "Warn")).merge(&old, edit.clone());
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "update");
    assert_eq!(said.execution()["uid"], ours("update", &said.object["spec"]));
    assert_told(&said, rule, sentence);
    let said = world(set("parameters", "Off")).merge(&old, edit.clone());
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "update");
    assert!(said.warnings().is_empty());
    world(set("freeze", "Off")).merge(&old, edit).assert_refused(rule, "");
}

/// Several rules of a group: each is reported once.
#[test]
fn every_rule_is_told() {
    let old = idle(json!({"NODES": "3", "ZONE": "a"}));
    let edit = json!({"spec": {"parameters": {"NODES": "many", "ZONE": "b", "NODS": "1"}}});
    let said = world(set("parameters", "Warn")).merge(&old, edit);
    said.assert_allowed();
    assert_eq!(said.record.admitted, ["parameter-unknown", "parameter-immutable", "parameter-invalid"]);
    assert_eq!(said.warnings().len(), 3);
}

#[test]
fn a_creation_with_a_wrong_parameter() {
    let said = world(set("parameters", "Warn")).create(manifest(json!({"NODES": "many"})));
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "deploy");
    let sentence = "failed to create an Instance team/prod: parameters are not valid: ";
    assert_told(&said, "parameter-invalid", sentence);
}

/// Several plans: nothing is scheduled, and the reconciler runs them one after another.
#[rstest]
#[case::two(json!({"parameters": {"RESTORE_FILE": "r", "BACKUP_FILE": "b"}}), "plan-multiple")]
#[case::upgrade(
    json!({"operatorVersion": {"name": "kafka-2"}, "parameters": {"BACKUP_FILE": "b"}}),
    "upgrade-and-edit"
)]
fn several_plans_are_left_to_the_reconciler(#[case] spec: Value, #[case] rule: &str) {
    let old = idle(json!({"NODES": "3"}));
    let said = world(set("plans", "Warn")).merge(&old, json!({"spec": spec}));
    assert_left_to_the_reconciler(&said, &old);
    assert_eq!(said.record.admitted, [rule]);
    world(set("freeze", "Warn")).merge(&old, json!({"spec": spec})).assert_refused(rule, "");
}

#[test]
fn an_upgrade_that_goes_down() {
    let old = idle(json!({"NODES": "3"}));
    let world = |action| world(set("upgrades", action)).with(kafka("kafka-0", "0.1.0"));
    let edit = json!({"spec": {"operatorVersion": {"name": "kafka-0"}}});
    let said = world("Warn").merge(&old, edit.clone());
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "upgrade");
    assert_told(&said, "upgrade-path", "failed to update Instance team/prod: version 0.1.0 is lower");
    world("Deny").merge(&old, edit).assert_refused("upgrade-path", "lower");
}

/// An unknown namespace, and one that no setting selects.
#[test]
fn where_no_setting_selects_rules_deny() {
    let edit = json!({"spec": {"parameters": {"NODES": "5"}}});
    let mut unknown = World::strict();
    let all: Vec<_> = serde_json::from_value(json!([{"group": "freeze", "action": "Off"}])).unwrap();
    unknown.view.set_rules(Rules::read(&all).0);
    unknown.merge(&running("deploy"), edit.clone()).assert_refused("plan-running", "");
    let prod = json!([
        {"group": "freeze", "namespaceSelector": {"matchLabels": {"tier": "prod"}}, "action": "Off"},
    ]);
    world(prod).merge(&running("deploy"), edit).assert_refused("plan-running", "");
}

#[test]
fn same_plan_freezes_the_rest() {
    let edit = json!({"spec": {"parameters": {"NODES": "5"}}});
    let old = running("deploy");
    let said = with_rules(World::same_plan(), set("freeze", "Warn")).merge(&old, edit.clone());
    assert_left_to_the_reconciler(&said, &old);
    assert_eq!(said.record.admitted, ["plan-running"]);
    with_rules(World::same_plan(), json!([])).merge(&old, edit).assert_refused("plan-running", "");
}

fn version(world: &World, operation: &str, new: Value, old: Value) -> Said {
    world.ask(WebhookEndpoint::Validate, &review(operation, "OperatorVersion", new, old))
}

#[test]
fn operator_versions() {
    let (old, new) = (kafka("kafka-1", "1.0.0"), kafka_with("kafka-1", "1.0.0", json!({"spec": {"x": 1}})));
    let changed = kafka("kafka-1", "1.0.1");
    let used = |settings| world(settings).with(running("deploy"));
    version(&used(json!([])), "UPDATE", changed.clone(), old.clone()).assert_refused("version-frozen", "");
    let said = version(&used(set("freeze", "Warn")), "UPDATE", changed, old.clone());
    said.assert_allowed();
    assert!(said.warnings()[0].starts_with("OperatorVersion team/kafka-1 is frozen"));
    assert_eq!(said.record.admitted, ["version-frozen"]);

    let said = version(&used(set("versions", "Warn")), "DELETE", Value::Null, old.clone());
    said.assert_allowed();
    assert_told(&said, "version-in-use", "OperatorVersion team/kafka-1 is used by 1 Instance");
    version(&used(set("freeze", "Off")), "DELETE", Value::Null, old).assert_refused("version-in-use", "");

    let mut broken = new;
    broken["spec"]["tasks"][0]["spec"]["resources"] = json!(["lost.yaml"]);
    let said = version(&world(set("versions", "Warn")), "CREATE", broken.clone(), Value::Null);
    said.assert_allowed();
    assert_eq!(said.record.admitted, ["version-invalid"]);
    version(&world(json!([])), "CREATE", broken, Value::Null).assert_refused("version-invalid", "");
}

/// Locked Instances of a namespace that denies keep their OperatorVersion, whatever its namespace.
#[test]
fn a_version_is_as_frozen_as_its_strictest_user() {
    let mut other = running("deploy");
    other["metadata"]["namespace"] = json!("other");
    other["spec"]["operatorVersion"]["namespace"] = json!(NAMESPACE);
    let world = world(set("freeze", "Off")).with(other);
    let (old, new) = (kafka("kafka-1", "1.0.0"), kafka("kafka-1", "1.0.1"));
    version(&world, "UPDATE", new, old).assert_refused("version-frozen", "");
}
