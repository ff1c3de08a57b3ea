//! Transient errors, errors that end a run, and their texts.

use std::sync::Arc;

use go_template::{Interrupt, Interrupted};
use interlock_core::effect::ApiFailure;
use interlock_core::reconcile::Lookup;
use rstest::rstest;
use serde_json::{Value, json};

use super::{empty, steps};
use crate::api::ExecutionStatus::{Complete, Error, FatalError, InProgress};
use crate::engine::advance::advance;
use crate::engine::advance::fixture::{config_map, key, made, one, package, phase};
use crate::engine::advance::sim::{Fixture, Process, Server, failure};
use crate::engine::lookup::{FailureKind, Observed, PlanState};
use crate::engine::run::Run;
use crate::package::functions;

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
    let failure = step.failure.unwrap();
    assert_eq!(failure.message, "task deploy.main.s0.apply-a: no luck");
    assert_eq!(step.state.status.status, InProgress);
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.state.status.status, Complete);
    assert!(steps(&step.state).iter().all(|s| *s == (Complete, String::new())));
    assert_eq!(step.failure, None);
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
fn annotations_that_are_no_map_end_the_run() {
    let fixture = one("mapless");
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut Server::default()).unwrap();
    let message = "Error during execution: fatal error: ns/inst failed in deploy.main.s0.mapless: fatal error: adding \
                   annotations on parsed object v1, Kind=ConfigMap: value at .metadata.annotations is not an object: \"x\"";
    let fatal = step.fatal.unwrap();
    assert_eq!((fatal.reason.as_str(), fatal.message.as_str()), ("TaskEnhancementError", message));
    assert_eq!(step.state.status.status, FatalError);
}

#[test]
fn a_failed_patch_names_the_object() {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server.put(made("v1", "ConfigMap", "a"));
    server.faults.push_back(Some(failure(500, "boom")));
    let step = Process::new(fixture.run(), fixture.start()).pass(&mut server).unwrap();
    let message = "task deploy.main.s0.apply-a: failed to patch a v1, Kind=ConfigMap ns/a: failed to execute patch: boom";
    assert_eq!(step.failure.as_ref().map(|failure| failure.message.as_str()), Some(message));
}

#[rstest]
#[case::modified(409)]
#[case::gone(404)]
fn a_stale_write_is_looked_at_again(#[case] code: u16) {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server.put(made("v1", "ConfigMap", "a"));
    let state = {
        let mut observed = empty(&[config_map("a")]);
        observed.facts.objects.insert(config_map("a"), server.look(&config_map("a")));
        observed.facts.failures.insert(config_map("a"), failure(code, "stale"));
        let step = advance(&fixture.run(), fixture.start(), &observed);
        assert_eq!(step.needs.objects.len(), 1);
        assert_eq!((step.effects.len(), step.failure), (0, None));
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
#[case("pipe", "TaskRenderingError", format!("{FAILED}pipe: error finding resource named p"))]
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

/// A name or an apiVersion that leads to another object ends the run before any request.
#[rstest]
#[case::of_another_kind(
    "v1",
    "ConfigMap",
    "other/secrets/x",
    "metadata.name \"other/secrets/x\" of the ConfigMap contains '/'"
)]
#[case::above("v1", "ConfigMap", "..", "metadata.name \"..\" of the ConfigMap is . or ..")]
#[case::escaped(
    "v1",
    "ConfigMap",
    "x%2fstatus",
    "metadata.name \"x%2fstatus\" of the ConfigMap contains '%'"
)]
#[case::api_version(
    "v1/namespaces/other/secrets/x?",
    "ConfigMap",
    "a",
    "apiVersion \"v1/namespaces/other/secrets/x?\" with kind \"ConfigMap\" is not what the API server can serve"
)]
#[case::kind("v1", "Config/Map", "a", "apiVersion \"v1\" with kind \"Config/Map\" is not what")]
fn what_leads_to_another_object_is_fatal(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] name: &str,
    #[case] text: &str,
) {
    for task in ["apply-a", "delete-a"] {
        let mut spec = package(phase(json!("serial"), &[&[task]]));
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        spec["templates"]["a.yaml"] = object.to_string().into();
        let fixture = Fixture::new(spec);
        let step = advance(&fixture.run(), fixture.start(), &Observed::default());
        let fatal = step.fatal.unwrap();
        assert_eq!((fatal.reason.as_str(), step.needs.is_empty()), ("TaskRenderingError", true));
        let text = format!("{FAILED}{task}: parsing YAML from a.yaml failed: object 1: {text}");
        assert!(fatal.message.starts_with(&text), "{}", fatal.message);
    }
}

/// An object that does not fit into its own annotation is never sent.
#[rstest]
#[case::fits((256 << 10) - 200, None)]
#[case::too_large(256 << 10, Some("at most 262144 bytes of annotations: divide it into several objects"))]
fn an_object_that_no_api_server_takes_is_fatal(#[case] bytes: usize, #[case] end: Option<&str>) {
    let mut spec = package(phase(json!("serial"), &[&["apply-a"]]));
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"text": "x".repeat(bytes)},
    });
    spec["templates"]["a.yaml"] = object.to_string().into();
    let fixture = Fixture::new(spec);
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    let message = step.fatal.map(|fatal| fatal.message);
    match (end, &message) {
        (None, None) => {}
        (Some(end), Some(message)) => {
            assert!(message.ends_with(end), "{message}");
            assert!(message.contains("object 1, ConfigMap \"a\", has 262"), "{message}");
        }
        _ => panic!("{message:?}"),
    }
}

#[rstest]
#[case::toggle(
    "yes",
    "ToggleTaskError",
    "could not parse value of parameter ON: strconv.ParseBool: parsing \"***\": invalid syntax; set it to true or false"
)]
#[case::empty(
    "",
    "ToggleTaskError",
    "could not parse value of parameter ON: strconv.ParseBool: parsing \"***\": invalid syntax; set it to true or false"
)]
fn toggles_need_a_boolean(#[case] value: &'static str, #[case] reason: &str, #[case] cause: &str) {
    let fixture = one("toggle").with("ON", value);
    let fatal = advance(&fixture.run(), fixture.start(), &Observed::default()).fatal.unwrap();
    assert_eq!((fatal.reason.as_str(), fatal.message), (reason, format!("{FAILED}toggle: {cause}")));
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

/// One task that renders this text.
fn renders(text: &str) -> Fixture {
    let mut package = package(phase(json!("serial"), &[&["broken"]]));
    package["templates"]["broken.yaml"] = text.into();
    Fixture::new(package)
}

const BOMB: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: &a {{ repeat 300000 \"x\" }}\n  \
                    b: [{{ range 6000 }}*a, {{ end }}]\n";

#[rstest]
#[case::work(
    "\n{{ range 1000000000 }}{{ end }}",
    "template: broken.yaml:2:",
    "the budget of 67108864 bytes made or read"
)]
#[case::made(
    "{{ repeat 1000000000 \"x\" }}",
    "template: broken.yaml:1:",
    "the budget of 33554432 bytes of values"
)]
#[case::output(
    "{{ range 3 }}{{ repeat 4000000 \"x\" }}{{ end }}",
    "template: broken.yaml:1:",
    "rendered more than 8388608 bytes"
)]
#[case::aliases(BOMB, "parsing YAML from broken.yaml failed: yaml: line 6:", "the budget of 8388608 bytes")]
fn a_budget_ends_the_run_with_template_line_and_budget(
    #[case] text: &str,
    #[case] place: &str,
    #[case] budget: &str,
) {
    let fixture = renders(text);
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    let message = steps(&step.state).remove(0).1;
    assert_eq!(step.fatal.unwrap().reason, "TaskRenderingError");
    assert!(message.contains(place) && message.contains(budget), "{message}");
}

#[derive(Debug)]
struct Now(Interrupted);

impl Interrupt for Now {
    fn interrupted(&self) -> Option<Interrupted> {
        Some(self.0)
    }
}

#[rstest]
#[case(functions::TIME_LIMIT)]
#[case(functions::SHUTDOWN)]
fn what_is_interrupted_is_tried_again(#[case] why: Interrupted) {
    let fixture = renders("\n{{ range 1000000000 }}{{ end }}");
    let run = Run { interrupt: &Now(why), ..fixture.run() };
    let step = advance(&run, fixture.start(), &Observed::default());
    assert!(step.fatal.is_none() && step.failure.is_some(), "{step:?}");
    let (status, message) = steps(&step.state).remove(0);
    assert_eq!(status, Error);
    assert!(message.contains(&format!("template: broken.yaml:1:0: rendering {why}")), "{message}");
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
    assert_eq!((step.state.status.status, step.needs.is_empty()), (FatalError, true));
}

/// A quota on pods lets the Job in, and not its pods.
#[test]
fn pods_that_are_refused_stall_the_run_until_they_are_created() {
    let fixture = one("apply-j");
    let mut server = Server::default();
    let job = key("batch/v1", "Job", "j");
    let quota = "pods \"j-\" is forbidden: exceeded quota: q, requested: pods=1";
    server.reports.insert(job.clone(), format!("Error creating: {quota}"));
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    let why = format!("Job ns/j: job \"j\" still running or failed; its pods are refused: {quota}");
    assert_eq!(steps(&step.state), [(InProgress, why.clone())]);
    let failure = step.failure.unwrap();
    assert_eq!(
        (failure.kind, failure.message),
        (FailureKind::PodsRefused, format!("task deploy.main.s0.apply-j: {why}"))
    );
    server.reports.clear();
    let step = process.pass(&mut server).unwrap();
    assert_eq!((steps(&step.state), step.failure), (vec![(InProgress, String::new())], None));
}

/// A look ahead imagines a Job: an answer about its pods before it is made would stand once it is.
#[test]
fn nothing_is_asked_about_the_pods_of_what_is_not_made_yet() {
    let fixture = one("apply-j");
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.waiting.len(), 1);
    let job = key("batch/v1", "Job", "j");
    let asked_of = |object: Value| {
        let mut observed = Observed::default();
        loop {
            let step = advance(&fixture.run(), fixture.start(), &observed);
            if step.needs.is_empty() || !step.needs.pod_failures.is_empty() {
                return step.needs.pod_failures.into_iter().collect::<Vec<_>>();
            }
            process.look_up(&step.needs, &server, &mut observed.facts);
            observed.facts.objects.insert(job.clone(), Lookup::Found(Arc::new(object.clone())));
        }
    };
    let made = server.objects[&job].clone();
    let mut imagined = made.clone();
    imagined["metadata"].as_object_mut().unwrap().remove("uid");
    assert_eq!((asked_of(imagined), asked_of(made)), (vec![], vec![job.clone()]));
}

#[test]
fn a_job_that_failed_ends_the_run() {
    let fixture = one("apply-j");
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.waiting, ["Job ns/j: job \"j\" still running or failed"]);
    let job = server.objects.get_mut(&key("batch/v1", "Job", "j")).unwrap();
    job["status"] = json!({"conditions": [{"type": "Failed", "status": "True", "message": "limit"}]});
    let fatal = process.pass(&mut server).unwrap().fatal.unwrap();
    assert_eq!(fatal.reason, "FailedTerminalStateError");
    let text = format!(
        "{FAILED}apply-j: object ns/j is NOT healthy: fatal error: HealthUtil: job \"j\" has failed terminally: limit"
    );
    assert_eq!(fatal.message, text);
}
