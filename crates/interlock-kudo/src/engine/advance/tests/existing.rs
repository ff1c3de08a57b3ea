//! Objects that others made: a run neither takes nor deletes them.

use interlock_core::api::interlock::Adoption;
use interlock_core::api::object::{ObjectKey, annotation};
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::ExecutionStatus::{Complete, FatalError};
use crate::api::HeldObject;
use crate::engine::advance::fixture::{config_map, made, one, package, phase};
use crate::engine::advance::sim::{Did, Fixture, Process, Server, manifest};

/// A ConfigMap that a user made.
fn foreign() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}, "data": {"k": "v"}})
}

/// The same with an annotation.
fn annotated(key: &str, value: &str) -> Value {
    let mut object = foreign();
    object["metadata"]["annotations"] = json!({key: value});
    object
}

/// The parts of an object that matter to a user.
fn essence(server: &Server, key: &ObjectKey) -> (Value, Value) {
    let object = &server.objects[key];
    (object["metadata"]["ownerReferences"].clone(), object["data"].clone())
}

#[test]
fn what_no_instance_made_is_not_taken() {
    let fixture = one("apply-ab");
    let mut server = Server::default();
    server.put(foreign());
    let before = server.objects.clone();
    let step = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
    let fatal = step.fatal.unwrap();
    assert_eq!((step.state.status.status, fatal.reason.as_str()), (FatalError, "ObjectNotAdopted"));
    assert!(fatal.message.contains("ConfigMap ns/a exists, and no Instance made it"), "{}", fatal.message);
    assert_eq!((server.objects, server.ledger), (before, vec![]), "nothing of the task is written");
}

/// One task names all that hold it; a run that takes them over owns them, and nothing else.
#[test]
fn a_run_takes_over_what_held_the_one_before() {
    let fixture = one("apply-ab");
    let with_uid = |name: &str, uid: &str| {
        let mut object = foreign();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(uid);
        object
    };
    let mut server = Server::default();
    server.put(with_uid("a", "uid-a"));
    server.put(with_uid("b", "uid-b"));
    let step = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, "ObjectNotAdopted");
    assert!(fatal.message.contains("the same holds for ConfigMap ns/a"), "{}", fatal.message);
    let names: Vec<&str> = step.held_by.iter().map(|held| held.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);

    let mut process = Process::new(fixture.run(), fixture.start());
    process.adopts = step.held_by.clone();
    let step = process.finish(&mut server).unwrap();
    assert_eq!((step.state.status.status, step.held_by.len()), (Complete, 0));
    for name in ["a", "b"] {
        assert_eq!(essence(&server, &config_map(name)).0[0]["uid"], "uid-1");
    }
}

/// Who agreed to the adoption has seen another object.
#[test]
fn an_object_that_was_made_anew_is_not_taken_over() {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server.put(foreign());
    let held = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap().held_by;
    let mut process = Process::new(fixture.run(), fixture.start());
    process.adopts =
        held.into_iter().map(|object| HeldObject { uid: "former".to_owned(), ..object }).collect();
    let step = process.finish(&mut server).unwrap();
    assert_eq!((step.state.status.status, server.ledger.len(), step.held_by.len()), (FatalError, 0, 1));
}

#[test]
fn what_is_made_between_look_and_write_is_not_taken() {
    let fixture = one("apply-a");
    let mut server = Server { rival: Some(foreign()), ..Server::default() };
    let fatal = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap().fatal.unwrap();
    assert_eq!(fatal.reason, "ObjectNotAdopted");
    assert_eq!(server.ledger, []);
}

#[rstest]
#[case::apply("apply-a", FatalError)]
#[case::delete("delete-a", Complete)]
fn what_is_made_anew_under_the_same_name_is_judged_anew(
    #[case] task: &str,
    #[case] status: crate::api::ExecutionStatus,
) {
    let fixture = one(task);
    let mut server = Server::default();
    server.put(made("v1", "ConfigMap", "a"));
    server.rival = Some(foreign());
    let step = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
    assert_eq!((step.state.status.status, server.ledger.as_slice()), (status, &[][..]));
    assert_eq!(essence(&server, &config_map("a")), (Value::Null, json!({"k": "v"})));
}

#[rstest]
#[case::delete(one("delete-a"))]
#[case::toggle(one("toggle").with("ON", "false"))]
fn what_others_made_is_reported_and_not_deleted(#[case] fixture: Fixture) {
    let others = [
        (foreign(), "no Instance made it"),
        (annotated("interlock.dev/adopted-by", "uid-1"), "no Instance made it"),
        (annotated("interlock.dev/adopt", "other"), "no Instance made it"),
    ];
    for (object, why) in others {
        for adoption in Adoption::ALL {
            let mut server = Server::default();
            server.put(object.clone());
            let mut process = Process::new(fixture.run(), fixture.start());
            process.adoption = adoption;
            let step = process.finish(&mut server).unwrap();
            let said: Vec<&str> = step.notes.iter().map(|note| note.message.as_str()).collect();
            let text =
                format!("ConfigMap ns/a is kept: {why}; delete it yourself if it is not needed any more");
            assert_eq!((step.state.status.status, said.as_slice()), (Complete, &[text.as_str()][..]));
            assert_eq!(server.ledger, []);
        }
    }
}

/// With `Allow` a run writes an object of others without owning it: it outlives every task.
#[test]
fn an_adopted_object_is_written_and_never_owned_or_deleted() {
    let fixture = Fixture::new(package(phase(json!("serial"), &[&["apply-a"], &["delete-a"], &["apply-a"]])));
    let mut server = Server::default();
    server.put(annotated("example.com/mine", "yes"));
    let mut process = Process::new(fixture.run(), fixture.start());
    process.adoption = Adoption::Allow;
    let step = process.finish(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    let a = config_map("a");
    assert_eq!(server.ledger, [Did::Patch(a.clone()), Did::Patch(a.clone())]);
    assert_eq!(essence(&server, &a), (Value::Null, json!({"k": "v"})));
    let object = &server.objects[&a];
    assert_eq!(annotation(object, "interlock.dev/adopted-by"), Some("uid-1"));
    assert_eq!(annotation(object, "example.com/mine"), Some("yes"));
    assert_eq!(annotation(object, "kudo.dev/plan"), Some("deploy"));
}

/// The object's owner hands it over with an annotation: then it is the Instance's as a whole.
#[test]
fn an_object_that_was_handed_over_is_owned_and_deleted() {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server.put(annotated("interlock.dev/adopt", "inst"));
    let mut process = Process::new(fixture.run(), fixture.start());
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
    assert_eq!(essence(&server, &config_map("a")).0[0]["uid"], "uid-1");
    let fixture = one("delete-a");
    let step = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
    assert_eq!((step.state.status.status, server.objects.len()), (Complete, 0));
}

/// A package that renders the annotation does not hand over what a user owns.
#[test]
fn a_package_cannot_hand_an_object_over_to_itself() {
    let mut spec = package(phase(json!("serial"), &[&["apply-a"], &["apply-a"]]));
    let annotations = "  annotations:\n    interlock.dev/adopt: inst\n";
    spec["templates"]["a.yaml"] = format!("{}{annotations}", manifest("v1", "ConfigMap", "a")).into();
    let fixture = Fixture::new(spec);
    let mut server = Server::default();
    server.put(foreign());
    let mut process = Process::new(fixture.run(), fixture.start());
    process.adoption = Adoption::Allow;
    let _ = process.finish(&mut server).unwrap();
    let object = &server.objects[&config_map("a")];
    assert_eq!(annotation(object, "interlock.dev/adopt"), None);
    assert_eq!(essence(&server, &config_map("a")).0, Value::Null);
}

/// A package whose plan has this task on one ClusterRole, for an Instance of that uid.
fn on_a_role(task: &str, name: &str, uid: &str) -> Fixture {
    let mut spec = package(phase(json!("serial"), &[&[task]]));
    spec["templates"]["a.yaml"] = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "a").into();
    let mut fixture = Fixture::new(spec);
    fixture.instance.name = name.to_owned();
    fixture.instance.uid = uid.to_owned();
    fixture
}

#[track_caller]
fn carry_out(server: &mut Server, task: &str, name: &str, uid: &str) {
    let fixture = on_a_role(task, name, uid);
    let step = Process::new(fixture.run(), fixture.start()).finish(server).unwrap();
    assert_eq!(step.state.status.status, Complete, "{step:#?}");
}

#[rstest]
#[case::the_maker_first(["uid-1", "uid-2"])]
#[case::the_maker_last(["uid-2", "uid-1"])]
fn a_cluster_scoped_object_goes_with_the_last_that_applies_it(#[case] order: [&str; 2]) {
    let mut server = Server::default();
    carry_out(&mut server, "apply-a", "one", "uid-1");
    carry_out(&mut server, "apply-a", "two", "uid-2");
    carry_out(&mut server, "apply-a", "one", "uid-1");
    let [first, last] = order;
    for _ in 0..2 {
        carry_out(&mut server, "delete-a", "x", first);
        assert_eq!(server.objects.len(), 1, "the other applies it");
    }
    carry_out(&mut server, "delete-a", "x", last);
    assert_eq!(server.objects.len(), 0);
}

#[test]
fn a_cluster_scoped_object_of_others_is_updated_and_stays() {
    let mut server = Server::default();
    server.put(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"},
    }));
    for (name, uid) in [("one", "uid-1"), ("two", "uid-2")] {
        carry_out(&mut server, "apply-a", name, uid);
        carry_out(&mut server, "delete-a", name, uid);
    }
    let object = server.objects.values().next().expect("it is still there");
    assert_eq!(annotation(object, "interlock.dev/adopted-by"), Some("uid-1"));
    assert_eq!(object["metadata"]["labels"].get("interlock.dev/instance-uid"), None);
}
