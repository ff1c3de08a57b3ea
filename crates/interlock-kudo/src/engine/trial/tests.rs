use std::sync::Arc;

use go_template::{Interrupt, Interrupted, Never};
use interlock_core::api::object::NamespacedName;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::engine::seed::SeedKey;
use crate::package::functions::TIME_LIMIT;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  ";

/// A package with these parameters, whose plan applies `a.yaml` and toggles `b.yaml` by `ON`.
fn package(parameters: &Value, a: &str, b: &str) -> Package {
    let spec = json!({
        "operator": {"name": "web"}, "version": "1.0.0", "parameters": parameters,
        "plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["a", "b"]}]}]}},
        "tasks": [
            {"name": "a", "kind": "Apply", "spec": {"resources": ["a.yaml"]}},
            {"name": "b", "kind": "Toggle", "spec": {"parameter": "ON", "resources": ["b.yaml"]}},
        ],
        "templates": {"a.yaml": format!("{MAP}{a}"), "b.yaml": format!("{MAP}{b}")},
    });
    Package::new(NamespacedName::new("ns", "web"), serde_json::from_value(spec).unwrap())
}

fn found(package: &Package, all: &dyn Interrupt) -> TrialFindings {
    let key = SeedKey([7; 32]);
    let keys = Arc::default();
    let seed = Seed { key: &key, started: jiff::Timestamp::UNIX_EPOCH, keys: &keys };
    findings(package, seed, TrialLimits { task: &Never, all })
}

fn parameters(more: &[Value]) -> Value {
    json!([&[json!({"name": "ON", "default": "true"})], more].concat())
}

/// Templates of a package that has only the parameter `ON`, which fail with the defaults.
#[rstest]
#[case::parameter(
    "k: {{ .Params.NOT_THERE }}",
    "a.yaml:5:15: executing \"a.yaml\" at <.Params.NOT_THERE>: map has no entry for key \"NOT_THERE\""
)]
#[case::arguments(
    "k: {{ if eq }}x{{ end }}",
    "a.yaml:5:11: executing \"a.yaml\" at <eq>: wrong number of args for eq: want at least 1 got 0"
)]
#[case::root(
    "k: {{ .Nmae }}",
    "a.yaml:5:8: executing \"a.yaml\" at <.Nmae>: map has no entry for key \"Nmae\""
)]
#[case::yaml("k: [", "parsing YAML from a.yaml failed: ")]
fn what_fails_with_the_defaults_is_an_error(#[case] template: &str, #[case] error: &str) {
    let found = found(&package(&parameters(&[]), template, "k: v"), &Never);
    assert!(found.errors.len() == 1 && found.errors[0].contains(error), "{found:?}");
    assert_eq!(found.warnings, [""; 0]);
}

#[test]
fn one_template_hides_no_other() {
    let found = found(&package(&parameters(&[]), "k: {{ .A }}", "k: {{ .B }}"), &Never);
    assert!(found.errors.len() == 2 && found.errors[1].contains("b.yaml:5:8"), "{found:?}");
}

#[rstest]
#[case::boolean(json!({"name": "P", "value-type": "boolean", "default": "false"}), "k: {{ if eq .Params.P \"true\" }}{{ fail \"no\" }}{{ end }}", "P=true")]
#[case::enumeration(json!({"name": "P", "enum": ["a", "b", "c"], "default": "a"}), "k: {{ if eq .Params.P \"c\" }}{{ fail \"no\" }}{{ end }}", "P=c")]
#[case::example(json!({"name": "P", "required": true}), "k: {{ if eq .Params.P \"example\" }}{{ fail \"no\" }}{{ end }}", "the example P=example")]
fn what_fails_with_another_value_is_a_warning(
    #[case] parameter: Value,
    #[case] template: &str,
    #[case] value: &str,
) {
    let found = found(&package(&parameters(&[parameter]), template, "k: v"), &Never);
    assert_eq!(found.errors, [""; 0]);
    let [warning] = found.warnings.as_slice() else { panic!("{found:?}") };
    assert!(warning.contains("a.yaml:5:") && warning.ends_with(&format!("; with {value}")), "{warning}");
}

#[test]
fn a_toggled_template_is_rendered_on_both_sides() {
    let mut off = parameters(&[]);
    off[0]["default"] = json!("false");
    let found = found(&package(&off, "k: v", "k: {{ fail \"no\" }}"), &Never);
    assert!(found.errors.len() == 1 && found.errors[0].contains("b.yaml"), "{found:?}");
}

#[rstest]
#[case::used_in_a_range(json!({"name": "P", "value-type": "array", "default": "[a]"}), "k: {{ range .Params.P }}{{ . }}{{ end }}", &[])]
#[case::used_below_a_range(json!({"name": "P", "default": "x"}), "k: {{ range list 1 }}{{ $.Params.P }}{{ end }}", &[])]
#[case::fields_of_a_range(json!({"name": "P", "value-type": "array", "default": "[{a: b}]"}), "k: {{ range .Params.P }}{{ .a }}{{ end }}", &[])]
#[case::all_of_them(json!({"name": "P"}), "k: {{ len .Params }}", &[])]
#[case::a_trigger(json!({"name": "P", "trigger": "deploy"}), "k: v", &[])]
#[case::not_used(json!({"name": "P"}), "k: v", &["parameter P: no template and no task uses it"])]
#[case::never_reached(json!({"name": "P"}), "k: {{ if false }}{{ .Params.Q }}{{ .Params.P }}{{ end }}", &["template a.yaml:5:29: .Params.Q: no parameter has this name"])]
fn what_nothing_uses_or_defines_is_a_warning(
    #[case] parameter: Value,
    #[case] template: &str,
    #[case] warnings: &[&str],
) {
    let found = found(&package(&parameters(&[parameter]), template, "k: v"), &Never);
    assert_eq!(
        (found.errors, found.warnings),
        (Vec::new(), warnings.iter().map(|w| (*w).to_owned()).collect())
    );
}

#[test]
fn a_template_that_no_task_names_is_a_warning() {
    let mut package = package(&parameters(&[]), "k: v", "k: v");
    let mut spec = (*package.spec).clone();
    spec.templates.as_mut().unwrap().insert("idle.yaml".to_owned(), "{{ if }}".to_owned());
    package = Package::new(package.key, spec);
    assert_eq!(found(&package, &Never).warnings, ["template idle.yaml: no task names it"]);
}

#[derive(Debug)]
struct Over;

impl Interrupt for Over {
    fn interrupted(&self) -> Option<Interrupted> {
        Some(TIME_LIMIT)
    }
}

#[test]
fn the_time_is_bounded() {
    let found = found(&package(&parameters(&[]), "k: {{ fail \"no\" }}", "k: v"), &Over);
    let text = "the time was not enough to render the templates with every value of booleans and enums";
    assert_eq!((found.errors, found.warnings), (Vec::new(), vec![text.to_owned()]));
}
