//! Tables of the engine as a whole, on the API server of [`super::sim`].

use rstest::rstest;
use serde_json::{Value, json};

use super::advance;
use super::fixture::{config_map, key, one, package, phase, phase_named};
use super::sim::{Did, Fixture, Process, Server, failure, manifest};
use crate::api::kudo::ExecutionStatus::{self, Complete, Error, FatalError, InProgress};
use crate::api::object::{Gvk, ObjectKey, annotation, meta_str};
use crate::effect::{ApiFailure, ChildWrite};
use crate::plan::observe::{Observed, PlanState, Seen, Served, Step};
use crate::plan::run::Run;

fn steps(state: &PlanState) -> Vec<(ExecutionStatus, String)> {
    let phases = state.status.phases.iter().flatten();
    let steps = phases.flat_map(|p| p.steps.iter().flatten());
    steps.map(|s| (s.status.clone(), s.message.clone().unwrap_or_default())).collect()
}

fn statuses(state: &PlanState) -> Vec<ExecutionStatus> {
    steps(state).into_iter().map(|(status, _)| status).collect()
}

/// Everything that is served, with nothing there.
fn empty(keys: &[ObjectKey]) -> Observed {
    let mut observed = Observed::default();
    for key in keys {
        observed.kinds.insert(key.gvk.clone(), Served::Namespaced);
        observed.objects.insert(key.clone(), Seen::Absent);
    }
    observed
}

fn writes(step: &Step) -> Vec<Vec<ObjectKey>> {
    step.effects.iter().map(|lane| lane.iter().map(|w| w.key().unwrap()).collect()).collect()
}

#[rstest]
#[case::serial(json!("serial"), vec![vec![config_map("a")]])]
#[case::parallel(json!("parallel"), vec![vec![config_map("a")], vec![config_map("b")]])]
#[case::absent_is_parallel(json!(null), vec![vec![config_map("a")], vec![config_map("b")]])]
#[case::other_words_are_parallel(json!("Serial"), vec![vec![config_map("a")], vec![config_map("b")]])]
fn strategies_of_phases(#[case] strategy: Value, #[case] expected: Vec<Vec<ObjectKey>>) {
    let fixture = Fixture::new(package(phase(strategy, &[&["apply-a"], &["apply-b"]])));
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a"), config_map("b")]));
    assert_eq!(writes(&step), expected);
    assert_eq!(step.state.status.status, InProgress);
}

#[rstest]
#[case::serial(json!("serial"), 1)]
#[case::parallel(json!("parallel"), 2)]
#[case::absent_is_parallel(json!(null), 2)]
fn strategies_of_plans(#[case] strategy: Value, #[case] lanes: usize) {
    let phases = [
        phase_named("one", json!("serial"), &[&["apply-a"]]),
        phase_named("two", json!("serial"), &[&["apply-b"]]),
    ];
    let fixture = Fixture::new(package(json!({"strategy": strategy, "phases": phases})));
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a"), config_map("b")]));
    assert_eq!(step.effects.len(), lanes);
}

#[rstest]
#[case::no_phases(json!({}))]
#[case::no_steps(json!({"phases": [{"name": "main"}]}))]
#[case::no_tasks(phase(json!("serial"), &[&[], &[]]))]
fn what_holds_nothing_is_complete_at_once(#[case] plan: Value) {
    let fixture = Fixture::new(package(plan));
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    assert_eq!(step.state.status.status, Complete);
    assert!(statuses(&step.state).iter().all(|s| *s == Complete));
}

#[test]
fn objects_are_written_in_the_order_of_the_list() {
    let fixture = one("apply-ab");
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a"), config_map("b")]));
    assert_eq!(writes(&step), [vec![config_map("b"), config_map("a")]]);
}

#[test]
fn objects_are_made_the_instances() {
    let fixture = one("apply-a");
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a")]));
    let [lane] = step.effects.as_slice() else { panic!("{step:?}") };
    let [ChildWrite::Create { object }] = lane.as_slice() else { panic!("{lane:?}") };
    let metadata = json!({
        "name": "a", "namespace": "ns",
        "labels": {"heritage": "kudo", "kudo.dev/operator": "op", "kudo.dev/instance": "inst"},
        "annotations": {
            "kudo.dev/plan": "deploy", "kudo.dev/phase": "main", "kudo.dev/step": "s0",
            "kudo.dev/last-plan-execution-uid": "run-1",
            "kudo.dev/last-applied-configuration": annotation(object, "kudo.dev/last-applied-configuration").unwrap(),
        },
        "ownerReferences": [{
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "inst", "uid": "uid-1",
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    assert_eq!(*object, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
}

#[rstest]
#[case::bad_gateway(502)]
#[case::no_answer(0)]
#[case::bad_request(400)]
#[case::unauthorised(401)]
#[case::forbidden(403)]
#[case::timeout(408)]
#[case::namespace_not_there(404)]
#[case::too_many(429)]
fn transient_failures_are_tried_again(#[case] code: u16) {
    let fixture = Fixture::new(package(phase(json!("parallel"), &[&["apply-a"], &["apply-b"]])));
    let mut server = Server::default();
    server.faults.push_back(Some(failure(code, "no luck")));
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    let message = "A transient error when executing task deploy.main.s0.apply-a. Will retry. no luck";
    assert_eq!(steps(&step.state), [(Error, message.to_owned()), (Complete, String::new())]);
    assert_eq!(step.stalled.as_deref(), Some(message));
    assert_eq!(step.state.status.status, InProgress);
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    assert!(steps(&step.state).iter().all(|s| *s == (Complete, String::new())));
    assert_eq!(step.stalled, None);
}

#[rstest]
#[case::method(405, false, "ObjectRefused")]
#[case::too_large(413, false, "ObjectRefused")]
#[case::media_type(415, false, "ObjectRefused")]
#[case::invalid(422, false, "ObjectRefused")]
#[case::namespace_goes(403, true, "NamespaceTerminating")]
fn permanent_failures_end_the_run(
    #[case] code: u16,
    #[case] namespace_terminating: bool,
    #[case] reason: &str,
) {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server.faults.push_back(Some(ApiFailure { namespace_terminating, ..failure(code, "spec: Forbidden") }));
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    let message =
        "Error during execution: fatal error: ns/inst failed in deploy.main.s0.apply-a: spec: Forbidden";
    let fatal = step.fatal.unwrap();
    assert_eq!((fatal.reason.as_str(), fatal.message.as_str()), (reason, message));
    assert_eq!(steps(&step.state), [(FatalError, message.to_owned())]);
    assert_eq!((step.state.status.status, step.state.status.message), (FatalError, None));
}

#[test]
fn a_failed_patch_names_the_object() {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server
        .put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}}));
    server.faults.push_back(Some(failure(500, "boom")));
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    let message = "A transient error when executing task deploy.main.s0.apply-a. Will retry. failed to patch a v1, \
                   Kind=ConfigMap ns/a: failed to execute patch: boom";
    assert_eq!(step.stalled.as_deref(), Some(message));
}

#[rstest]
#[case::modified(409)]
#[case::gone(404)]
fn a_stale_write_is_looked_at_again(#[case] code: u16) {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server
        .put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}}));
    let state = {
        let mut observed = empty(&[config_map("a")]);
        observed.objects.insert(config_map("a"), server.look(&config_map("a")));
        observed.failures.insert(config_map("a"), failure(code, "stale"));
        let step = advance(&fixture.run(), fixture.start(), &observed);
        assert_eq!(step.needs.len(), 1);
        assert_eq!((step.effects.len(), step.stalled), (0, None));
        step.state
    };
    let step = Process::new(fixture.run(), state).pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
}

const BUILD: &str = "ns/inst fatal error:  failed to build task deploy.main.s0.";
const FAILED: &str = "Error during execution: fatal error: ns/inst failed in deploy.main.s0.";

#[rstest]
#[case("nope", "UnknownTaskName", "ns/inst fatal error:  missing task deploy.main.s0.nope".to_owned())]
#[case("odd", "TaskBuildError", format!("{BUILD}odd: unknown task kind Odd"))]
#[case("empty", "TaskBuildError", format!("{BUILD}empty: task validation error: apply task 'empty' has an empty resource list. if that's what you need, use a Dummy task instead"))]
#[case("pipe", "TaskBuildError", format!("{BUILD}pipe: task 'pipe' is of kind Pipe, which is not supported yet"))]
#[case("child", "TaskBuildError", format!("{BUILD}child: task 'child' is of kind KudoOperator, which is not supported yet"))]
#[case("fatal", "DummyTaskError", format!("{FAILED}fatal: dummy error"))]
#[case("lost", "TaskRenderingError", format!("{FAILED}lost: error finding resource named lost.yaml"))]
#[case("toggle-lost", "ToggleTaskError", format!("{FAILED}toggle-lost: no value for parameter LOST found"))]
#[case("toggle-list", "ToggleTaskError", format!("{FAILED}toggle-list: value of parameter LIST isn't a string"))]
fn fatal_texts(#[case] task: &str, #[case] reason: &str, #[case] text: String) {
    let fixture = one(task);
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    assert_eq!(steps(&step.state), [(FatalError, text.clone())]);
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, reason);
    let event = if text.starts_with("Error") { text } else { format!("Error during execution: {text}") };
    assert_eq!(fatal.message, event);
    assert_eq!((step.state.status.status, step.effects.len()), (FatalError, 0));
}

#[test]
fn a_template_that_does_not_render_is_fatal() {
    let fixture = one("broken");
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, "TaskRenderingError");
    let text = format!("{FAILED}broken: error expanding template broken.yaml: error rendering template: ");
    assert!(fatal.message.starts_with(&text), "{}", fatal.message);
}

#[rstest]
#[case::toggle(
    "yes",
    "ToggleTaskError",
    "could not parse value of parameter ON: strconv.ParseBool: parsing \"***\": invalid syntax"
)]
#[case::empty(
    "",
    "ToggleTaskError",
    "could not parse value of parameter ON: strconv.ParseBool: parsing \"***\": invalid syntax"
)]
fn toggles_need_a_boolean(#[case] value: &'static str, #[case] reason: &str, #[case] cause: &str) {
    let fixture = one("toggle").with("ON", value);
    let fatal = advance(&fixture.run(), fixture.start(), &Observed::default()).fatal.unwrap();
    assert_eq!((fatal.reason.as_str(), fatal.message), (reason, format!("{FAILED}toggle: {cause}")));
}

#[rstest]
#[case::on("T", true)]
#[case::off("0", false)]
fn a_toggle_applies_or_deletes(#[case] value: &'static str, #[case] present: bool) {
    let fixture = one("toggle").with("ON", value);
    for there in [false, true] {
        let mut server = Server::default();
        if there {
            server.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}}));
        }
        let step = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
        assert_eq!(step.state.status.status, Complete);
        assert_eq!(server.objects.contains_key(&config_map("a")), present);
    }
}

#[test]
fn a_bad_value_ends_the_run_with_a_text() {
    let fixture = one("nothing").with("LIST", "secret: 1");
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    let message = step.state.status.message.unwrap();
    assert_eq!(step.fatal.unwrap().reason, "InvalidParams");
    assert!(
        message
            .starts_with("ns/inst fatal error: parameter \"LIST\" has an invalid value: type is \"array\"")
    );
    assert!(!message.contains("secret"), "{message}");
}

#[rstest]
#[case::wait("wait", InProgress)]
#[case::done("nothing", Complete)]
#[case::error("error", Error)]
fn dummies(#[case] task: &str, #[case] expected: ExecutionStatus) {
    let fixture = one(task);
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    assert_eq!(statuses(&step.state), [expected]);
}

#[test]
fn a_lost_plan_ends_the_run() {
    let fixture = one("nothing");
    let run = Run { plan: "gone", ..fixture.run() };
    let step = advance(&run, PlanState::start(&fixture.package, "gone", "run-1"), &Observed::default());
    assert_eq!(
        step.state.status.message.as_deref(),
        Some("ns/inst fatal error: could not find required plan: gone")
    );
    assert_eq!(step.fatal.unwrap().reason, "InvalidPlan");
}

#[rstest]
#[case::phase(true, "MissingPhaseStatus", "ns/inst fatal error:  missing phase status: deploy.main")]
#[case::step(false, "MissingStepStatus", "ns/inst fatal error:  missing step status: deploy.main.s0")]
fn a_lost_record_ends_the_run(#[case] phase: bool, #[case] reason: &str, #[case] text: &str) {
    let fixture = one("nothing");
    let mut state = fixture.start();
    let phases = state.status.phases.as_mut().unwrap();
    if phase {
        phases.clear();
    } else {
        phases[0].steps = None;
    }
    let step = advance(&fixture.run(), state, &Observed::default());
    assert_eq!(step.fatal.unwrap().reason, reason);
    let status = step.state.status;
    let message = if phase { status.message } else { status.phases.unwrap()[0].message.clone() };
    assert_eq!(message.as_deref(), Some(text));
}

#[test]
fn a_failed_step_of_a_running_plan_is_not_taken_again() {
    let fixture = one("apply-a");
    let mut state = fixture.start();
    state.status.phases.as_mut().unwrap()[0].steps.as_mut().unwrap()[0].status = FatalError;
    let step = advance(&fixture.run(), state, &Observed::default());
    assert_eq!((step.state.status.status, step.needs.len()), (FatalError, 0));
}

#[test]
fn finished_tasks_are_not_done_again() {
    let fixture = Fixture::new(package(phase(json!("serial"), &[&["apply-a", "wait"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.state.done["main/s0"].iter().collect::<Vec<_>>(), ["apply-a"]);
    server.objects.clear();
    let _ = process.pass(&mut server).unwrap();
    assert_eq!(server.ledger, [Did::Create(config_map("a"))]);
}

#[test]
fn a_job_that_failed_ends_the_run() {
    let fixture = one("apply-j");
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.waiting, ["job \"j\" still running or failed"]);
    let job = server.objects.get_mut(&key("batch/v1", "Job", "j")).unwrap();
    job["status"] = json!({"conditions": [{"type": "Failed", "status": "True", "message": "limit"}]});
    let fatal = process.pass(&mut server).unwrap().fatal.unwrap();
    assert_eq!(fatal.reason, "FailedTerminalStateError");
    let text = format!(
        "{FAILED}apply-j: object ns/j is NOT healthy: fatal error: HealthUtil: job \"j\" has failed terminally: limit"
    );
    assert_eq!(fatal.message, text);
}

#[test]
fn deletion_is_waited_for() {
    let fixture = one("delete-j");
    let mut server = Server::default();
    server
        .put(json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}));
    let mut process = Process::new(fixture.run(), fixture.start());
    for _ in 0..2 {
        let step = process.pass(&mut server).unwrap();
        assert_eq!(
            (step.state.status.status, step.waiting),
            (InProgress, vec!["Job ns/j is being deleted".to_owned()])
        );
    }
    server.tick();
    assert_eq!(process.pass(&mut server).unwrap().state.status.status, Complete);
    assert_eq!(server.ledger, [Did::Delete(key("batch/v1", "Job", "j"))]);
}

#[rstest]
#[case::claim("v1", "PersistentVolumeClaim", json!({}), true)]
#[case::volume("v1", "PersistentVolume", json!({}), true)]
#[case::namespace("v1", "Namespace", json!({}), true)]
#[case::definition("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), true)]
#[case::annotated("v1", "ConfigMap", json!({"interlock.dev/keep": ""}), true)]
#[case::other("v1", "ConfigMap", json!({}), false)]
fn data_is_reported_and_not_deleted(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] annotations: Value,
    #[case] kept: bool,
) {
    let mut spec = package(phase(json!("serial"), &[&["delete-a"]]));
    spec["templates"]["a.yaml"] = manifest(api_version, kind, "a").into();
    let fixture = Fixture::new(spec);
    let mut server = Server::default();
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "annotations": annotations}});
    if server.kind(&Gvk::new(api_version, kind)) == Served::Namespaced {
        object["metadata"]["namespace"] = "ns".into();
    }
    server.put(object);
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    assert_eq!((server.objects.len(), server.ledger.is_empty()), (usize::from(kept), kept));
    assert_eq!(step.notes.len(), usize::from(kept));
    if kept {
        assert!(step.notes[0].message.contains("is kept:"), "{}", step.notes[0].message);
    }
}

#[test]
fn deletion_passes_over_kinds_that_are_not_served() {
    let fixture = one("delete-j");
    let mut server = Server { missing: vec!["Job"], ..Server::default() };
    assert_eq!(
        Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap().state.status.status,
        Complete
    );
}

#[test]
fn applying_a_kind_that_is_not_served_is_fatal() {
    let fixture = one("apply-j");
    let mut server = Server { missing: vec!["Job"], ..Server::default() };
    let fatal = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap().fatal.unwrap();
    assert_eq!(fatal.reason, "TaskEnhancementError");
    assert!(
        fatal
            .message
            .ends_with("a resource with GVK batch/v1, Kind=Job seems to be missing in API resource list")
    );
}

#[test]
fn a_kind_that_is_being_defined_is_waited_for() {
    let mut spec = package(phase(json!("serial"), &[&["apply-a"]]));
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: \
                      things.x.io\nspec:\n  group: x.io\n  names:\n    kind: Thing\n";
    spec["templates"]["a.yaml"] = format!("{definition}---\n{}", manifest("x.io/v1", "Thing", "t")).into();
    let fixture = Fixture::new(spec);
    let mut server = Server { missing: vec!["Thing"], ..Server::default() };
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.fatal, None);
    assert_eq!(step.waiting[0], "the API server does not serve x.io/v1, Kind=Thing yet");
    assert_eq!(server.objects.len(), 1);
    server.missing.clear();
    server.objects.values_mut().next().unwrap()["status"] =
        json!({"conditions": [{"type": "Established", "status": "True"}]});
    assert_eq!(process.pass(&mut server).unwrap().state.status.status, Complete);
    assert_eq!(server.objects.len(), 2);
}

#[rstest]
#[case::of_somebody_else(json!({"annotations": {"a": "b"}}), FatalError, "failed to patch a v1, Kind=ConfigMap ns/a: failed to get original configuration LastAppliedConfigAnnotation is not set")]
#[case::without_annotations(json!({}), Complete, "")]
#[case::going_away(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), InProgress, "ConfigMap ns/a is being deleted")]
#[case::of_a_former_instance(json!({"ownerReferences": [{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "inst", "uid": "uid-0", "controller": true}]}), InProgress, "ConfigMap ns/a belongs to a former Instance inst and is about to be removed")]
fn objects_that_are_there_already(
    #[case] metadata: Value,
    #[case] status: ExecutionStatus,
    #[case] text: &str,
) {
    let fixture = one("apply-a");
    let mut server = Server::default();
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}});
    object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    server.put(object);
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, status);
    let said = step.fatal.map(|f| f.message).or_else(|| step.waiting.first().cloned()).unwrap_or_default();
    assert!(said.ends_with(text), "{said}");
}

#[test]
fn tasks_that_share_an_object_take_turns() {
    let fixture = Fixture::new(package(phase(json!("parallel"), &[&["apply-j"], &["apply-j", "apply-k"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert!(
        step.waiting.iter().any(|w| w == "Job j is being changed by task deploy.main.s0.apply-j"),
        "{:?}",
        step.waiting
    );
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
    let job = &server.objects[&key("batch/v1", "Job", "j")];
    assert_eq!(annotation(job, "kudo.dev/step"), Some("s1"));
    assert_eq!(server.ledger.len(), 3);
}

#[test]
fn what_a_finished_task_made_is_changed_only_once_that_is_written_down() {
    let fixture = Fixture::new(package(phase(json!("serial"), &[&["apply-a"], &["delete-a"], &["apply-b"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    process.watch = |_, step| {
        let deletes = step.effects.iter().flatten().any(|w| matches!(w, ChildWrite::Delete { .. }));
        assert_eq!(step.save_first, deletes);
    };
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
}

#[test]
fn cluster_scoped_objects_carry_the_instances_uid() {
    let mut spec = package(phase(json!("serial"), &[&["apply-a"]]));
    spec["templates"]["a.yaml"] = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "a").into();
    let fixture = Fixture::new(spec);
    let mut server = Server::default();
    let _ = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
    let object = server.objects.values().next().unwrap();
    assert_eq!(object["metadata"]["labels"]["interlock.dev/instance-uid"], "uid-1");
    assert_eq!((meta_str(object, "namespace"), object["metadata"].get("ownerReferences")), (None, None));
}
