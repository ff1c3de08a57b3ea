//! References to an OperatorVersion that is not there: the Instance waits for it, and nothing of it is scheduled,
//! completed or locked until then. Who applies from Git applies in any order.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::admission::lister::CacheState;
use interlock_core::api::interlock::Rules;
use interlock_core::api::meta;
use interlock_core::kinds::static_lister::StaticLister;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Said, World, idle, kafka, kafka_with, manifest, review, running};

const SAID: &str = "OperatorVersion team/kafka-1 is not there: nothing is carried out until it is";

/// Without any OperatorVersion.
fn bare() -> World {
    World { view: StaticLister::of(crate::all()), ..World::strict() }
}

fn set(action: &str, mut world: World) -> World {
    let settings =
        serde_json::from_value::<Vec<_>>(json!([{"group": "references", "action": action}])).unwrap();
    world.view.set_rules(Rules::read(&settings).0);
    world.with(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": super::NAMESPACE, "labels": {}}}))
}

fn to(name: &str) -> Value {
    json!({"spec": {"operatorVersion": {"name": name}}})
}

/// One that was created before its OperatorVersion.
fn waiting(parameters: Value) -> Value {
    let mut object = manifest(parameters);
    object["metadata"]["uid"] = json!("c0ffee");
    object["metadata"]["resourceVersion"] = json!(super::RESOURCE_VERSION);
    object
}

/// As a replica that knows other packages validates what the first one mutated.
fn validated_by(world: &World, operation: &str, object: Value, old: Value) -> Said {
    world.ask(WebhookEndpoint::Validate, &review(operation, "Instance", object, old))
}

#[track_caller]
fn assert_warned(said: &Said, text: &str) {
    said.assert_allowed();
    assert!(said.warnings().iter().any(|warning| warning.contains(text)), "{:?}", said.warnings());
}

#[test]
fn a_creation_is_admitted_as_it_is() {
    let object = manifest(json!({"NODES": "5"}));
    let said = bare().create(object.clone());
    assert_warned(&said, SAID);
    assert_eq!(said.object["spec"], object["spec"], "no plan, no defaults");
    assert_eq!(said.object["metadata"], object["metadata"], "no stamp, no finalizer");
    assert_eq!(said.record.rules, ["version-missing"]);
}

#[test]
fn what_is_not_known_yet_is_not_scheduled() {
    let mut object = manifest(json!({}));
    object["spec"]["planExecution"] = json!({"planName": "backup"});
    object["metadata"]["annotations"] = json!({meta::LAST_APPLIED_SPEC: "{}", meta::HISTORY: "[]"});
    let said = bare().create(object);
    assert_warned(&said, "spec.planExecution is replaced: a new Instance runs plan 'deploy'");
    assert_eq!(said.execution(), &json!({}));
    assert_eq!(said.object["metadata"]["annotations"], json!({}));
}

#[test]
fn a_name_that_is_almost_right_is_told() {
    let mut object = manifest(json!({}));
    object["spec"]["operatorVersion"]["name"] = json!("kafka1");
    assert_warned(&World::strict().create(object), "until it is; did you mean kafka-1?");
}

/// Mutation and validation may be answered by replicas with different caches.
#[test]
fn replicas_that_know_more_or_less_agree() {
    let object = manifest(json!({"NODES": "5"}));
    let known = World::strict();
    let left = bare().create(object.clone()).object;
    validated_by(&known, "CREATE", left, Value::Null).assert_allowed();
    let completed = known.create(object).object;
    assert_eq!(completed["spec"]["planExecution"]["planName"], "deploy");
    validated_by(&bare(), "CREATE", completed.clone(), Value::Null).assert_allowed();
    let mut forged = completed;
    forged["spec"]["planExecution"]["uid"] = json!("another");
    validated_by(&bare(), "CREATE", forged, Value::Null).assert_refused("plan-uid", "");

    let (old, upgraded) = (idle(json!({"NODES": "3"})), World::strict().with(kafka("kafka-2", "2.0.0")));
    let left = known.merge(&old, to("kafka-2")).object;
    let said = validated_by(&upgraded, "UPDATE", left.clone(), old.clone());
    said.assert_allowed();
    let lower = World::strict().with(kafka("kafka-2", "0.9.0"));
    validated_by(&lower, "UPDATE", left, old).assert_refused("upgrade-path", "is lower than 1.0.0");
}

#[test]
fn what_is_left_to_the_leader_is_judged_where_that_is_known() {
    let left = bare().create(manifest(json!({"NODES": "many"}))).object;
    validated_by(&World::strict(), "CREATE", left, Value::Null).assert_refused("parameter-invalid", "NODES");
}

#[rstest]
#[case::upgrade(idle(json!({"NODES": "3"})), to("kafka-9"))]
#[case::upgrade_and_edit(
    idle(json!({"NODES": "3"})),
    json!({"spec": {"operatorVersion": {"name": "kafka-9"}, "parameters": {"NODES": "many"}}})
)]
fn an_update_keeps_what_is_carried_out(#[case] old: Value, #[case] patch: Value) {
    let said = World::strict().merge(&old, patch.clone());
    assert_warned(&said, "OperatorVersion team/kafka-9 is not there");
    assert_eq!(said.execution(), &old["spec"]["planExecution"]);
    assert_eq!(said.object["metadata"], old["metadata"]);
    // It is not locked: what is mistyped can be mended.
    World::strict().update(&said.object, old).assert_allowed();
}

/// While a plan runs, its reference does not change either.
#[test]
fn the_freeze_holds() {
    World::strict().merge(&running("deploy"), to("kafka-9")).assert_refused("plan-running", "");
}

/// It runs on the last-applied spec, so it is one of the plans of that OperatorVersion.
#[test]
fn a_plan_is_one_of_what_is_carried_out() {
    let world = World::strict();
    let old = world.merge(&idle(json!({"NODES": "3"})), to("kafka-9")).object;
    let trigger = |plan: &str| json!({"spec": {"planExecution": {"planName": plan, "uid": "mine"}}});
    let said = world.merge(&old, trigger("backup"));
    said.assert_allowed();
    assert_eq!(said.execution()["planName"], "backup");
    world.merge(&old, trigger("backpu")).assert_refused("plan-unknown", "plan backpu does not exist");
}

#[test]
fn before_its_creation_an_edit_mends_and_schedules_nothing() {
    let (known, old) = (World::strict(), waiting(json!({"NODES": "many"})));
    let edit = |parameters: Value| json!({"spec": {"parameters": parameters}});
    let said = known.merge(&old, edit(json!({"NODES": "5"})));
    said.assert_allowed();
    assert_eq!(said.object["spec"]["planExecution"], Value::Null);
    assert_eq!(said.object["metadata"], old["metadata"]);
    known.merge(&old, edit(json!({"NODES": "more"}))).assert_refused("parameter-invalid", "NODES");
    known.merge(&old, edit(json!({"NODES": null, "NODS": "3"}))).assert_refused("parameter-unknown", "NODS");
    for world in [known, bare()] {
        let trigger =
            json!({"spec": {"parameters": {"NODES": "5"}, "planExecution": {"planName": "backup"}}});
        let said = world.merge(&old, trigger);
        assert_warned(&said, "spec.planExecution is replaced: a new Instance runs plan 'deploy'");
        assert_eq!(said.object["spec"]["planExecution"], json!({}));
    }
}

/// A user who may not read another namespace learns nothing of it: only validation, after the policy, says that something is
/// not there.
#[test]
fn of_another_namespace_validation_alone_tells() {
    let mut object = manifest(json!({}));
    object["spec"]["operatorVersion"]["namespace"] = json!("other");
    object["spec"]["planExecution"] = json!({"planName": "backup"});
    let mut there = kafka("kafka-1", "1.0.0");
    there["metadata"]["namespace"] = json!("other");
    let asked = review("CREATE", "Instance", object, Value::Null);
    let told = |world: &World| world.ask(WebhookEndpoint::Mutate, &asked).response["warnings"].clone();
    let absent = World::strict();
    assert_eq!(told(&absent), told(&World::strict().with(there)));
    let mutated = absent.ask(WebhookEndpoint::Mutate, &asked);
    // The last-applied spec proves to the leader that the policy was asked.
    assert_eq!(mutated.stamp()["spec"]["operatorVersion"]["namespace"], "other");
    assert_eq!(mutated.object["spec"]["planExecution"], json!({}));
    let said = validated_by(&absent, "CREATE", mutated.object, Value::Null);
    assert_warned(&said, "OperatorVersion other/kafka-1 is not there: nothing is carried out until it is");
    assert_eq!(said.record.rules, ["version-missing"]);
    // An update keeps the last-applied spec, so that nothing proves it.
    let reference = json!({"spec": {"operatorVersion": {"namespace": "other"}}});
    absent.merge(&idle(json!({})), reference).assert_refused("version-missing", "other/kafka-1");
}

#[test]
fn a_platform_may_refuse_it() {
    let said = set("Deny", bare()).create(manifest(json!({})));
    said.assert_refused("version-missing", "OperatorVersion team/kafka-1 of Instance team/prod is not found");
    set("Deny", World::strict())
        .merge(&idle(json!({})), to("kafka-9"))
        .assert_refused("version-missing", "OperatorVersion team/kafka-9 of Instance team/prod is not found");
    let said = set("Off", bare()).create(manifest(json!({})));
    said.assert_allowed();
    assert_eq!(said.warnings(), Vec::<&str>::new());
}

/// What a cache lacks may be there all the same.
#[test]
fn what_cannot_be_listed_is_completed() {
    let world = World { cache: CacheState::Partial("may not list".to_owned()), ..bare() };
    let said = world.create(manifest(json!({})));
    assert_eq!(said.execution()["planName"], "deploy");
}

#[test]
fn a_package_with_a_default_completes_later() {
    let with_default = World::strict().with(kafka_with("kafka-1", "1.0.0", json!({})));
    let left = bare().create(manifest(json!({}))).object;
    assert_eq!(left["spec"]["parameters"], json!({}));
    validated_by(&with_default, "CREATE", left, Value::Null).assert_allowed();
}
