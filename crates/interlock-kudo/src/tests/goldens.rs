//! The text of one refusal of each rule, as a golden file. [`super::assert_shape`] holds every refusal of every
//! table to the same shape; refusals of the rules about router flavors are in `tests/data/kubectl`, as kubectl
//! prints them.

use std::collections::BTreeSet;

use interlock_core::admission::WebhookEndpoint;
use interlock_core::admission::WebhookEndpoint::Validate;
use interlock_core::api::meta;
use interlock_core::api::rule::RuleGroup;
use serde_json::{Value, json};

use super::{RUN, Said, World, deleted, dependencies, idle, kafka, manifest, review, running, stamp};

fn world() -> World {
    World::complete().with(kafka("kafka-2", "2.0.0")).with(kafka("kafka-0", "0.5.0")).with(running("deploy"))
}

fn spec(old: &Value, spec: Value) -> Said {
    world().merge(old, json!({ "spec": spec }))
}

/// An object as it comes to validation, where no other webhook should have changed it.
fn validated(old: &Value, patch: &Value) -> Said {
    let mut object = world().merge(old, json!({"spec": {"parameters": {"NODES": "5"}}})).object;
    json_patch::merge(&mut object, patch);
    world().ask(Validate, &review("UPDATE", "Instance", object, old.clone()))
}

fn package(operation: &str, patch: &Value) -> Said {
    let old = kafka("kafka-1", "1.0.0");
    let mut object = old.clone();
    json_patch::merge(&mut object, patch);
    let object = if operation == "DELETE" { Value::Null } else { object };
    world().ask(Validate, &review(operation, "OperatorVersion", object, old))
}

fn status(patch: &Value) -> Said {
    let old = running("deploy");
    let mut object = old.clone();
    json_patch::merge(&mut object, &json!({ "status": patch }));
    let mut review = review("UPDATE", "Instance", object, old);
    review["request"]["subResource"] = json!("status");
    world().ask(Validate, &review)
}

fn about_runs() -> Vec<Said> {
    let (idle, running) = (idle(json!({"NODES": "3", "ID": "7"})), running("deploy"));
    vec![
        spec(&running, json!({"parameters": {"NODES": "5", "PASSWORD": "n3w"}})),
        spec(&running, json!({"planExecution": {"planName": ""}})),
        spec(&running, json!({"planExecution": {"planName": "backup", "uid": "u"}})),
        spec(&idle, json!({"planExecution": {"planName": "deploy", "status": "COMPLETE"}})),
        spec(&idle, json!({"planExecution": {"planName": "backup"}, "parameters": {"NODES": "5"}})),
        spec(&idle, json!({"planExecution": {"planName": "bakcup"}})),
        spec(&idle, json!({"planExecution": {"planName": "cleanup"}})),
        spec(&idle, json!({"parameters": {"RESTORE_FILE": "r", "BACKUP_FILE": "b"}})),
        spec(&deleted(idle.clone()), json!({"parameters": {"NODES": "5"}})),
        spec(
            &stamp::drifted(json!({"MEMORY": "9Gi"}), false),
            json!({"planExecution": {"planName": "backup", "uid": "u"}}),
        ),
        status(&json!({"planStatus": {"deploy": {"status": "COMPLETE"}}})),
        world().merge(
            &running,
            json!({"metadata": {"annotations": {meta::REQUEST: "abort", meta::REASON: "why"}}}),
        ),
    ]
}

fn about_values() -> Vec<Said> {
    let idle = idle(json!({"NODES": "3", "ID": "7"}));
    vec![
        spec(&idle, json!({"parameters": {"NODS": "5"}})),
        spec(&idle, json!({"parameters": {"ID": "8"}})),
        spec(&idle, json!({"parameters": {"NODES": "three"}})),
        spec(&idle, json!({"operatorVersion": {"name": "kafka-0"}})),
        spec(&idle, json!({"operatorVersion": {"name": "kafka-2"}, "parameters": {"BACKUP_FILE": "f"}})),
        spec(&idle, json!({"operatorVersion": {"name": "kafka1"}})),
        spec(&idle, json!({"operatorVersion": {"name": ""}})),
        spec(&idle, json!({"parameters": {"NODES": 5}})),
        package("UPDATE", &json!({"spec": {"version": "1.0.1"}})),
        package("DELETE", &Value::Null),
        package(
            "CREATE",
            &json!({"spec": {"plans": {
                "deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["aply"]}]}]}, "update": null, "upgrade": null,
            }}}),
        ),
        package("CREATE", &json!({"spec": {"plans": {"deploy": {"phases": "none"}}}})),
        dependencies::ask(&world(), "CREATE", dependencies::installing("ring", &["ring"]), Value::Null),
    ]
}

/// Changes that another webhook made after ours, or that ours was not called for.
fn about_the_object() -> Vec<Said> {
    let (idle, running) = (idle(json!({"NODES": "3"})), running("deploy"));
    let mut bare = manifest(json!({"SIZE": "small"}));
    bare["metadata"]["finalizers"] = json!([meta::FINALIZER]);
    let mutated = world().ask(WebhookEndpoint::Mutate, &review("CREATE", "Instance", bare, Value::Null));
    let mut without = mutated.object;
    without["spec"]["parameters"].as_object_mut().unwrap().remove("ID");
    let mut unguarded = running.clone();
    unguarded["metadata"]["finalizers"] = json!([]);
    let mut long = manifest(json!({}));
    long["metadata"]["name"] = json!("n".repeat(64));
    vec![
        world().create(long),
        world().create(manifest(json!({"MEMORY": "x".repeat(1_550_000)}))),
        validated(&idle, &json!({"spec": {"parameters": {"PASSWORD": "n3w"}}})),
        validated(&idle, &json!({"metadata": {"annotations": {meta::LAST_APPLIED_SPEC: "{}"}}})),
        validated(&idle, &json!({"metadata": {"annotations": {meta::HISTORY: "[]"}}})),
        world().ask(Validate, &review("CREATE", "Instance", without, Value::Null)),
        world().ask(Validate, &review("UPDATE", "Instance", unguarded, running)),
    ]
}

#[test]
fn one_refusal_of_each_rule_reads_like_this() {
    let said = [about_runs(), about_values(), about_the_object()].concat();
    let mut named = BTreeSet::new();
    let mut text = String::new();
    for said in &said {
        assert!(!said.allowed(), "{}", said.response);
        named.insert(said.rule());
        text += &format!("{}\n\n", said.message().replace(RUN, "RUN-UID"));
    }
    // Only policies refuse by these.
    named.extend(["verb-rights", "version-namespace", "dataplane-live-child", "override-rights"]);
    // Only a cache with a budget refuses by this.
    named.insert("version-left-out");
    // These only warn.
    named.extend(["dataplane-promotion", "dataplane-history-limit", "dataplane-not-carried-out"]);
    let missing: Vec<&str> = interlock_core::kinds::rules(crate::all())
        .filter(|rule| rule.group() != RuleGroup::Flavors)
        .map(|rule| rule.id())
        .filter(|id| !named.contains(id))
        .collect();
    assert_eq!(missing, Vec::<&str>::new(), "{text}");
    insta::assert_snapshot!("refusals", text);
}
