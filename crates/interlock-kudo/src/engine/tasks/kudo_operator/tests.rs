//! KudoOperator tasks: what the child is like, how its plan ends the task, and a process that dies at each write.

use interlock_core::api::object::{NamespacedName, ObjectKey};
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::ExecutionStatus;
use crate::engine::advance::advance;
use crate::engine::advance::fixture::key;
use crate::engine::advance::sim::{Did, Fixture, Process, Server, failure};
use crate::engine::lookup::{EngineStep, Observed};
use crate::engine::manifests;
use crate::package::Package;
use crate::package::dependencies::DependencyProblem;
use crate::package::time_limits::Words;

const PARAMETERS: &str = "NODES: {{ .Params.SIZE }}\nSERVERS: [a, b]\nOF: {{ .Name }}.{{ .Namespace }}\n";

/// A plan that makes a child, and then a ConfigMap.
fn package(task: &Value, parameters: &str) -> Value {
    json!({
        "operator": {"name": "op"}, "version": "1.0.0",
        "parameters": [{"name": "SIZE", "default": "3"}],
        "templates": {
            "zoo.yaml": parameters,
            "after.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: after}\n",
        },
        "tasks": [
            {"name": "zoo", "kind": "KudoOperator", "spec": task},
            {"name": "after", "kind": "Apply", "spec": {"resources": ["after.yaml"]}},
        ],
        "plans": {"deploy": {"strategy": "serial", "phases": [{"name": "main", "strategy": "serial", "steps": [
            {"name": "child", "tasks": ["zoo"]}, {"name": "then", "tasks": ["after"]},
        ]}]}},
    })
}

fn task() -> Value {
    json!({"package": "zoo", "operatorVersion": "0.3.1", "appVersion": "3.4", "parameterFile": "zoo.yaml"})
}

fn with(field: &str, value: Value) -> Value {
    let mut task = task();
    task[field] = value;
    task
}

fn fixture() -> Fixture {
    Fixture::new(package(&task(), PARAMETERS))
}

fn child() -> ObjectKey {
    key("kudo.dev/v1beta1", "Instance", "inst-zoo")
}

fn after() -> ObjectKey {
    key("v1", "ConfigMap", "after")
}

/// Changes the child as others do: its admission, its controller, a user.
fn change(server: &mut Server, patch: &Value) {
    let mut object = server.objects[&child()].clone();
    json_patch::merge(&mut object, patch);
    let uid = object["metadata"]["uid"].clone();
    server.put(object);
    server.objects.get_mut(&child()).unwrap()["metadata"]["uid"] = uid;
}

fn ended(status: &str) -> Value {
    json!({"status": {"planStatus": {"deploy": {"name": "deploy", "status": status}}}})
}

fn pass(fixture: &Fixture, server: &mut Server) -> EngineStep {
    Process::new(fixture.run(), fixture.start()).pass(server).unwrap()
}

/// The child that a task makes.
#[track_caller]
fn made(fixture: &Fixture) -> Value {
    let mut server = Server::default();
    let step = pass(fixture, &mut server);
    assert_eq!(step.fatal, None);
    server.objects.remove(&child()).expect("the child")
}

#[test]
fn the_child_is_as_kudo_makes_it() {
    let child = made(&fixture());
    let metadata = &child["metadata"];
    assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("inst-zoo"), &json!("ns")));
    assert_eq!(metadata["labels"]["kudo.dev/operator"], "zoo");
    assert_eq!(metadata["labels"]["kudo.dev/instance"], "inst");
    let owner = &metadata["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"], &owner["uid"]),
        (&json!("Instance"), &json!("inst"), &json!("uid-1"))
    );
    let parameters = json!({"NODES": "3", "SERVERS": "- a\n- b\n", "OF": "inst.ns"});
    assert_eq!(
        child["spec"],
        json!({"operatorVersion": {"name": "zoo-3.4-0.3.1"}, "parameters": parameters})
    );
}

#[rstest]
#[case::without_an_app_version("appVersion", json!(""), json!({"name": "zoo-0.3.1"}))]
#[case::without_parameters("parameterFile", json!(null), json!({"name": "zoo-3.4-0.3.1"}))]
fn fields_may_be_absent(#[case] field: &str, #[case] value: Value, #[case] reference: Value) {
    let child = made(&Fixture::new(package(&with(field, value), PARAMETERS)));
    assert_eq!(child["spec"]["operatorVersion"], reference);
    assert_eq!(child["spec"]["parameters"] == json!({}), field == "parameterFile");
}

/// A package of another namespace has those that it installs beside it.
#[test]
fn the_version_of_the_child_is_beside_that_of_its_parent() {
    let mut fixture = fixture();
    fixture.package = fixture.package.under(NamespacedName::new("catalog", "ov"), Words::default());
    let reference = json!({"name": "zoo-3.4-0.3.1", "namespace": "catalog"});
    assert_eq!(made(&fixture)["spec"]["operatorVersion"], reference);
}

#[test]
fn a_child_may_have_a_name_of_its_own() {
    let fixture = Fixture::new(package(&with("instanceName", json!("keeper")), PARAMETERS));
    let mut server = Server::default();
    drop(pass(&fixture, &mut server));
    assert_eq!(server.ledger, [Did::Create(key("kudo.dev/v1beta1", "Instance", "keeper"))]);
}

#[rstest]
#[case::a_list("- a\n", "parameter file zoo.yaml is no mapping of names to values, such as `REPLICAS: 3`")]
#[case::a_null(
    "A:\n",
    "parameter file zoo.yaml has null for parameter A; write \"\" for an empty value, or leave it out"
)]
#[case::no_yaml("{\n", "parsing YAML from zoo.yaml failed: ")]
#[case::of_no_plan("A: {{ .PlanName }}\n", "error expanding template zoo.yaml: error rendering template: ")]
#[case::large("A: {{ repeat 300000 \"x\" }}\n", "the child Instance inst-zoo has 300")]
fn parameters_that_cannot_be(#[case] parameters: &str, #[case] cause: &str) {
    fails(&Fixture::new(package(&task(), parameters)), cause);
}

#[rstest]
#[case::itself("inst", "the child would be Instance inst itself; give it another instanceName")]
#[case::a_path("../x", "metadata.name \"../x\" of the Instance ")]
fn names_that_cannot_be(#[case] name: &str, #[case] cause: &str) {
    fails(&Fixture::new(package(&with("instanceName", json!(name)), PARAMETERS)), cause);
}

#[track_caller]
fn fails(fixture: &Fixture, cause: &str) {
    let fatal = pass(fixture, &mut Server::default()).fatal.expect("the run fails");
    assert_eq!(fatal.reason, "TaskRenderingError");
    let text =
        format!("Error during execution: fatal error: ns/inst failed in deploy.main.child.zoo: {cause}");
    assert!(fatal.message.starts_with(&text), "{}", fatal.message);
}

/// State of the child -> why the task waits, or the end of its run.
#[rstest]
#[case::not_begun(json!({}), Err("has not run a plan yet"))]
#[case::scheduled(json!({"spec": {"planExecution": {"planName": "deploy", "status": "NEVER_RUN"}}}), Err("active plan is in state IN_PROGRESS"))]
#[case::running(ended("IN_PROGRESS"), Err("active plan is in state IN_PROGRESS"))]
#[case::done(ended("COMPLETE"), Ok(ExecutionStatus::Complete))]
#[case::failed(ended("FATAL_ERROR"), Ok(ExecutionStatus::FatalError))]
#[case::deleted(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), Err("is being deleted"))]
fn the_plan_of_the_child_decides(#[case] state: Value, #[case] expected: Result<ExecutionStatus, &str>) {
    let (fixture, mut server) = (fixture(), Server::default());
    drop(pass(&fixture, &mut server));
    change(&mut server, &state);
    let step = pass(&fixture, &mut server);
    match expected {
        Ok(status) => {
            assert_eq!(step.state.status.status, status, "{:?}", step.waiting);
            let made = server.objects.contains_key(&after());
            assert_eq!(made, status == ExecutionStatus::Complete, "the next step");
        }
        Err(why) => {
            assert!(step.waiting.iter().any(|waits| waits.contains(why)), "{:?}", step.waiting);
            assert!(!server.objects.contains_key(&after()));
        }
    }
}

#[test]
fn a_child_that_failed_is_named() {
    let (fixture, mut server) = (fixture(), Server::default());
    drop(pass(&fixture, &mut server));
    change(&mut server, &ended("FATAL_ERROR"));
    let fatal = pass(&fixture, &mut server).fatal.unwrap();
    assert_eq!(fatal.reason, "FailedTerminalStateError");
    assert!(fatal.message.contains("instance ns/inst-zoo plan deploy ended with FATAL_ERROR"), "{fatal:?}");
}

/// A change of what the parent gives is written onto the child; what others have set there stays.
#[test]
fn an_update_reaches_the_child() {
    let (first, mut server) = (fixture(), Server::default());
    drop(pass(&first, &mut server));
    change(&mut server, &json!({"spec": {"parameters": {"OTHER": "theirs"}}}));
    change(&mut server, &ended("COMPLETE"));
    server.ledger.clear();
    let second =
        Fixture::new(package(&with("operatorVersion", json!("0.3.2")), "NODES: {{ .Params.SIZE }}\n"))
            .with("SIZE", "5");
    let step = pass(&second, &mut server);
    assert_eq!(server.ledger[0], Did::Patch(child()), "{:?}", step.fatal);
    let spec = &server.objects[&child()]["spec"];
    assert_eq!(spec["operatorVersion"]["name"], "zoo-3.4-0.3.2");
    assert_eq!(spec["parameters"], json!({"NODES": "5", "OTHER": "theirs"}));
}

/// A child that is locked, or whose version is not there yet, is written later.
#[rstest]
#[case::locked("admission webhook \"w\" denied the request: the spec is frozen [plan-running]")]
#[case::without_its_version(
    "denied the request: OperatorVersion ns/zoo-3.4-0.3.1 is not found [version-missing]"
)]
fn a_denial_for_now_is_waited_for(#[case] message: &str) {
    let (fixture, mut server) = (fixture(), Server::default());
    server.faults.push_back(Some(failure(422, message)));
    let step = pass(&fixture, &mut server);
    assert_eq!(step.state.status.status, ExecutionStatus::InProgress);
    assert!(step.failure.unwrap().message.contains(message));
    drop(pass(&fixture, &mut server));
    assert_eq!(server.ledger, [Did::Create(child())]);
}

#[test]
fn a_child_that_exists_and_is_of_nobody_is_left_alone() {
    let (fixture, mut server) = (fixture(), Server::default());
    server.put(json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "inst-zoo", "namespace": "ns"},
    }));
    let fatal = pass(&fixture, &mut server).fatal.unwrap();
    assert_eq!(fatal.reason, "ObjectNotAdopted");
    assert_eq!(server.ledger, []);
}

/// KUDO's manager has made the child: without our annotation, and its owner is not its controller.
#[test]
fn a_child_that_kudo_made_is_carried_on() {
    let (fixture, mut server) = (fixture(), Server::default());
    let owner = json!({"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "inst", "uid": "uid-1"});
    server.put(json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {
            "name": "inst-zoo", "namespace": "ns", "labels": {"kudo.dev/operator": "zoo"},
            "ownerReferences": [owner.clone()],
        },
        "spec": {"operatorVersion": {"name": "zoo-3.4-0.3.1"}, "parameters": {"NODES": "1"}},
        "status": {"planStatus": {"deploy": {"name": "deploy", "status": "COMPLETE"}}},
    }));
    let step = pass(&fixture, &mut server);
    assert_eq!(step.state.status.status, ExecutionStatus::Complete, "{:?}", step.fatal);
    let found = &server.objects[&child()];
    assert_eq!(found["spec"]["parameters"]["NODES"], "3");
    assert_eq!(found["metadata"]["ownerReferences"], json!([owner]));
}

/// The run ends as it does without a death, and the child is made once.
#[test]
fn a_process_that_dies_at_a_write_makes_the_child_once() {
    let mut deaths = 0;
    for lives in 1.. {
        let (fixture, mut server) = (fixture(), Server::default());
        let mut process = Process::new(fixture.run(), fixture.start());
        process.lives = lives;
        let mut died = finish(&mut process, &mut server).is_err();
        deaths += usize::from(died);
        let over = !died;
        while died {
            process.lives = usize::MAX;
            died = finish(&mut process, &mut server).is_err();
        }
        assert_eq!(process.saved.status.status, ExecutionStatus::Complete);
        let created = server.ledger.iter().filter(|did| **did == Did::Create(child())).count();
        assert_eq!(created, 1, "{lives} lives: {:?}", server.ledger);
        if over {
            break;
        }
    }
    assert!(deaths > 2, "{deaths}");
}

/// Runs passes until the run is over; the plan of the child ends after the first.
fn finish(process: &mut Process<'_>, server: &mut Server) -> Result<(), crate::engine::advance::sim::Killed> {
    for _ in 0..20 {
        if process.pass(server)?.state.status.status.is_terminal() {
            return Ok(());
        }
        if server.objects[&child()]["status"].is_null() {
            change(server, &ended("COMPLETE"));
        }
    }
    panic!("the run does not end: {:#?}", process.saved);
}

#[test]
fn packages_in_a_circle_end_the_run_before_anything_is_made() {
    let fixture = fixture();
    let circle = DependencyProblem::Circle(vec!["ov".to_owned(), "zoo".to_owned(), "ov".to_owned()]);
    let observed = Observed { dependencies: Some(circle), ..Observed::default() };
    let step = advance(&fixture.run(), fixture.start(), &observed);
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, "CircularDependency");
    let text = "ns/inst fatal error: OperatorVersion ns/ov cannot be carried out: it installs packages in a circle: ov -> zoo -> ov";
    assert_eq!(fatal.message, format!("Error during execution: {text}"));
    assert_eq!(step.state.status.message.as_deref(), Some(text));
    assert_eq!((step.needs.is_empty(), step.effects.len()), (true, 0));
}

#[test]
fn the_child_is_among_what_a_plan_renders() {
    let fixture = fixture();
    let tasks = manifests::of_plan(&fixture.run()).unwrap();
    let rendered = &tasks[0].applied[0];
    assert_eq!((rendered.template.as_str(), &rendered.object["kind"]), ("zoo.yaml", &json!("Instance")));
    assert_eq!(rendered.object["metadata"]["labels"]["kudo.dev/operator"], "zoo");
    assert_eq!(tasks[1].applied.len(), 1);
}

#[test]
fn a_plan_that_makes_a_child_is_known() {
    let spec = serde_json::from_value(package(&task(), PARAMETERS)).unwrap();
    let package = Package::new(NamespacedName::new("ns", "ov"), spec);
    assert!(crate::package::dependencies::in_plan(&package, "deploy"));
    assert!(!crate::package::dependencies::in_plan(&package, "other"));
}
