use rstest::rstest;
use similar_asserts::assert_eq;

use super::*;
use crate::engine::tasks::client_problems;

fn source(operator: &str, params: &str) -> PackageFiles {
    let templates = ["a.yaml", "sub/b.yaml"].map(|name| (name.to_owned(), "a: b\n".to_owned()));
    PackageFiles { operator: operator.to_owned(), params: params.to_owned(), templates: templates.into() }
}

fn spec(operator: &str, params: &str) -> Value {
    let head = "name: x\noperatorVersion: 1.0.0\n";
    let packaged =
        PackageBundle::read(&source(&format!("{head}{operator}"), params), client_problems).unwrap();
    packaged.operator_version["spec"].clone()
}

/// Each line is what `kubectl kudo install` of v0.19 wrote for it.
#[rstest]
#[case("default: 5", json!({"default": "5"}))]
#[case("default: 1000000", json!({"default": "1e+06"}))]
#[case("default: 12345678901234567890", json!({"default": "1.2345678901234567e+19"}))]
#[case("default: 1.50", json!({"default": "1.5"}))]
#[case("default: 1e3", json!({"default": "1000"}))]
#[case("default: -0.00001", json!({"default": "-1e-05"}))]
#[case("default: true", json!({"default": "true"}))]
#[case("default: yes", json!({"default": "true"}))]
#[case("default: 0644", json!({"default": "420"}))]
#[case("default: null, required: false", json!({"required": false}))]
#[case("required: false", json!({"required": false}))]
#[case("default: ''", json!({"default": ""}))]
#[case("default: 2020-01-01", json!({"default": "2020-01-01"}))]
#[case("default: [1, a, true, null, {b: 1, a: 2.0}]", json!({"default": "[1 a true <nil> map[a:2 b:1]]"}))]
#[case("default: {z: 1, a: [x, y]}", json!({"default": "map[a:[x true] z:1]"}))]
#[case("type: array", json!({"default": "null\n", "value-type": "array"}))]
#[case("type: map, default: null", json!({"default": "null\n", "value-type": "map"}))]
#[case("type: array, default: '[a]'", json!({"default": "'[a]'\n", "value-type": "array"}))]
#[case(r#"type: map, default: {b: 1e30, a: "x\ny\n", c: "1"}"#,
    json!({"default": "a: |\n  x\n  y\nb: 1e+30\nc: \"1\"\n", "value-type": "map"}))]
#[case(r#"type: array, default: [1000000, 1.0, 2.5, a b, "yes", null, {k: "v: w"}]"#,
    json!({"default": "- 1000000\n- 1\n- 2.5\n- a b\n- \"yes\"\n- null\n- k: 'v: w'\n", "value-type": "array"}))]
#[case("enum: [1, 2.5, a, true], default: 1, immutable: true, type: string, trigger: backup, hint: h, advanced: true, \
        group: g, displayName: Disp, description: Desc",
    json!({"default": "1", "enum": ["1", "2.5", "a", "true"], "immutable": true, "value-type": "string",
        "trigger": "backup", "displayName": "Disp", "description": "Desc"}))]
#[case("enum: [1, 1000000], type: integer", json!({"enum": ["1", "1e+06"], "value-type": "integer"}))]
#[case("enum: [[1],[2]], default: [1], type: array",
    json!({"default": "- 1\n", "enum": ["- 1\n", "- 2\n"], "value-type": "array"}))]
#[case("enum: []", json!({}))]
fn parameters_are_converted_as_kudo_does(#[case] line: &str, #[case] expected: Value) {
    let spec = spec("", &format!("parameters:\n- {{name: p, {line}}}\n"));
    let mut wanted = json!({"name": "p", "required": true, "immutable": false});
    wanted.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
    assert_eq!(spec["parameters"], json!([wanted]));
}

#[test]
fn plans_and_tasks_are_written_as_kudo_does() {
    let operator = "
tasks:
- {name: d, kind: Dummy, spec: {done: true, wantErr: false, resources: []}}
- {name: e, kind: Dummy}
- {name: t, kind: Toggle, spec: {parameter: a, resources: [a.yaml, sub/b.yaml]}}
- {name: p, kind: Pipe, spec: {pod: a.yaml, pipe: [{file: x}]}}
plans:
  deploy: {phases: []}
  update: {strategy: parallel}
  backup:
    strategy: serial
    phases:
    - {name: a, steps: []}
    - name: b
    - {name: c, strategy: serial, steps: [{name: x, tasks: []}, {name: y}, {name: z, tasks: [d, e]}]}
";
    let spec = spec(operator, "parameters: []");
    assert_eq!(
        spec["tasks"],
        json!([
            {"name": "d", "kind": "Dummy", "spec": {"done": true}},
            {"name": "e", "kind": "Dummy", "spec": {}},
            {"name": "t", "kind": "Toggle", "spec": {"parameter": "a", "resources": ["a.yaml", "sub/b.yaml"]}},
            {"name": "p", "kind": "Pipe", "spec": {"pod": "a.yaml",
                "pipe": [{"file": "x", "envFile": "", "kind": "", "key": ""}]}},
        ])
    );
    assert_eq!(
        spec["plans"],
        json!({
            "deploy": {"strategy": "", "phases": []},
            "update": {"strategy": "parallel", "phases": null},
            "backup": {"strategy": "serial", "phases": [
                {"name": "a", "strategy": "", "steps": []},
                {"name": "b", "strategy": ""},
                {"name": "c", "strategy": "serial", "steps": [
                    {"name": "x", "tasks": []}, {"name": "true"}, {"name": "z", "tasks": ["d", "e"]}]},
            ]},
        })
    );
    assert!(spec.get("parameters").is_none(), "an empty list is left out");
}

#[rstest]
#[case("0.10", "", "x-0.1")]
#[case("1.0.0", "appVersion: 123456.789", "x-123456.79-1.0.0")]
#[case("1.0.0", "appVersion: 5.7", "x-5.7-1.0.0")]
#[case("1.0.0", "appVersion: 0x10", "x-16-1.0.0")]
#[case("1.0.0", "appVersion: ''", "x-1.0.0")]
fn names_follow_go(#[case] version: &str, #[case] more: &str, #[case] name: &str) {
    let packaged = PackageBundle::read(
        &source(&format!("name: x\noperatorVersion: {version}\n{more}\n"), "{}"),
        client_problems,
    )
    .unwrap();
    assert_eq!(packaged.operator_version_name, name);
    assert_eq!(packaged.operator_version["metadata"]["name"], name);
}

#[test]
fn an_instance_is_labelled_and_refers_to_its_version() {
    let packaged =
        PackageBundle::read(&source("name: x\noperatorVersion: 1.0.0\n", "{}"), client_problems).unwrap();
    assert_eq!(packaged.default_instance_name(), "x-instance");
    let given = [("a".to_owned(), "1".to_owned())].into();
    assert_eq!(
        packaged.instance("mine", &given),
        json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"name": "mine", "labels": {"kudo.dev/operator": "x"}},
            "spec": {"operatorVersion": {"name": "x-1.0.0"}, "parameters": {"a": "1"}},
        })
    );
}

#[test]
fn what_must_be_given_is_known() {
    let params =
        "parameters: [{name: a}, {name: b, default: 1}, {name: c, required: false}, {name: d, type: map}]";
    let packaged =
        PackageBundle::read(&source("name: x\noperatorVersion: 1.0.0\n", params), client_problems).unwrap();
    assert_eq!(packaged.must_be_given, ["a"]);
}

#[rstest]
#[case("operatorVersion: 1.0.0", "{}", "operator.yaml: name is missing; a package needs one")]
#[case("name: x", "{}", "operator.yaml: operatorVersion is missing; a package needs one")]
#[case("name: [x]", "{}", "operator.yaml: name must be a string, but is a list")]
#[case(
    "apiVersion: kudo.dev/v2",
    "{}",
    "operator.yaml: apiVersion is kudo.dev/v2, but only kudo.dev/v1beta1 is known"
)]
#[case(
    "name: x\noperatorVersion: 1\ntasks: {a: b}",
    "{}",
    "operator.yaml: tasks must be a list, but is a mapping"
)]
#[case(
    "name: x\noperatorVersion: 1\ntasks: [{name: t, kind: Dummy, spec: {done: maybe}}]",
    "{}",
    "operator.yaml: tasks[0].spec.done must be true or false, but is a string"
)]
#[case(
    "name: x\noperatorVersion: 1\ntasks: [{name: t, kind: Apply, spec: {resources: [c.yaml, d.yaml]}}]",
    "{}",
    "operator.yaml: task t missing template: c.yaml\noperator.yaml: task t missing template: d.yaml"
)]
#[case(
    "name: x\noperatorVersion: 1\ntasks: [{name: t, kind: Toggle, spec: {resources: [a.yaml]}}]",
    "{}",
    "operator.yaml: toggle task t does not have parameter specified"
)]
#[case(
    "name: x\noperatorVersion: 1\ntasks: [{name: t, kind: Pipe}]",
    "{}",
    "operator.yaml: task t does not have a pod specified\noperator.yaml: task t does not have pipe files specified"
)]
#[case(
    "name: x\noperatorVersion: 1",
    "parameters: [{name: p, required: 1}]",
    "params.yaml: parameters[0].required must be true or false, but is a number"
)]
#[case(
    "name: x\noperatorVersion: 1",
    "parameters: [{name: p, enum: [a, null]}]",
    "params.yaml: parameter p: a value of enum is null; write \"\" for an empty one"
)]
fn what_is_wrong_is_named(#[case] operator: &str, #[case] params: &str, #[case] text: &str) {
    assert_eq!(
        PackageBundle::read(&source(operator, params), client_problems).unwrap_err().to_string(),
        text
    );
}

/// Tests have kinds of tasks of their own, at the end of the list.
#[test]
fn an_unknown_kind_of_task_is_answered_with_the_known_ones() {
    let operator =
        "name: x\noperatorVersion: 1\ntasks: [{name: t, kind: Foo}, {name: u, kind: Toggle, spec: {}}]";
    let error = PackageBundle::read(&source(operator, "{}"), client_problems).unwrap_err().to_string();
    let (unknown, toggle) = error.split_once('\n').unwrap();
    let known = "operator.yaml: task t: unknown task kind Foo; known are Apply, Delete, Toggle, Pipe, KudoOperator, Dummy";
    assert!(unknown.starts_with(known), "{unknown}");
    assert_eq!(toggle, "operator.yaml: toggle task u does not have parameter specified");
}

/// The tasks of a package, with that one resolved to a package of this version.
fn resolved(task: &str, app_version: &str) -> (Vec<PackagedChild>, Value) {
    let operator = |rest: &str| format!("name: x\noperatorVersion: 1.0.0\n{rest}");
    let read = |text: &str| PackageBundle::read(&source(text, "{}"), client_problems).unwrap();
    let child = read(&format!("name: zoo\noperatorVersion: 0.3.1\n{app_version}"));
    let mut package = read(&operator(&format!(
        "tasks: [{{name: a, kind: Dummy, spec: {{package: no}}}}, {{name: zk, kind: KudoOperator, spec: {task}}}]"
    )));
    let children = package.children();
    package.resolve(&children[0], &child);
    (children, package.operator_version["spec"]["tasks"][1]["spec"].clone())
}

#[rstest]
#[case::by_its_folder("{package: ../zoo, instanceName: zk}", "appVersion: '3.4'", json!({"package": "zoo", "instanceName": "zk", "operatorVersion": "0.3.1", "appVersion": "3.4"}))]
#[case::with_another_version("{package: ../zoo, operatorVersion: '9', appVersion: '9'}", "", json!({"package": "zoo", "operatorVersion": "0.3.1"}))]
fn a_child_is_named_as_a_cluster_knows_it(
    #[case] task: &str,
    #[case] app_version: &str,
    #[case] expected: Value,
) {
    let (children, spec) = resolved(task, app_version);
    assert_eq!(children.len(), 1);
    assert_eq!((children[0].task.as_str(), children[0].package.as_str()), ("zk", "../zoo"));
    assert_eq!(spec, expected);
}
