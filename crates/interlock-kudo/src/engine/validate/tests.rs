use rstest::rstest;
use serde_json::{Value, json};

use super::problem::KEPT;
use super::*;

fn problems(spec: Value) -> Vec<PackageProblem> {
    let Findings { errors, warnings } = findings(&serde_json::from_value(spec).unwrap());
    assert!(errors.more == 0 && warnings.more == 0);
    errors.first.into_iter().chain(warnings.first).collect()
}

fn found(spec: Value) -> Vec<String> {
    let found = problems(spec);
    assert!(found.iter().all(|p| !p.remedy.is_empty()));
    found.into_iter().map(|p| format!("{}: {}", p.field, p.what)).collect()
}

/// What every Instance fails on is an error, the rest a warning. KUDO v0.19 stores all of these, and carries
/// out what does not meet the problem.
#[rstest]
#[case::deploy(json!({"deploy": LOST}), 1, 0)]
#[case::a_plan_that_may_never_run(json!({"deploy": FINE, "backup": LOST}), 0, 1)]
#[case::an_upgrade_meets_it_not(json!({"deploy": LOST, "upgrade": FINE}), 0, 1)]
#[case::an_update_neither(json!({"deploy": LOST, "update": FINE}), 0, 1)]
#[case::a_creation_meets_it_not(json!({"deploy": FINE, "upgrade": LOST}), 0, 1)]
#[case::both(json!({"deploy": LOST, "upgrade": LOST, "backup": LOST}), 2, 1)]
#[case::update_is_not_run_by_an_upgrade(json!({"deploy": FINE, "upgrade": FINE, "update": LOST}), 0, 1)]
#[case::no_instance_is_created(json!({"upgrade": LOST}), 1, 0)]
#[case::in_a_phase_that_is_skipped(json!({"deploy": "steps: [{name: s, tasks: [fine]}]}, {name: p, steps: [{name: s, tasks: [lost]}]"}), 0, 2)]
#[case::in_a_step_that_is_skipped(json!({"deploy": "steps: [{name: s, tasks: [fine]}, {name: s, tasks: [lost]}]"}), 0, 2)]
#[case::a_kind(json!({"deploy": "steps: [{name: s, tasks: [kind]}]"}), 1, 0)]
#[case::a_template(json!({"deploy": "steps: [{name: s, tasks: [broken]}]"}), 1, 0)]
#[case::a_lost_template(json!({"deploy": "steps: [{name: s, tasks: [gone]}]"}), 1, 0)]
#[case::a_toggle(json!({"deploy": "steps: [{name: s, tasks: [toggle]}]"}), 1, 0)]
#[case::a_toggle_that_an_instance_can_set(json!({"deploy": "steps: [{name: s, tasks: [settable]}]"}), 0, 1)]
#[case::pipe_keys(json!({"deploy": "steps: [{name: s, tasks: [pipe, pipe2]}]"}), 1, 0)]
#[case::pipe_keys_elsewhere(json!({"deploy": FINE, "backup": "steps: [{name: s, tasks: [pipe, pipe2]}]"}), 0, 1)]
fn what_need_not_fail_is_a_warning(#[case] plans: Value, #[case] errors: usize, #[case] warnings: usize) {
    let text = |phase: &Value| {
        let text = format!("{{phases: [{{name: p, {}}}]}}", phase.as_str().unwrap());
        go_template::yaml::read(&text).unwrap()
    };
    let plans: Value =
        plans.as_object().unwrap().iter().map(|(name, phase)| (name.clone(), text(phase))).collect();
    let apply =
        |name: &str, file: &str| json!({"name": name, "kind": "Apply", "spec": {"resources": [file]}});
    let toggle = |name: &str, parameter: &str| json!({"name": name, "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": parameter}});
    let pipe = |name: &str| {
        let pipe = [json!({"file": "/f", "kind": "Secret", "key": "k"})];
        json!({"name": name, "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": pipe}})
    };
    let tasks = [
        apply("fine", "a.yaml"),
        json!({"name": "kind", "kind": "Exec"}),
        apply("broken", "broken.yaml"),
        apply("gone", "gone.yaml"),
        toggle("toggle", "LIST"),
        toggle("settable", "TEXT"),
        pipe("pipe"),
        pipe("pipe2"),
    ];
    let used = plans.to_string();
    let tasks: Vec<_> = tasks
        .into_iter()
        .filter(|task| used.contains(&format!("\"{}\"", task["name"].as_str().unwrap())))
        .collect();
    let parameters =
        [json!({"name": "LIST", "value-type": "array"}), json!({"name": "TEXT", "default": "on"})];
    let templates = json!({"a.yaml": "", "broken.yaml": "{{ bad"});
    let spec = json!({"plans": plans, "tasks": tasks, "parameters": parameters, "templates": templates});
    let found = findings(&serde_json::from_value(spec).unwrap());
    assert_eq!((found.errors.first.len(), found.warnings.first.len()), (errors, warnings), "{found:#?}");
}

const FINE: &str = "steps: [{name: s, tasks: [fine]}]";
const LOST: &str = "steps: [{name: s, tasks: [lost]}]";

/// Wherever it is, this fails where it is used alone.
#[rstest]
#[case::trigger(json!({"parameters": [{"name": "A", "trigger": "lost"}]}))]
#[case::default(json!({"parameters": [{"name": "A", "value-type": "integer", "default": "x"}]}))]
#[case::parameters_of_one_name(json!({"parameters": [{"name": "A"}, {"name": "A"}]}))]
#[case::a_task_that_no_plan_names(json!({"tasks": [{"name": "t", "kind": "Exec"}]}))]
#[case::phases_of_one_name(json!({"plans": {"deploy": {"phases": [{"name": "p"}, {"name": "p"}]}}}))]
#[case::a_step_without_a_name(json!({"plans": {"deploy": {"phases": [{"name": "p", "steps": [{}]}]}}}))]
fn what_is_used_elsewhere_is_a_warning(#[case] mut spec: Value) {
    if spec["plans"].is_null() {
        spec["plans"] = json!({"deploy": {}});
    }
    let found = findings(&serde_json::from_value(spec).unwrap());
    assert_eq!((found.errors.first.len(), found.warnings.first.len()), (0, 1), "{found:#?}");
}

#[rstest]
#[case::nothing(json!({}))]
#[case::null_lists(json!({"plans": {"deploy": {"phases": null}}, "tasks": null, "parameters": null}))]
#[case::no_tasks(json!({"plans": {"deploy": {"phases": [{"name": "a", "steps": [{"name": "b"}]}]}}}))]
#[case::odd_strategy(json!({"plans": {"deploy": {"strategy": "sequential"}}}))]
#[case::a_broken_template_that_nobody_names(json!({"templates": {"notes.yaml": "{{ bad"}}))]
#[case::same_names_elsewhere(json!({"plans": {
    "a": {"phases": [{"name": "p", "steps": [{"name": "s"}]}, {"name": "q", "steps": [{"name": "s"}]}]},
    "b": {"phases": [{"name": "p"}]},
}}))]
fn what_is_absent_is_not_judged(#[case] spec: Value) {
    assert_eq!(found(spec), Vec::<String>::new());
}

#[rstest]
#[case::phase_without_name(json!({"phases": [{}]}), "spec.plans[deploy].phases[0].name: has no name")]
#[case::step_without_name(json!({"phases": [{"name": "p", "steps": [{"name": ""}]}]}), "spec.plans[deploy].phases[0].steps[0].name: has no name")]
#[case::phases_of_one_name(json!({"phases": [{"name": "p"}, {"name": "p"}]}), "spec.plans[deploy].phases[1].name: the name \"p\" is used twice")]
#[case::steps_of_one_name(json!({"phases": [{"name": "p", "steps": [{"name": "s"}, {"name": "s"}]}]}), "spec.plans[deploy].phases[0].steps[1].name: the name \"s\" is used twice")]
#[case::unknown_task(json!({"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["t"]}]}]}), "spec.plans[deploy].phases[0].steps[0].tasks[0]: there is no task \"t\"")]
fn plans(#[case] plan: Value, #[case] expected: &str) {
    assert_eq!(found(json!({"plans": {"deploy": plan}})), [expected]);
}

#[rstest]
#[case::no_name(json!({"kind": "Dummy"}), "spec.tasks[0].name: has no name")]
#[case::no_kind(json!({"name": "t"}), "spec.tasks[0].kind: unknown task kind ")]
#[case::unknown_kind(json!({"name": "t", "kind": "Exec"}), "spec.tasks[0].kind: unknown task kind Exec")]
#[case::apply(json!({"name": "t", "kind": "Apply"}), "spec.tasks[0].spec.resources: task validation error: apply task 't' has an empty resource list. if that's what you need, use a Dummy task instead")]
#[case::delete(json!({"name": "t", "kind": "Delete", "spec": {"resources": null}}), "spec.tasks[0].spec.resources: task validation error: delete task 't' has an empty resource list. if that's what you need, use a Dummy task instead")]
#[case::toggle(json!({"name": "t", "kind": "Toggle", "spec": {"parameter": "P"}}), "spec.tasks[0].spec.resources: task validation error: toggle task has an empty resource list. if that's what you need, use a Dummy task instead")]
#[case::toggle_what(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"]}}), "spec.tasks[0].spec.parameter: task validation error: Missing parameter to evaluate the Toggle Task")]
#[case::toggle_unknown(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "X"}}), "spec.tasks[0].spec.parameter: there is no parameter \"X\"")]
#[case::toggle_list(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "LIST"}}), "spec.tasks[0].spec.parameter: the parameter \"LIST\" is of type array")]
#[case::toggle_text(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "TEXT"}}), "spec.tasks[0].spec.parameter: the default of parameter \"TEXT\" is not true or false")]
#[case::template(json!({"name": "t", "kind": "Apply", "spec": {"resources": ["a.yaml", "b.yaml"]}}), "spec.tasks[0].spec.resources[1]: there is no template \"b.yaml\"")]
#[case::pipe_pod(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "b.yaml", "pipe": [{"file": "/f", "kind": "Secret", "key": "k"}]}}), "spec.tasks[0].spec.pod: there is no template \"b.yaml\"")]
#[case::pipe_no_pod(json!({"name": "t", "kind": "Pipe", "spec": {"pipe": [{"file": "/f", "kind": "Secret", "key": "k"}]}}), "spec.tasks[0].spec.pod: task validation error: pipe task has no pod template")]
#[case::pipe_files(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml"}}), "spec.tasks[0].spec.pipe: task validation error: pipe task has an empty pipe files list")]
#[case::pipe_both(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": [{"file": "/f", "envFile": "/f", "kind": "Secret", "key": "k"}]}}), "spec.tasks[0].spec.pipe[0]: task validation error: pipe file 0 must have either 'file' or 'envFile' field set but not both")]
#[case::pipe_kind(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": [{"file": "/f", "kind": "Pod", "key": "k"}]}}), "spec.tasks[0].spec.pipe[0].kind: task validation error: invalid pipe kind (must be Secret or ConfigMap): pipe file 0")]
#[case::pipe_key(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": [{"file": "/f", "kind": "Secret", "key": "a b"}]}}), "spec.tasks[0].spec.pipe[0].key: task validation error: invalid pipe key (only letters, numbers and _ and - are allowed): pipe file 0")]
#[case::child(json!({"name": "t", "kind": "KudoOperator", "spec": {"operatorVersion": "1"}}), "spec.tasks[0].spec.package: task validation error: kudo operator task 't' has an empty package name")]
#[case::child_version(json!({"name": "t", "kind": "KudoOperator", "spec": {"package": "p"}}), "spec.tasks[0].spec.operatorVersion: task validation error: kudo operator task 't' has an empty operatorVersion")]
#[case::child_file(json!({"name": "t", "kind": "KudoOperator", "spec": {"package": "p", "operatorVersion": "1", "parameterFile": "b.yaml"}}), "spec.tasks[0].spec.parameterFile: there is no template \"b.yaml\"")]
fn tasks(#[case] task: Value, #[case] expected: &str) {
    let parameters = [
        json!({"name": "P", "default": "true"}),
        json!({"name": "LIST", "value-type": "array"}),
        json!({"name": "TEXT", "default": "on"}),
    ];
    let spec = json!({"tasks": [task], "templates": {"a.yaml": ""}, "parameters": parameters});
    assert_eq!(found(spec), [expected]);
}

#[rstest]
#[case::no_name(json!([{}]), "spec.parameters[0].name: has no name")]
#[case::twice(json!([{"name": "A"}, {"name": "A"}]), "spec.parameters[1].name: the name \"A\" is used twice")]
#[case::default(json!([{"name": "A", "value-type": "integer", "default": "x"}]), "spec.parameters[0].default: \"x\" is not a whole number, such as 3")]
#[case::enumeration(json!([{"name": "A", "enum": ["a", "b"], "default": "c"}]), "spec.parameters[0].default: \"c\" is not one of [a b]")]
#[case::trigger(json!([{"name": "A", "trigger": "lost"}]), "spec.parameters[0].trigger: there is no plan \"lost\"")]
fn parameters(#[case] listed: Value, #[case] expected: &str) {
    assert_eq!(found(json!({"parameters": listed, "plans": {"deploy": {}}})), [expected]);
}

/// The names that there are help where one refers to nothing.
#[rstest]
#[case::task(
    json!({"plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["depoly"]}]}]}},
           "tasks": [{"name": "deploy", "kind": "Dummy"}, {"name": "backup", "kind": "Dummy"}]}),
    "add the task to spec.tasks, or name another: did you mean deploy?"
)]
#[case::plan(
    json!({"plans": {"deploy": {}}, "parameters": [{"name": "A", "trigger": "Deploy"}]}),
    "add the plan to spec.plans, or name another: did you mean deploy?"
)]
#[case::template(
    json!({"templates": {"service.yaml": ""}, "tasks": [{"name": "t", "kind": "Apply", "spec": {"resources": ["servce.yaml"]}}]}),
    "add the template to spec.templates, or name another: did you mean service.yaml?"
)]
#[case::nothing_like_it(
    json!({"plans": {"deploy": {}}, "parameters": [{"name": "A", "trigger": "lost"}]}),
    "add the plan to spec.plans, or name another"
)]
fn a_lost_name_leads_to_the_one_that_is_meant(#[case] spec: Value, #[case] remedy: &str) {
    assert_eq!(problems(spec)[0].remedy, remedy);
}

/// Problems beyond a readable number are counted.
#[test]
fn the_first_problems_are_written_out() {
    let lost: Vec<String> = (0..100).map(|i| format!("t{i}")).collect();
    let steps = [json!({"name": "s", "tasks": lost})];
    let spec = json!({"plans": {"deploy": {"phases": [{"name": "p", "steps": steps}]}}});
    let found = findings(&serde_json::from_value(spec).unwrap()).errors;
    assert_eq!((found.first.len(), found.more), (KEPT, 100 - KEPT));
    assert_eq!(found.first[KEPT - 1].what, "there is no task \"t63\"");
}

#[test]
fn of_two_parameters_of_one_name_a_toggle_means_the_last() {
    let toggle = json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "P"}});
    let parameters = [json!({"name": "P", "value-type": "array"}), json!({"name": "P", "default": "true"})];
    let spec = json!({"tasks": [toggle], "templates": {"a.yaml": ""}, "parameters": parameters});
    assert_eq!(found(spec), ["spec.parameters[1].name: the name \"P\" is used twice"]);
}

#[test]
fn a_template_is_named_with_line_and_construct() {
    let task = json!({"name": "t", "kind": "Apply", "spec": {"resources": ["a.yaml"]}});
    let [problem] =
        found(json!({"tasks": [task], "templates": {"a.yaml": "a: 1\nb: {{ bad"}})).try_into().unwrap();
    assert!(problem.starts_with("spec.templates[a.yaml]: line "), "{problem}");
}

#[test]
fn pipe_keys_of_a_plan_differ() {
    let pipe = |name: &str| {
        let pipe = [json!({"file": "/f", "kind": "Secret", "key": "k"})];
        json!({"name": name, "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": pipe}})
    };
    let steps = [json!({"name": "s", "tasks": ["one", "two"]})];
    let plans = json!({"deploy": {"phases": [{"name": "p", "steps": steps}]}});
    let spec = json!({"tasks": [pipe("one"), pipe("two")], "templates": {"a.yaml": ""}, "plans": plans});
    assert_eq!(found(spec), ["spec.plans[deploy]: the pipe key \"k\" is used twice in this plan"]);
}
