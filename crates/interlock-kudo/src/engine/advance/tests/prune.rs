//! Objects that a plan no longer renders: removed on request, in any order of deaths of the process.

use std::collections::{BTreeSet, VecDeque};

use interlock_core::api::inventory::{ListedObject, ObjectInventory};
use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::rejection::RejectionKind;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::ExecutionStatus::{Complete, InProgress};
use crate::engine::advance::fixture::{config_map, key, package, phase};
use crate::engine::advance::sim::{Did, Fixture, Process, Server, failure};
use crate::engine::lookup::FailureKind;
use crate::package::time_limits::RunLimits;

/// A plan of a step with these tasks.
fn fixture(tasks: &[&str]) -> Fixture {
    Fixture::new(package(phase(json!("serial"), &[tasks])))
}

fn pruning<'a>(fixture: &'a Fixture, inventory: &ObjectInventory) -> Process<'a> {
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = RunLimits { prunes: true, ..RunLimits::default() };
    process.inventory = inventory.clone();
    process
}

/// Carries out the plan of these tasks; what the inventory lists afterwards, and the Events.
#[track_caller]
fn deploy(
    tasks: &[&str],
    server: &mut Server,
    inventory: &ObjectInventory,
) -> (ObjectInventory, Vec<String>) {
    let fixture = fixture(tasks);
    let mut process = pruning(&fixture, inventory);
    let step = process.finish(server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    (process.inventory, step.notes.into_iter().map(|note| note.message).collect())
}

fn names(server: &Server) -> Vec<&str> {
    server.objects.keys().map(|key| key.name.as_str()).collect()
}

#[test]
fn what_the_plan_renders_no_more_goes_once_its_steps_are_done() {
    let mut server = Server::default();
    let (inventory, _) = deploy(&["apply-a", "apply-b", "apply-j"], &mut server, &ObjectInventory::default());
    server.ledger.clear();
    let (left, notes) = deploy(&["apply-a", "apply-k"], &mut server, &inventory);
    assert_eq!(names(&server), ["a", "k"]);
    let (last, first) = (server.ledger.pop().unwrap(), server.ledger.remove(0));
    assert_eq!(first, Did::Create(key("batch/v1", "Job", "k")), "{:?}", server.ledger);
    assert!(matches!(last, Did::Delete(_)));
    assert_eq!(notes, Vec::<String>::new());
    let (again, _) = deploy(&["apply-a", "apply-k"], &mut server, &left);
    assert_eq!(again, left);
    assert_eq!(serde_json::to_value(&left).unwrap()["deploy"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_moves_to_another_task_stays() {
    let mut server = Server::default();
    let (inventory, _) = deploy(&["apply-ab"], &mut server, &ObjectInventory::default());
    server.ledger.clear();
    deploy(&["apply-b", "apply-a"], &mut server, &inventory);
    assert_eq!(server.ledger.iter().filter(|did| matches!(did, Did::Delete(_))).count(), 0);
    assert_eq!(names(&server), ["a", "b"]);
}

#[test]
fn without_the_request_nothing_is_listed_or_removed() {
    let mut server = Server::default();
    let (inventory, _) = deploy(&["apply-a", "apply-b"], &mut server, &ObjectInventory::default());
    let fixture = fixture(&["apply-a"]);
    let mut process = Process::new(fixture.run(), fixture.start());
    process.inventory = inventory.clone();
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
    assert_eq!((names(&server), process.inventory), (vec!["a", "b"], inventory));
}

#[rstest]
#[case::of_others(json!([{"op": "remove", "path": "/metadata/ownerReferences"}, {"op": "remove", "path": "/metadata/annotations"}, {"op": "remove", "path": "/metadata/labels"}]), "no Instance made it")]
#[case::to_be_kept(json!([{"op": "add", "path": "/metadata/annotations/interlock.dev~1keep", "value": ""}]), "it is annotated interlock.dev/keep")]
fn what_is_not_to_be_deleted_is_reported_once(#[case] edit: Value, #[case] why: &str) {
    let mut server = Server::default();
    let (inventory, _) = deploy(&["apply-a", "apply-b"], &mut server, &ObjectInventory::default());
    let object = server.objects.get_mut(&config_map("b")).unwrap();
    json_patch::patch(object, &serde_json::from_value::<json_patch::Patch>(edit).unwrap()).unwrap();
    let (left, notes) = deploy(&["apply-a"], &mut server, &inventory);
    assert_eq!(names(&server), ["a", "b"]);
    assert!(
        notes.len() == 1 && notes[0].contains("ConfigMap ns/b is kept") && notes[0].contains(why),
        "{notes:?}"
    );
    let (_, notes) = deploy(&["apply-a"], &mut server, &left);
    assert_eq!(notes, Vec::<String>::new());
}

#[rstest]
#[case::the_last_user("uid-1", None, &["a"])]
#[case::the_maker_of_two("uid-1", Some("other"), &["a", "r"])]
#[case::the_second_of_two("other", Some("uid-1"), &["a", "r"])]
fn a_cluster_scoped_object_goes_with_the_last_instance(
    #[case] creator: &str,
    #[case] others: Option<&str>,
    #[case] left: &[&str],
) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {
        "name": "r", "labels": {meta::INSTANCE_UID: creator}, "annotations": {meta::SHARED_BY: others},
    }});
    let listed = BTreeSet::from([ListedObject::of(&role).unwrap()]);
    let mut server = Server::default();
    server.put(role);
    deploy(&["apply-a"], &mut server, &ObjectInventory::default().with("deploy", &listed));
    assert_eq!(names(&server), left);
    for object in server.objects.values().filter(|object| object["kind"] == "ClusterRole") {
        assert_eq!(object["metadata"]["labels"][meta::INSTANCE_UID], "other");
        assert_eq!(object["metadata"]["annotations"][meta::SHARED_BY], Value::Null);
    }
}

#[test]
fn a_refused_deletion_is_told_and_tried_again() {
    let mut server = Server::default();
    let (inventory, _) = deploy(&["apply-a", "apply-b"], &mut server, &ObjectInventory::default());
    let fixture = fixture(&["apply-a"]);
    let mut process = pruning(&fixture, &inventory);
    server.faults = VecDeque::from([Some(failure(403, "not allowed"))]);
    let step = process.pass(&mut server).unwrap();
    let told = step.failure.unwrap();
    assert_eq!(
        (told.kind, step.state.status.status),
        (FailureKind::Rejected(RejectionKind::Forbidden), InProgress)
    );
    let begins = "objects that plan deploy no longer renders are not removed: ";
    assert!(told.message.starts_with(begins) && told.message.contains("not allowed"), "{}", told.message);
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
    assert_eq!(names(&server), ["a"]);
}

/// Whatever the process had done when it was killed: what it has posted is listed, and what is listed goes.
#[test]
fn a_process_that_is_killed_at_any_write_leaves_nothing_unlisted() {
    for lives in 1.. {
        let mut server = Server::default();
        let first = fixture(&["apply-a", "apply-b", "apply-j"]);
        let mut process = pruning(&first, &ObjectInventory::default());
        process.lives = lives;
        let whole = process.finish(&mut server).is_ok();
        let inventory = process.inventory;
        let listed = serde_json::to_value(&inventory).unwrap().to_string();
        assert!(server.objects.keys().all(|ObjectKey { name, .. }| listed.contains(&format!("\"{name}\""))));
        for lives in 1.. {
            let mut server = Server { objects: server.objects.clone(), ..Server::default() };
            let second = fixture(&["apply-a"]);
            let mut process = pruning(&second, &inventory);
            process.lives = lives;
            let finished = process.finish(&mut server).is_ok();
            let (saved, inventory) = (process.saved, process.inventory);
            let mut process = pruning(&second, &inventory);
            process.saved = saved;
            assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
            assert_eq!(names(&server), ["a"], "killed at write {lives}");
            if finished {
                break;
            }
        }
        if whole {
            break;
        }
    }
}
