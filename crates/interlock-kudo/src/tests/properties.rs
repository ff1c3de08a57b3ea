//! Properties over random Instances, changes and states of runs.
//!
//! `World::update` itself asserts, for every request that these make, that mutation is idempotent, that
//! validation allows the result of mutation without a further patch and denies what mutation denies,
//! and that KUDO's endpoint decides the same.

use interlock_core::admission::{CacheWait, WebhookEndpoint, answer};
use interlock_core::api::meta;
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Value, json};

use super::{World, deleted, ended, idle, kafka, manifest, review, running, scheduled};
use crate::api::Instance;
use crate::instance::change::lock;

pub(super) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 100,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    }
}

fn world(strict: bool) -> World {
    let world = if strict { World::strict() } else { World::same_plan() };
    world.with(kafka("kafka-2", "2.0.0"))
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[0-9]{1,3}",
        Just("small".to_owned()),
        "\\PC{0,12}",
        Just("[1, 2]".to_owned())
    ]
}

fn parameters() -> impl Strategy<Value = Value> {
    let names = [
        "NODES",
        "MEMORY",
        "PASSWORD",
        "BACKUP_FILE",
        "RESTORE_FILE",
        "ID",
        "ZONE",
        "SIZE",
        "CLEAN",
        "GHOST",
        "NODS",
        "A/B~C",
    ];
    btree_map(prop::sample::select(names.to_vec()), value(), 0..5).prop_map(|map| json!(map))
}

fn execution() -> impl Strategy<Value = Option<Value>> {
    let uids = [
        "",
        super::RUN,
        "5c8bb3fd-6d5b-4c3c-9a5e-1f8a2bbd7f10",
        "5c8bb3fd-6d5b-5c3c-9a5e-1f8a2bbd7f10",
        "junk",
    ];
    let plans = ["", "deploy", "backup", "cleanup", "ghost"];
    let states = ["", "NEVER_RUN", "IN_PROGRESS", "COMPLETE", "FATAL_ERROR"];
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(Value::Null)),
        1 => Just(Some(json!({}))),
        4 => (prop::sample::select(plans.to_vec()), prop::sample::select(uids.to_vec()), prop::sample::select(states.to_vec()))
            .prop_map(|(plan, uid, status)| Some(json!({"planName": plan, "uid": uid, "status": status}))),
    ]
}

pub(super) fn before() -> impl Strategy<Value = Value> {
    let state = prop_oneof![
        Just(running("deploy")),
        Just(running("backup")),
        Just(scheduled("update")),
        Just(ended("deploy", "COMPLETE")),
        Just(ended("update", "FATAL_ERROR")),
        Just(idle(json!({"NODES": "3", "ID": "7"}))),
        Just(idle(json!({"NODS": "3", "PASSWORD": "s3cret"}))),
    ];
    (state, any::<bool>(), any::<bool>(), prop::option::of(parameters())).prop_map(
        |(mut old, gone, bare, unseen)| {
            if bare {
                old["metadata"].as_object_mut().unwrap().remove("annotations");
                old["status"]["lastApplied"] = Value::Null;
            }
            if let Some(parameters) = unseen.filter(|_| !bare) {
                old["spec"]["parameters"] = parameters;
            }
            if gone { deleted(old) } else { old }
        },
    )
}

#[derive(Clone, Debug)]
pub(super) struct Edit {
    parameters: Option<Value>,
    version: Option<&'static str>,
    execution: Option<Value>,
    keep_execution: bool,
    stamp: Option<Option<String>>,
    finalizers: Option<Value>,
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    (
        prop::option::of(parameters()),
        prop::option::weighted(0.2, prop::sample::select(vec!["kafka-1", "kafka-2", "kafka-9", ""])),
        execution(),
        any::<bool>(),
        prop::option::weighted(
            0.3,
            prop::option::of(Just("{\"v\":1,\"hash\":\"sha256:0\",\"ref\":\"Secret\"}".to_owned())),
        ),
        prop::option::weighted(0.3, prop_oneof![Just(json!([])), Just(json!(["other"])), Just(Value::Null)]),
    )
        .prop_map(|(parameters, version, execution, keep_execution, stamp, finalizers)| Edit {
            parameters,
            version,
            execution,
            keep_execution,
            stamp,
            finalizers,
        })
}

pub(super) fn apply(edit: &Edit, old: &Value) -> Value {
    let mut object = old.clone();
    if let Some(parameters) = &edit.parameters {
        object["spec"]["parameters"] = parameters.clone();
    }
    if let Some(version) = edit.version {
        object["spec"]["operatorVersion"]["name"] = json!(version);
    }
    match &edit.execution {
        Some(execution) => object["spec"]["planExecution"] = execution.clone(),
        None if !edit.keep_execution => {
            object["spec"].as_object_mut().unwrap().remove("planExecution");
        }
        None => {}
    }
    match &edit.stamp {
        Some(Some(text)) => object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(text),
        Some(None) => {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        None => {}
    }
    if let Some(finalizers) = &edit.finalizers {
        object["metadata"]["finalizers"] = finalizers.clone();
    }
    object
}

/// The object without the fields that a mutation may change.
fn rest(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|f| f != meta::FINALIZER);
    }
    if metadata.get("finalizers").is_some_and(|f| f.is_null() || *f == json!([])) {
        metadata.remove("finalizers");
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(meta::LAST_APPLIED_SPEC);
    }
    if metadata.get("annotations").is_some_and(|a| *a == json!({})) {
        metadata.remove("annotations");
    }
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("planExecution");
    spec.remove("parameters");
    object
}

/// The part that plans carry out: the name of the version and the parameters.
fn carried(object: &Value) -> (Value, Value) {
    let parameters = &object["spec"]["parameters"];
    (
        object["spec"]["operatorVersion"]["name"].clone(),
        if parameters.is_null() { json!({}) } else { parameters.clone() },
    )
}

proptest! {
    #![proptest_config(config())]

    /// The patch changes only the last-applied annotation, our finalizer, planExecution and parameters;
    /// the last only if a creation sets defaults or an upgrade drops some.
    #[test]
    fn the_patch_touches_only_what_is_ours(old in before(), edit in edit(), strict: bool) {
        let object = apply(&edit, &old);
        let said = world(strict).update(&old, object.clone());
        if said.allowed() {
            prop_assert_eq!(rest(&said.object), rest(&object));
            if edit.version.is_none() {
                prop_assert_eq!(carried(&said.object), carried(&object));
            }
        }
    }

    /// Strict: the freeze holds exactly while the lock does. While locked, the part that plans carry
    /// out and planExecution stay the same, whatever is written.
    #[test]
    fn the_freeze_holds_exactly_while_locked(old in before(), edit in edit()) {
        let typed: Instance = serde_json::from_value(old.clone()).unwrap();
        let locked = lock::of(&typed).is_some();
        let object = apply(&edit, &old);
        let said = world(true).update(&old, object.clone());
        if locked && said.allowed() {
            prop_assert_eq!(carried(&said.object), carried(&old));
            prop_assert_eq!(said.execution(), &old["spec"]["planExecution"]);
        }
        let only_lock = ["plan-running", "plan-cancel"];
        if !said.allowed() && only_lock.contains(&said.rule()) {
            prop_assert!(locked);
        }
    }

    /// An edit that is allowed on an idle Instance without drift always runs its plan: the object then
    /// names a plan, with a new uid, and the last-applied annotation has its spec.
    #[test]
    fn what_is_accepted_is_scheduled_and_stamped(parameters in parameters()) {
        let old = idle(json!({"NODES": "3", "ID": "7"}));
        let mut object = old.clone();
        object["spec"]["parameters"] = parameters;
        let changed = carried(&object) != carried(&old);
        let said = world(true).update(&old, object);
        if said.allowed() && changed {
            prop_assert_eq!(&said.execution()["status"], "NEVER_RUN");
            prop_assert_eq!(&said.stamp()["hash"], &json!(super::hash_of(&said.object["spec"])));
            prop_assert_eq!(&said.stamp()["previous"]["hash"], &json!(super::hash_of(&old["spec"])));
        }
    }

    #[test]
    fn creations(parameters in parameters(), execution in execution(), generated: bool) {
        let mut object = manifest(parameters);
        if let Some(execution) = execution {
            object["spec"]["planExecution"] = execution;
        }
        if generated {
            object["metadata"] = json!({"generateName": "prod-", "namespace": "team"});
        }
        let said = world(true).create(object.clone());
        if said.allowed() {
            prop_assert_eq!(rest(&said.object), rest(&object));
            prop_assert_eq!(&said.execution()["planName"], "deploy");
            prop_assert_eq!(&said.execution()["status"], "NEVER_RUN");
        }
    }

    /// Random damage to a review: a response or an error, never a panic, and the response is JSON.
    #[test]
    fn damaged_reviews_do_not_panic(
        old in before(), edit in edit(), door in prop::sample::select(WebhookEndpoint::ALL.to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let object = apply(&edit, &old);
        let mut body = review("UPDATE", "Instance", object, old).to_string().into_bytes();
        for (at, byte) in damage {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        let world = world(true);
        if let Ok(interlock_core::admission::AdmissionAnswer::Done(reply)) =
            answer(&interlock_core::kinds::guarded(crate::all()), door, &body, &world.view, &world.config, CacheWait::Exhausted, None)
        {
            let answer: Value = serde_json::from_slice(&reply.body).unwrap();
            prop_assert!(answer["response"]["allowed"].is_boolean());
        }
    }
}
