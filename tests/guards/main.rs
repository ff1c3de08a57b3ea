//! `interlock guard`, without a cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/printed.rs"]
mod printed;

use printed::run;
use rstest::rstest;
use serde_json::{Value, json};

#[test]
fn the_pages_show_what_the_commands_print() {
    printed::assert_shown("docs/guards.md", 4);
    printed::assert_shown("docs/guard-presets.md", 1);
}

fn lines(line: &str, input: &str) -> Vec<Value> {
    let ended = run(line, input);
    assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A program finds the preset of each kind.
#[test]
fn presets_name_their_kinds_and_versions() {
    let presets: Vec<Value> = serde_json::from_str(&run("guard presets -o json", "").stdout).unwrap();
    let kinds: Vec<&str> = presets
        .iter()
        .flat_map(|own| own["kinds"].as_array().unwrap())
        .map(|own| own.as_str().unwrap())
        .collect();
    assert!(kinds.len() >= 60 && kinds.contains(&"apps/StatefulSet"), "{kinds:?}");
    let of = |name: &str| presets.iter().find(|own| own["name"] == name).unwrap();
    let wanted = json!({"name": "deployment", "kinds": ["apps/Deployment"], "versions": ["v1"]});
    assert_eq!(*of("deployment"), wanted);
}

/// A kind without a preset is asked for what all kinds have in common, and so is each line of a stream.
#[test]
fn an_object_gets_a_line_whatever_it_lacks() {
    let cached = |observed: u64, conditions: Value| {
        json!({
            "apiVersion": "example.org/v1", "kind": "Cache", "metadata": {"name": "a", "generation": 3},
            "status": {"observedGeneration": observed, "conditions": conditions},
        })
    };
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    let input = [
        cached(2, ready("Unknown")),
        cached(2, ready("False")),
        cached(3, ready("True")),
        cached(3, json!([{"type": "Reconciling", "status": "True"}])),
        json!({"apiVersion": "apps/v1", "kind": "Deployment"}),
    ];
    let input: String = input.iter().map(|own| format!("{own}\n")).collect();
    let found = lines("guard test --objects - -o json", &input);
    let busy: Vec<&Value> = found.iter().map(|own| &own["by"]).collect();
    assert_eq!(json!(busy), json!([["unseen"], [], [], ["reconciling"], []]));
    let last = json!({"object": "Deployment//", "busy": false, "by": [], "message": ""});
    assert_eq!(found[4], last);
    let named = lines("guard test --preset deployment --objects - -o json", &input);
    assert!(named.iter().all(|own| own["by"] != json!(["reconciling"])), "{named:?}");
}

#[test]
fn an_expression_that_fails_on_an_object_is_named() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "annotations": {"deployment.kubernetes.io/revision": "2"}},
        "status": {"conditions": 5},
    });
    let found = lines("guard test --objects - -o json", &deployment.to_string());
    assert_eq!(found[0]["busy"], false);
    let failed = found[0]["failed"][0].as_str().unwrap();
    assert!(failed.starts_with("rolling cannot be evaluated: "), "{failed}");
}

#[test]
fn a_change_is_decided_by_what_it_touches() {
    let line = "guard test --objects examples/guards/live.yaml --change examples/guards/change.yaml -o json";
    let found = lines(line, "");
    let said: Vec<(&Value, &Value)> = found.iter().map(|own| (&own["decision"], &own["changed"])).collect();
    let template = json!(["spec.template"]);
    assert_eq!(json!(said), json!([["deny", template], ["allow", template], ["allow", []]]));
}

#[rstest]
#[case::preset(
    "guard test --preset deploiment --objects examples/guards/live.yaml",
    "there is no preset deploiment"
)]
#[case::shown("guard presets deploiment", "`interlock guard presets` lists them")]
#[case::file("guard test --objects no-such-file", "no-such-file cannot be read")]
#[case::no_object("guard test --objects Makefile", "Makefile")]
#[case::change(
    "guard test --objects examples/guards/change.yaml --change examples/guards/live.yaml",
    "Certificate/shop/shop of --change is not among the objects"
)]
fn what_cannot_be_asked_is_said(#[case] line: &str, #[case] said: &str) {
    let ended = run(line, "");
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{}", ended.stderr);
}
