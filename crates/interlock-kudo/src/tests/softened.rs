//! Whatever downgrades a violation, the object is completed as if there were none: settings that warn,
//! a cache that lacks other objects. A denial lists all violations that are enforced.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::admission::lister::CacheState;
use interlock_core::api::interlock::Rules;
use interlock_core::api::meta;
use interlock_core::kinds::static_lister::StaticLister;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use super::properties::{apply, before, edit};
use super::{Said, World, idle, kafka, kafka_with, key, manifest, ours, review, running};
use crate::instance::change::uid::is_version_5;

const WHY: &str = "Interlock checks this without other objects: this process may not list operatorversions";

/// A world whose cache may lack objects other than these.
fn partial(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::strict();
    world.view = StaticLister::of(crate::all());
    world.cache = CacheState::Partial(WHY.to_owned());
    objects.into_iter().fold(world, World::with)
}

fn unavailable() -> World {
    World { cache: CacheState::Unavailable("switched off".to_owned()), ..World::strict() }
}

fn all_off(mut world: World) -> World {
    let groups = ["freeze", "parameters", "plans", "upgrades", "versions", "references"];
    let settings = groups.map(|group| json!({"group": group, "action": "Off"}));
    let settings: Vec<_> = serde_json::from_value(json!(settings)).unwrap();
    world.view.set_rules(Rules::read(&settings).0);
    world.with(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": super::NAMESPACE, "labels": {}}}))
}

fn annotation<'a>(said: &'a Said, name: &str) -> &'a Value {
    &said.object["metadata"]["annotations"][name]
}

/// Its package is unknown: it gets the defaults of a creation.
#[rstest]
#[case::plain(manifest(json!({"NODES": "5"})))]
#[case::with_a_run_of_its_own({
    let mut object = manifest(json!({}));
    object["spec"]["planExecution"] = json!({"planName": "backup", "uid": "u", "status": "COMPLETE"});
    object["metadata"]["annotations"] = json!({meta::LAST_APPLIED_SPEC: "{}", meta::HISTORY: "[]"});
    object
})]
fn a_creation_without_its_package_is_completed(#[case] object: Value) {
    let said = partial([]).create(object);
    said.assert_allowed();
    assert!(
        said.warnings().iter().any(|w| w.starts_with("OperatorVersion team/kafka-1 of Instance team/prod"))
    );
    assert!(WHY.starts_with(said.warnings()[0].trim_end_matches(" ...")), "{:?}", said.warnings());
    assert_eq!(said.execution()["planName"], "deploy");
    assert_eq!(said.execution()["status"], "NEVER_RUN");
    assert!(is_version_5(said.execution()["uid"].as_str().unwrap()));
    assert_eq!(said.object["metadata"]["finalizers"], json!([meta::FINALIZER]));
    assert_eq!(said.stamp()["hash"], json!(super::hash_of(&said.object["spec"])));
    assert_eq!(annotation(&said, meta::HISTORY), &Value::Null);
}

/// Replicas may know different packages: none denies an object that another completed.
#[test]
fn replicas_that_know_more_or_less_agree() {
    let plain = kafka_with("kafka-1", "1.0.0", json!({"spec": {"plans": {"cleanup": null}}}));
    for (mutates, validates) in [(partial([]), partial([plain.clone()])), (partial([plain]), partial([]))] {
        let mut again = review("CREATE", "Instance", manifest(json!({"ID": "7"})), Value::Null);
        let mutated = mutates.ask(WebhookEndpoint::Mutate, &again);
        mutated.assert_allowed();
        again["request"]["object"] = mutated.object;
        validates.ask(WebhookEndpoint::Validate, &again).assert_allowed();
    }
}

/// Violations that the object alone proves are denied, beside all that are only warnings.
#[test]
fn what_the_object_shows_is_refused() {
    let mut object = manifest(json!({}));
    object["spec"]["operatorVersion"]["name"] = json!("");
    partial([]).create(object).assert_refused("version-required", "names no OperatorVersion");
    let forged = json!({"spec": {
        "parameters": {"NODES": "many"}, "planExecution": {"planName": "deploy", "status": "COMPLETE"},
    }});
    let said = partial([kafka("kafka-1", "1.0.0")]).merge(&running("deploy"), forged);
    said.assert_refused("plan-status", "planExecution.status is written by Interlock only");
    assert_eq!(said.record.rules, ["plan-status", "plan-running"]);
}

/// An edit whose plan is unknown is left to the reconciler; the fields that Interlock owns stay.
#[test]
fn an_edit_without_its_package_leaves_what_is_ours() {
    let old = idle(json!({"NODES": "3"}));
    let said = partial([]).merge(
        &old,
        json!({
            "metadata": {"annotations": {meta::LAST_APPLIED_SPEC: "{}", meta::HISTORY: "[]"}},
            "spec": {"parameters": {"NODES": "5"}},
        }),
    );
    said.assert_allowed();
    assert_eq!(said.execution(), &old["spec"]["planExecution"]);
    assert_eq!(said.object["metadata"]["annotations"], old["metadata"]["annotations"]);
    assert_eq!(said.record.rules, ["stamp-mismatch", "history-owner", "version-missing"]);
}

/// A plan that may not exist is scheduled with our uid.
#[test]
fn a_trigger_without_its_package_is_scheduled() {
    let old = idle(json!({"NODES": "3"}));
    let said =
        partial([]).merge(&old, json!({"spec": {"planExecution": {"planName": "backup", "uid": "mine"}}}));
    said.assert_allowed();
    assert_eq!(said.execution()["uid"], ours("backup", &old["spec"]));
}

/// While no rule can be evaluated, nothing is scheduled and no user writes Interlock's own fields.
#[test]
fn an_unavailable_cache_restores_what_is_ours() {
    let forged = json!({meta::LAST_APPLIED_SPEC: "{}", meta::HISTORY: "[]", "a": "b"});
    let old = running("deploy");
    let edit = json!({"metadata": {"annotations": forged}, "spec": {"parameters": {"NODES": "many"}}});
    let said = unavailable().merge(&old, edit);
    said.assert_allowed();
    let mut kept = old["metadata"]["annotations"].clone();
    kept["a"] = json!("b");
    assert_eq!(said.object["metadata"]["annotations"], kept);
    assert_eq!(said.execution(), &old["spec"]["planExecution"]);
    assert_eq!(said.warnings().last(), Some(&"switched off"));

    let mut object = manifest(json!({"NODES": "many"}));
    object["metadata"]["annotations"] = forged;
    let said = unavailable().create(object);
    said.assert_allowed();
    assert_eq!(said.object["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(said.execution(), &Value::Null);
}

proptest! {
    #![proptest_config(super::properties::config())]

    /// A rule that only warns, as other objects are unknown, changes the object no more than one that
    /// is switched off: annotation, uid and finalizer are as if the request were allowed.
    #[test]
    fn what_is_softened_is_completed_as_if_allowed(old in before(), edit in edit()) {
        let object = apply(&edit, &old);
        let packages = [kafka("kafka-1", "1.0.0"), kafka("kafka-2", "2.0.0")];
        let softened = partial(packages).update(&old, object.clone());
        let off = all_off(World::strict().with(kafka("kafka-2", "2.0.0"))).update(&old, object);
        if softened.allowed() && off.allowed() {
            prop_assert_eq!(&softened.object, &off.object);
        }
        if softened.allowed() {
            // Only our own passes write the annotation: it is the old one, or that of this spec.
            let stamp = annotation(&softened, meta::LAST_APPLIED_SPEC);
            let before = old.pointer("/metadata/annotations").map_or(&Value::Null, |all| &all[meta::LAST_APPLIED_SPEC]);
            let own = softened.stamp()["hash"] == json!(super::hash_of(&softened.object["spec"]));
            prop_assert!(stamp == before || own, "{stamp}");
        }
    }
}

fn warned(group: &str) -> World {
    let mut world = all_off(World::strict());
    let settings: Vec<_> = serde_json::from_value(json!([{"group": group, "action": "Warn"}])).unwrap();
    world.view.set_rules(Rules::read(&settings).0);
    world
}

/// Each violation is a warning of its own, even two of one rule.
#[test]
fn settings_that_warn_name_all_violations() {
    let old = idle(json!({"NODES": "3", "ZONE": "a", "ID": "7"}));
    let edit = json!({"NODES": "many", "SIZE": "huge", "ZONE": "b", "ID": "8", "NODS": "1", "NODDS": "2"});
    let said = warned("parameters").merge(&old, json!({"spec": {"parameters": edit}}));
    said.assert_allowed();
    let warnings = said.warnings();
    for named in ["\"NODS\"", "\"NODDS\"", "\"NODES\"", "\"SIZE\"", "'ZONE'", "'ID'"] {
        assert_eq!(warnings.iter().filter(|w| w.contains(named)).count(), 1, "{named}: {warnings:?}");
    }
    assert_eq!(said.record.admitted.len(), 6);
    assert_eq!(said.execution()["uid"], ours("update", &said.object["spec"]));
    assert_eq!(said.stamp()["hash"], json!(super::hash_of(&said.object["spec"])));
}

/// The first violation has its whole text, every other one a line.
#[test]
fn a_refusal_lists_all_violations() {
    let old = idle(json!({"NODES": "3", "ZONE": "a"}));
    let edit = json!({"spec": {"parameters": {"NODES": "many", "ZONE": "b", "NODS": "1", "NODDS": "2", "GHOST": "x"}}});
    let said = World::strict().merge(&old, edit);
    assert_eq!(
        said.message(),
        "failed to update Instance team/prod: failed to find parameter \"NODDS\" in the OperatorVersion [parameter-unknown]\n  \
         spec.parameters.NODS: OperatorVersion kafka-1 defines no such parameter; did you mean NODES?\n  \
         spec.parameters.ZONE: parameter 'ZONE' is immutable but was changed [parameter-immutable]\n  \
         and 2 more\n\
         Next: correct the name: did you mean NODES? (`kubectl get operatorversion kafka-1 -n team -o yaml` lists the parameters)\n\
         See `interlock explain parameter-unknown`"
    );
    let rules = "parameter-unknown,parameter-immutable,parameter-invalid,plan-unknown";
    assert_eq!(said.response["auditAnnotations"]["rule"], rules);
    let causes = said.response["status"]["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().filter_map(|c| c["field"].as_str()).collect();
    let named = ["NODDS", "NODS", "ZONE", "NODES", "GHOST"].map(|name| format!("spec.parameters.{name}"));
    assert_eq!(fields, named);
    assert_eq!(causes[0]["message"], said.message());
    assert!(causes[4]["message"].as_str().unwrap().ends_with(" [plan-unknown]"), "{causes:?}");
}

/// However many there are, they are counted, and cost no more than the named ones.
#[test]
fn many_violations_are_counted() {
    let many: serde_json::Map<String, Value> = (0..5000).map(|i| (format!("U{i}"), json!("v"))).collect();
    let said = World::strict().merge(&idle(json!({"NODES": "3"})), json!({"spec": {"parameters": many}}));
    assert!(said.message().contains("\n  and 4997 more\n"), "{}", said.message());
    assert_eq!(said.response["status"]["details"]["causes"].as_array().unwrap().len(), 16);
}

/// An OperatorVersion whose users are unknown is still validated by its contents.
#[test]
fn an_operator_version_is_judged_by_what_it_holds() {
    let (old, mut new) = (kafka("kafka-1", "1.0.0"), kafka("kafka-1", "1.0.1"));
    new["spec"]["tasks"][0]["spec"]["resources"] = json!(["lost.yaml"]);
    let world = partial([old.clone(), running("deploy")]);
    let said = world.ask(WebhookEndpoint::Validate, &review("UPDATE", "OperatorVersion", new, old));
    said.assert_refused("version-invalid", &format!("OperatorVersion {}", key("kafka-1")));
}
