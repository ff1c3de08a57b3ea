//! `interlock guard`, without a cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/printed.rs"]
mod printed;

use printed::run;
use rstest::rstest;
use serde_json::{Value, json};

#[test]
fn the_pages_show_what_the_commands_print() {
    printed::assert_shown("docs/guards.md", 5);
    printed::assert_shown("docs/guard-presets.md", 1);
}

/// The page shows the guard of the example as it is.
#[test]
fn the_page_shows_the_guard_of_the_example() {
    let page = std::fs::read_to_string("docs/guards.md").unwrap();
    let guard = std::fs::read_to_string("examples/guards/guard.yaml").unwrap();
    let guard = guard.split_once('\n').unwrap().1;
    assert!(page.contains(&format!("```yaml\n{guard}```")), "{guard}");
}

/// Two kinds of one name are told apart by their groups, and an object of a controller's own is let through.
#[test]
fn a_change_is_that_of_its_object() {
    let object = |api: &str, extra: Value| {
        let mut object = json!({
            "apiVersion": api, "kind": "Service", "metadata": {"name": "a", "generation": 2}, "spec": {"a": 1},
            "status": {"observedGeneration": 1},
        });
        json_patch::merge(&mut object, &extra);
        object
    };
    let owned = json!({"metadata": {"name": "b", "ownerReferences": [{"controller": true}]}});
    let all = [
        object("v1", json!({})),
        object("example.org/v1", json!({})),
        object("example.org/v1", owned.clone()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("change.json");
    let mut changed = owned;
    json_patch::merge(&mut changed, &json!({"spec": {"a": 2}}));
    let changed = [object("v1", json!({"spec": {"a": 2}})), object("example.org/v1", changed)];
    let text = |objects: &[Value]| objects.iter().map(|own| format!("{own}\n")).collect::<String>();
    std::fs::write(&file, text(&changed)).unwrap();
    let line = format!("guard test --preset generic --objects - --change {} -o json", file.display());
    let found = lines(&line, &text(&all));
    let said: Vec<&Value> = found.iter().map(|own| &own["decision"]).collect();
    assert_eq!(json!(said), json!(["deny", "allow", "allow"]));
    assert!(found[2]["message"].as_str().unwrap().ends_with("a controller owns it, and may change it"));
}

/// What is wrong with a guard is said with its field, all of it at once.
#[test]
fn a_wrong_guard_is_refused_with_its_fields() {
    let guard = json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "ClusterChangeGuard", "metadata": {"name": "a"},
        "spec": {
            "match": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["shops"]}]},
            "busyWhen": [{"name": "a", "expression": "oldObject.", "message": "m"}],
            "paths": ["status"],
        },
    });
    let ended = run("guard test -f - --objects examples/guards/live.yaml", &guard.to_string());
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    for field in ["spec.match.resourceRules[0].apiGroups ", "spec.busyWhen[0].expression ", "spec.paths[0] "]
    {
        assert!(ended.stderr.contains(field), "{field}: {}", ended.stderr);
    }
    let other = run("guard test -f examples/guards/change.yaml --objects examples/guards/live.yaml", "");
    assert!(other.code == 2 && other.stderr.contains("holds 2 objects"), "{}", other.stderr);
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
    assert_eq!(json!(said), json!([["deny", template], ["allow", template], ["allow", []], ["allow", []]]));
}

#[rstest]
#[case::preset(
    "guard test --preset deploiment --objects examples/guards/live.yaml",
    "there is no preset deploiment"
)]
#[case::shown("guard presets deploiment", "`interlock guard presets` lists them")]
#[case::file("guard test --objects no-such-file", "no-such-file cannot be read")]
#[case::no_object("guard test --objects Makefile", "Makefile")]
#[case::twice_stdin("guard test --objects - --change -", "standard input can be only one of the files")]
#[case::no_change(
    "guard test --objects examples/guards/live.yaml --change /dev/null",
    "--change holds no object"
)]
#[case::change(
    "guard test --objects examples/guards/change.yaml --change examples/guards/live.yaml",
    "Certificate/shop/shop of --change is not among the objects"
)]
fn what_cannot_be_asked_is_said(#[case] line: &str, #[case] said: &str) {
    let ended = run(line, "");
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{}", ended.stderr);
}
