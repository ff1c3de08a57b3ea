//! Child Instances that a package no longer installs: removed with the plan of an upgrade, in any order of deaths of the
//! process.

use std::collections::VecDeque;

use interlock_core::api::inventory::{CHILDREN, ObjectInventory};
use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::ExecutionStatus::{Complete, FatalError};
use crate::engine::advance::fixture::{key, phase};
use crate::engine::advance::sim::{Did, Fixture, Killed, Process, Server, failure};
use crate::engine::lookup::EngineStep;

/// A package that installs these operators, each as an Instance of that name, where it has one; it ends with that task.
fn package(children: &[(&str, Option<&str>)], last: &str) -> Value {
    let names: Vec<String> = (0..children.len()).map(|i| format!("child-{i}")).collect();
    let mut tasks = vec![
        json!({"name": "nothing", "kind": "Dummy", "spec": {"done": true}}),
        json!({"name": "fatal", "kind": "Dummy", "spec": {"wantErr": true, "fatal": true}}),
    ];
    for (name, (operator, own)) in names.iter().zip(children) {
        let spec = json!({"package": operator, "operatorVersion": "1", "instanceName": own});
        tasks.push(json!({"name": name, "kind": "KudoOperator", "spec": spec}));
    }
    let steps: Vec<[&str; 1]> = names.iter().map(String::as_str).chain([last]).map(|task| [task]).collect();
    let steps: Vec<&[&str]> = steps.iter().map(<[&str; 1]>::as_slice).collect();
    json!({
        "operator": {"name": "op"}, "version": "1.2.3", "tasks": tasks,
        "plans": {"deploy": phase(json!("serial"), &steps)},
    })
}

fn child(name: &str) -> ObjectKey {
    key("kudo.dev/v1beta1", "Instance", name)
}

fn edit(server: &mut Server, key: &ObjectKey, patch: &Value) {
    let mut object = server.objects[key].clone();
    json_patch::merge(&mut object, patch);
    let uid = object["metadata"]["uid"].clone();
    server.put(object);
    server.objects.get_mut(key).unwrap()["metadata"]["uid"] = uid;
}

/// Runs passes until the run is over; each child is deployed after the pass that makes it.
fn finish(process: &mut Process<'_>, server: &mut Server) -> Result<EngineStep, Killed> {
    for _ in 0..20 {
        let step = process.pass(server)?;
        if step.state.status.status.is_terminal() {
            return Ok(step);
        }
        let new = server.objects.iter().filter(|(_, object)| object["status"].is_null());
        let new: Vec<ObjectKey> = new.map(|(key, _)| key.clone()).collect();
        for key in new {
            let status =
                json!({"status": {"planStatus": {"deploy": {"name": "deploy", "status": "COMPLETE"}}}});
            edit(server, &key, &status);
        }
    }
    panic!("the run does not end: {:#?}", process.saved);
}

/// Carries out plan deploy of a package; the inventory afterwards, and the last step.
fn run(spec: Value, server: &mut Server, inventory: &ObjectInventory) -> (ObjectInventory, EngineStep) {
    let fixture = Fixture::new(spec);
    let mut process = Process::new(fixture.run(), fixture.start());
    process.inventory = inventory.clone();
    let step = finish(&mut process, server).unwrap();
    (process.inventory, step)
}

/// Two children, `inst-db` and `cache`, and the inventory that lists them.
fn deployed() -> (Server, ObjectInventory) {
    let mut server = Server::default();
    let both = package(&[("db", None), ("cache", Some("cache"))], "nothing");
    let (inventory, step) = run(both, &mut server, &ObjectInventory::default());
    assert_eq!(step.state.status.status, Complete);
    assert_eq!(alive(&server), ["cache", "inst-db"]);
    server.ledger.clear();
    (server, inventory)
}

/// Names of the objects that are not being deleted.
fn alive(server: &Server) -> Vec<&str> {
    let there = server.objects.iter().filter(|(_, object)| object["metadata"]["deletionTimestamp"].is_null());
    there.map(|(key, _)| key.name.as_str()).collect()
}

fn listed(inventory: &ObjectInventory) -> Vec<&str> {
    inventory.of(CHILDREN).map(|child| child.name.as_str()).collect()
}

fn notes(step: &EngineStep) -> Vec<&str> {
    step.notes.iter().map(|note| note.message.as_str()).collect()
}

#[rstest]
#[case::none_is_dropped(&[("db", None), ("cache", Some("cache"))], &["cache", "inst-db"])]
#[case::one_is_dropped(&[("db", None)], &["inst-db"])]
#[case::one_is_named_otherwise(&[("db", None), ("cache", Some("store"))], &["inst-db", "store"])]
#[case::one_gets_a_name(&[("db", Some("db")), ("cache", Some("cache"))], &["cache", "db"])]
#[case::all_are_dropped(&[], &[])]
fn what_no_task_names_goes(#[case] children: &[(&str, Option<&str>)], #[case] left: &[&str]) {
    let (mut server, inventory) = deployed();
    let (inventory, step) = run(package(children, "nothing"), &mut server, &inventory);
    assert_eq!((step.state.status.status, alive(&server)), (Complete, left.to_vec()));
    assert_eq!(listed(&inventory), left);
}

#[test]
fn the_removal_is_told_and_comes_last() {
    let (mut server, inventory) = deployed();
    let fixture = Fixture::new(package(&[("db", None), ("store", None)], "nothing"));
    let mut process = Process::new(fixture.run(), fixture.start());
    process.inventory = inventory;
    process.watch = |_, step| {
        let told = notes(step);
        let goes = "Instance ns/cache is deleted: OperatorVersion ns/ov no longer installs it";
        assert!(told.is_empty() || told == [goes], "{told:?}");
        assert_eq!(
            told.is_empty(),
            !step
                .effects
                .concat()
                .iter()
                .any(|effect| { matches!(effect, interlock_core::effect::Effect::Delete { .. }) })
        );
    };
    drop(finish(&mut process, &mut server).unwrap());
    let expected = [Did::Create(child("inst-store")), Did::Delete(child("cache"))];
    assert_eq!(server.ledger, expected);
}

#[test]
fn what_a_plan_that_fails_leaves_is_kept_until_one_completes() {
    let (mut server, inventory) = deployed();
    let (inventory, step) = run(package(&[("db", None)], "fatal"), &mut server, &inventory);
    assert_eq!((step.state.status.status, alive(&server)), (FatalError, vec!["cache", "inst-db"]));
    assert_eq!(listed(&inventory), ["cache", "inst-db"]);
    drop(run(package(&[("db", None)], "nothing"), &mut server, &inventory));
    assert_eq!(alive(&server), ["inst-db"]);
}

/// A package with a plan `upgrade`: another plan of it, which a user runs after the upgrade has failed, removes nothing.
#[test]
fn another_plan_than_that_of_the_upgrade_removes_nothing() {
    let (mut server, inventory) = deployed();
    let mut spec = package(&[("db", None)], "nothing");
    spec["plans"]["upgrade"] = spec["plans"]["deploy"].clone();
    drop(run(spec, &mut server, &inventory));
    assert_eq!(alive(&server), ["cache", "inst-db"]);
}

#[test]
fn a_task_that_no_plan_reaches_keeps_its_child() {
    let (mut server, inventory) = deployed();
    let mut spec = package(&[("db", None), ("cache", Some("cache"))], "nothing");
    spec["plans"]["deploy"] = phase(json!("serial"), &[&["child-0"]]);
    drop(run(spec, &mut server, &inventory));
    assert_eq!(alive(&server), ["cache", "inst-db"]);
}

fn owners(uids: &[&str]) -> Value {
    let owner =
        |uid: &&str| json!({"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "o", "uid": uid});
    json!({"metadata": {"ownerReferences": uids.iter().map(owner).collect::<Vec<_>>()}})
}

#[rstest]
#[case::of_another(owners(&["uid-2"]), None)]
#[case::released(owners(&[]), None)]
#[case::of_two(owners(&["uid-1", "uid-2"]), Some("Instance o owns it as well"))]
#[case::to_be_kept(json!({"metadata": {"annotations": {meta::KEEP: ""}}}), Some("it is annotated interlock.dev/keep"))]
fn what_is_not_ours_alone_stays_and_is_told_once(#[case] patch: Value, #[case] why: Option<&str>) {
    let (mut server, inventory) = deployed();
    edit(&mut server, &child("cache"), &patch);
    let (inventory, step) = run(package(&[("db", None)], "nothing"), &mut server, &inventory);
    assert_eq!((&step.state.status.status, alive(&server)), (&Complete, vec!["cache", "inst-db"]));
    let told = notes(&step);
    assert_eq!(told.len(), why.iter().len(), "{told:?}");
    assert!(why.is_none_or(|why| told[0].contains("ns/cache is kept") && told[0].contains(why)), "{told:?}");
    let (_, step) = run(package(&[("db", None)], "nothing"), &mut server, &inventory);
    assert_eq!(notes(&step), Vec::<&str>::new());
}

/// One of two dropped children has lost its owner reference: the other one brings the first to mind.
#[test]
fn a_released_child_stays_beside_one_that_goes() {
    let (mut server, inventory) = deployed();
    edit(&mut server, &child("cache"), &owners(&[]));
    let (inventory, step) = run(package(&[], "nothing"), &mut server, &inventory);
    assert_eq!(alive(&server), ["cache"]);
    assert!(notes(&step)[0].contains("no owner reference of it names this Instance"), "{:?}", step.notes);
    assert_eq!(listed(&inventory), Vec::<&str>::new());
}

#[test]
fn a_child_that_a_template_may_apply_stays() {
    let (mut server, inventory) = deployed();
    let mut spec = package(&[("db", None)], "nothing");
    spec["templates"] = json!({"cache.yaml": "apiVersion: kudo.dev/v1beta1\nkind: Instance\n"});
    let (_, step) = run(spec, &mut server, &inventory);
    assert_eq!(alive(&server), ["cache", "inst-db"]);
    assert!(notes(&step)[0].contains("template cache.yaml of ns/ov may apply it"), "{:?}", step.notes);
}

/// What a template or a user has made is not listed.
#[test]
fn an_instance_that_no_task_has_made_stays() {
    let (mut server, _) = deployed();
    drop(run(package(&[("db", None)], "nothing"), &mut server, &ObjectInventory::default()));
    assert_eq!(alive(&server), ["cache", "inst-db"]);
}

#[rstest]
#[case::forbidden(403, "not allowed")]
#[case::denied(422, "a policy denied the request")]
fn a_refused_removal_ends_no_plan_and_is_tried_again_with_the_next(#[case] code: u16, #[case] message: &str) {
    let (mut server, inventory) = deployed();
    server.faults = VecDeque::from([Some(failure(code, message))]);
    let (inventory, step) = run(package(&[("db", None)], "nothing"), &mut server, &inventory);
    assert_eq!((&step.state.status.status, alive(&server)), (&Complete, vec!["cache", "inst-db"]));
    let told = notes(&step);
    assert!(told.len() == 1 && told[0].contains("ns/cache is kept") && told[0].contains(message), "{told:?}");
    drop(run(package(&[("db", None)], "nothing"), &mut server, &inventory));
    assert_eq!(alive(&server), ["inst-db"]);
}

#[rstest]
#[case::changed(409)]
#[case::overloaded(500)]
fn a_removal_that_fails_for_now_is_tried_again(#[case] code: u16) {
    let (mut server, inventory) = deployed();
    server.faults = VecDeque::from([Some(failure(code, "later"))]);
    let (_, step) = run(package(&[("db", None)], "nothing"), &mut server, &inventory);
    assert_eq!((step.state.status.status, alive(&server)), (Complete, vec!["inst-db"]));
}

/// Whatever the process had done when it was killed: a child that it has made is listed, and one that is dropped goes.
#[test]
fn a_process_that_is_killed_at_any_write_leaves_no_child_behind() {
    let [first, second] = [&[("db", None), ("cache", Some("cache"))][..], &[("db", None)][..]]
        .map(|children| Fixture::new(package(children, "nothing")));
    let mut deaths = 0;
    for lives in 1.. {
        let mut server = Server::default();
        let mut process = Process::new(first.run(), first.start());
        process.lives = lives;
        let whole = finish(&mut process, &mut server).is_ok();
        let inventory = process.inventory;
        let known = listed(&inventory);
        assert!(server.objects.keys().all(|key| known.contains(&key.name.as_str())), "{lives}: {known:?}");
        for lives in 1.. {
            let mut server = Server { objects: server.objects.clone(), ..Server::default() };
            let mut process = Process::new(second.run(), second.start());
            (process.inventory, process.lives) = (inventory.clone(), lives);
            let finished = finish(&mut process, &mut server).is_ok();
            deaths += usize::from(!finished);
            process.lives = usize::MAX;
            drop(finish(&mut process, &mut server).unwrap());
            assert_eq!(alive(&server), ["inst-db"], "killed at write {lives}");
            if finished {
                break;
            }
        }
        if whole {
            break;
        }
    }
    assert!(deaths > 8, "{deaths}");
}
