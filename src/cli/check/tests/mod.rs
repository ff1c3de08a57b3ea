//! Runs of the command on files.

use std::fs;

use clap::Parser;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::revision;
use interlock_core::api::rule::{Rule, RuleGroup};
use interlock_core::api::stamp::SpecHash;
use interlock_core::kinds;
use regex::Regex;
use rstest::rstest;
use serde_json::{Value, json};

use super::decision::ObjectDecision;
use super::*;

mod streams;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    arguments: CheckArguments,
}

const VERSION: &str = "apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: kafka-1, namespace: team}
spec:
  operator: {name: kafka}
  version: 1.0.0
  parameters:
  - {name: NODES, value-type: integer, default: \"3\"}
  - {name: PASSWORD}
  plans: {deploy: {}, update: {}}
";
const INSTANCE: &str = "apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: prod, namespace: team}
spec:
  operatorVersion: {name: kafka-1}
  parameters: {NODES: \"3\", PASSWORD: s3cret}
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("objects")).unwrap();
    write("objects/all.yaml", &format!("# objects\n---\n{VERSION}---\n{INSTANCE}"));
    write("objects/README.md", "no object");
    write("new.yaml", &INSTANCE.replace("\"3\"", "\"5\""));
    write("wrong.yaml", &INSTANCE.replace("\"3\"", "many"));
    let running = format!(
        "{INSTANCE}  planExecution: {{planName: deploy, uid: u, status: IN_PROGRESS}}\nstatus: {{planStatus: {{deploy: {{name: deploy, uid: u, status: IN_PROGRESS}}}}}}\n"
    );
    write("running.yaml", &running);
    write("kindless.yaml", "metadata: {name: prod, namespace: team}\n");
    write("metadata.yaml", &INSTANCE.replace("{name: prod, namespace: team}", "7"));
    write("another.yaml", &INSTANCE.replace("name: prod", "name: led"));
    write("elsewhere.yaml", &INSTANCE.replace("namespace: team", "namespace: other"));
    write("generated.yaml", &INSTANCE.replace("name: prod", "generateName: prod-"));
    write("version.yaml", VERSION);
    write("bare.yaml", &INSTANCE.replace(", namespace: team", ""));
    write("two.yaml", &format!("{INSTANCE}---\n{INSTANCE}"));
    fs::create_dir(folder.path().join("empty")).unwrap();
    folder
}

/// A report, with the first decision at hand.
#[derive(Debug)]
struct Checked(Report);

impl Checked {
    fn allowed(&self) -> bool {
        self.0.is_allowed()
    }

    fn text(&self) -> String {
        ReportFormat::Text.of(&self.0, None)
    }

    fn json(&self) -> Value {
        let mut report: Value = serde_json::from_str(&ReportFormat::Json.of(&self.0, None)).unwrap();
        report["objects"][0].take()
    }

    fn first(&self) -> &ObjectDecision {
        &self.0.decisions[0]
    }

    /// The verdicts, in order.
    fn verdicts(&self) -> Vec<&'static str> {
        self.0.decisions.iter().map(|decision| decision.verdict.as_str()).collect()
    }
}

fn check(folder: &tempfile::TempDir, line: &str) -> anyhow::Result<Checked> {
    let at = |word: &str| match word.starts_with("./") {
        true => folder.path().join(&word[2..]).display().to_string(),
        false => word.to_owned(),
    };
    let words = std::iter::once("check".to_owned()).chain(line.split_whitespace().map(at));
    run(&Cli::try_parse_from(words)?.arguments, crate::kinds::all()).map(Checked)
}

#[rstest]
#[case::service(
    "v1",
    "Service",
    "Service default: Interlock has no rules about Service of v1, and no CustomResourceDefinition of it is known: add it with --objects"
)]
#[case::group(
    "example.com/v1beta1",
    "Instance",
    "Interlock has no rules about Instance of example.com/v1beta1"
)]
fn nothing_is_decided_about_other_kinds(#[case] api_version: &str, #[case] kind: &str, #[case] text: &str) {
    let folder = folder();
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "default"}});
    fs::write(folder.path().join("other.yaml"), object.to_string()).unwrap();
    let error = format!("{:#}", check(&folder, "-f ./other.yaml").err().unwrap());
    assert!(error.contains("nothing is decided: ") && error.contains(text), "{error}");
    let error = format!("{:#}", check(&folder, "-f ./new.yaml --old ./other.yaml").err().unwrap());
    assert!(error.contains("give the same object before and after"), "{error}");
    // Beside an object that is decided about, it is counted.
    let checked = check(&folder, "-f ./other.yaml ./new.yaml --objects ./objects").unwrap();
    assert_eq!(checked.verdicts(), ["not checked", "allowed"], "{}", checked.text());
}

/// The API server does not send a new ConfigMap to the webhook, so `check` allows it as well.
#[test]
fn every_known_kind_is_answered() {
    let folder = folder();
    for gvk in kinds::guarded(crate::kinds::all()).iter().map(|guarded| guarded.resource.gvk()) {
        let object =
            json!({"apiVersion": gvk.api_version(), "kind": gvk.kind, "metadata": {"name": "x"}, "spec": {}});
        fs::write(folder.path().join("known.yaml"), object.to_string()).unwrap();
        let verdict = check(&folder, "-f ./known.yaml").unwrap();
        assert!(!verdict.text().contains("request-unknown"), "{}", verdict.text());
    }
}

#[rstest]
#[case::create("-f ./new.yaml --operation create --objects ./objects", true, "deploy")]
#[case::update_of_what_is_there("-f ./new.yaml --objects ./objects", true, "update")]
#[case::update_from_a_file("-f ./new.yaml --old ./running.yaml --objects ./objects", false, "")]
#[case::namespace_of_the_old_one("-f ./bare.yaml --old ./new.yaml --objects ./objects", true, "update")]
#[case::same_plan("-f ./new.yaml --old ./running.yaml --objects ./objects --freeze same-plan", false, "")]
#[case::wrong_value("-f ./wrong.yaml --objects ./objects", false, "")]
#[case::no_version("-f ./new.yaml", false, "")]
#[case::delete("-f ./new.yaml --operation delete --objects ./objects", true, "")]
#[case::bookkeeping(
    "-f ./wrong.yaml --objects ./objects --user system:serviceaccount:interlock-system:interlock",
    true,
    ""
)]
#[case::another_controller("-f ./wrong.yaml --objects ./objects --user me --controller-user me", true, "")]
fn decisions(#[case] line: &str, #[case] allowed: bool, #[case] plan: &str) {
    let folder = folder();
    let verdict = check(&folder, line).unwrap();
    assert_eq!(verdict.allowed(), allowed, "{}", verdict.text());
    if allowed {
        assert_eq!(verdict.first().plan.as_deref().unwrap_or_default(), plan);
    }
    assert!(!verdict.json()["message"].to_string().contains("s3cret"));
}

fn interlock(rule: &str) -> String {
    format!(
        "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {{name: default}}\nspec:\n  rules:\n  - {rule}\n"
    )
}

#[rstest]
#[case::everywhere("{group: freeze, action: Warn}", true, "warns here")]
#[case::off("{group: freeze, action: \"Off\"}", true, "")]
#[case::another_group("{group: parameters, action: Warn}", false, "")]
#[case::by_name(
    "{group: freeze, action: Warn, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}}",
    true,
    "warns here"
)]
#[case::another_namespace(
    "{group: freeze, action: Warn, namespaceSelector: {matchLabels: {tier: dev}}}",
    false,
    ""
)]
fn settings(#[case] rule: &str, #[case] allowed: bool, #[case] warning: &str) {
    let folder = folder();
    fs::write(folder.path().join("interlock.yaml"), interlock(rule)).unwrap();
    let line = "-f ./new.yaml --old ./running.yaml --objects ./objects --interlock ./interlock.yaml";
    let verdict = check(&folder, line).unwrap();
    assert_eq!(verdict.allowed(), allowed, "{}", verdict.text());
    assert_eq!(verdict.text().contains("Warning: "), !warning.is_empty());
    assert!(verdict.text().contains(warning));
}

/// What the API server takes of an Interlock, and the process ignores.
#[rstest]
#[case::problem(
    "Warn}",
    "Warn}\n  capabilities: {polcies: {mode: auto}}",
    "Warning: spec.capabilities.polcies: "
)]
#[case::name(
    "name: default",
    "name: strict",
    "Warning: metadata.name: only the Interlock named \"default\" is honoured"
)]
fn what_is_ignored_of_an_interlock_is_warned_of(
    #[case] find: &str,
    #[case] replace: &str,
    #[case] text: &str,
) {
    let folder = folder();
    let object = interlock("{group: freeze, action: Warn}");
    fs::write(folder.path().join("interlock.yaml"), &object).unwrap();
    let right = check(&folder, "-f ./interlock.yaml").unwrap();
    assert!(right.allowed() && !right.text().contains("Warning"), "{}", right.text());
    fs::write(folder.path().join("interlock.yaml"), object.replace(find, replace)).unwrap();
    let found = check(&folder, "-f ./interlock.yaml").unwrap();
    assert!(found.allowed() && found.text().contains(text), "{}", found.text());
}

/// What only a definition refuses is not taken for right.
#[test]
fn that_no_definition_of_a_kind_is_known_is_said() {
    let folder = folder();
    let write = |kind: &str, api_version: &str| {
        let target = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "api"});
        let spec = json!({"targetRef": target, "rules": {"authentication": {"all": {"anonymous": {}}}}});
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        fs::write(folder.path().join("x.yaml"), object.to_string()).unwrap();
    };
    write("AuthPolicy", "kuadrant.io/v1");
    let found = check(&folder, "-f ./x.yaml").unwrap();
    let text = "note: only the rules are asked: no CustomResourceDefinition of AuthPolicy is known";
    assert!(found.allowed() && found.text().contains(text), "{}", found.text());
    // Kinds of Kubernetes have none.
    write("ConfigMap", "v1");
    let found = check(&folder, "-f ./x.yaml").unwrap();
    assert!(found.allowed() && !found.text().contains("note:"), "{}", found.text());
}

#[rstest]
#[case::group("{group: lock, action: Warn}", "spec.rules[0].group: group lock always denies")]
#[case::bare_off("{group: freeze, action: Allow}", "spec.rules[0].action: \"Allow\" is no action")]
#[case::selector(
    "{group: freeze, action: Warn, namespaceselector: {}}",
    "spec.rules[0].namespaceselector is no field of an Interlock: correct it (there are action, group, namespaceSelector)"
)]
#[case::below_the_selector(
    "{group: freeze, action: Warn, namespaceSelector: {matchLabel: {tier: dev}}}",
    "spec.rules[0].namespaceSelector.matchLabel is no field of an Interlock: correct it (there are matchExpressions, matchLabels)"
)]
#[case::requirement(
    "{group: freeze, action: Warn, namespaceSelector: {matchExpressions: [{key: a, operator: In, value: [b]}]}}",
    "spec.rules[0].namespaceSelector.matchExpressions[0].value is no field"
)]
fn settings_that_do_not_hold_are_errors(#[case] rule: &str, #[case] text: &str) {
    let error = settings_error(&interlock(rule));
    assert!(error.contains(text), "{error}");
}

#[rstest]
#[case::name(
    "metadata: {name: default}",
    "metadata: {name: strict}",
    "metadata.name is \"strict\", and only the Interlock named \"default\" is honoured: name it so"
)]
#[case::deleted(
    "name: default",
    "name: default, deletionTimestamp: \"2024-01-01T00:00:00Z\"",
    "an Interlock that is being deleted is not honoured: leave --interlock out"
)]
#[case::beside_the_spec("spec:", "rules: []\nspec:", "rules is no field of an Interlock")]
#[case::in_the_spec("  rules:", "  rule: []\n  rules:", "spec.rule is no field of an Interlock")]
#[case::capability(
    "spec:",
    "spec:\n  capabilities: {routes: {modus: manual}}",
    "spec.capabilities.routes.modus is no field of an Interlock: correct it (there are mode)"
)]
#[case::mode(
    "spec:",
    "spec:\n  capabilities: {routes: {mode: never}}",
    "spec.capabilities.routes.mode: \"never\" is no mode"
)]
#[case::type_("spec:", "spec:\n  instances: x", "the Interlock cannot be read")]
fn what_the_process_would_not_honour_is_an_error(
    #[case] find: &str,
    #[case] replace: &str,
    #[case] text: &str,
) {
    let whole = interlock("{group: freeze, action: Warn}");
    let error = settings_error(&whole.replacen(find, replace, 1));
    assert!(error.contains(text), "{error}");
}

/// The API server returns more fields than were written.
#[test]
fn an_interlock_of_a_cluster_is_read() {
    let folder = folder();
    let text = interlock("{group: freeze, action: Warn, namespaceSelector: {matchLabels: {a/b.c: d}}}")
        .replace(
            "{name: default}",
            "{name: default, deletionTimestamp: null, generation: 3, managedFields: [{manager: kubectl}]}",
        );
    let text = format!("{text}status: {{observedGeneration: 3, later: [{{a: b}}]}}\n");
    fs::write(folder.path().join("interlock.yaml"), text).unwrap();
    check(&folder, "-f ./new.yaml --objects ./objects --interlock ./interlock.yaml").unwrap();
}

fn settings_error(text: &str) -> String {
    let folder = folder();
    fs::write(folder.path().join("interlock.yaml"), text).unwrap();
    let line = "-f ./new.yaml --objects ./objects --interlock ./interlock.yaml";
    format!("{:#}", check(&folder, line).err().unwrap())
}

#[rstest]
#[case::two_with_an_old_one(
    "-f ./two.yaml --old ./new.yaml",
    "--old is about one object, and -f holds 2: give --objects instead"
)]
#[case::standard_input_twice("-f - --objects -", "standard input is given twice")]
#[case::no_object_at_all("-f ./empty", "-f holds no object: give a file or a folder with one")]
#[case::absent("-f ./lost.yaml", "; give a file of YAML or JSON, or - for standard input")]
#[case::another_name(
    "-f ./new.yaml --old ./another.yaml",
    "--old is Instance team/led, -f is Instance team/prod: give the same object before and after"
)]
#[case::another_namespace(
    "-f ./new.yaml --old ./elsewhere.yaml",
    "--old is Instance other/prod, -f is Instance team/prod: give the same object"
)]
#[case::another_kind(
    "-f ./new.yaml --old ./version.yaml --operation delete",
    "--old is OperatorVersion team/kafka-1, -f is Instance team/prod: give the same object"
)]
#[case::no_name_yet(
    "-f ./generated.yaml --old ./new.yaml",
    "-f is Instance team/prod-: give the same object"
)]
#[case::absent_objects("-f ./new.yaml --objects ./lost", "; give a file of YAML or JSON")]
#[case::no_object(
    "-f ./objects/README.md",
    "no Kubernetes object: give it apiVersion, kind and metadata, or leave it out"
)]
#[case::no_metadata("-f ./metadata.yaml", "a document of kind Instance whose metadata is 7: write a mapping")]
#[case::old("-f ./new.yaml --old ./metadata.yaml", "whose metadata is 7: write a mapping")]
#[case::object("-f ./new.yaml --objects ./metadata.yaml", "whose metadata is 7: write a mapping")]
#[case::no_kind("-f ./kindless.yaml", "no apiVersion or no kind: add both")]
#[case::no_old("-f ./new.yaml --operation update", "give --old")]
fn errors(#[case] line: &str, #[case] text: &str) {
    let error = format!("{:#}", check(&folder(), line).err().unwrap());
    assert!(error.contains(text), "{error}");
}

#[test]
fn json_has_every_key_in_both_cases() {
    let folder = folder();
    let keys = [
        "allowed",
        "apiVersion",
        "causes",
        "code",
        "file",
        "kind",
        "line",
        "message",
        "name",
        "namespace",
        "notEvaluated",
        "note",
        "object",
        "patch",
        "plan",
        "reason",
        "rules",
        "verdict",
        "warnings",
    ];
    for line in ["-f ./new.yaml --objects ./objects", "-f ./wrong.yaml --objects ./objects"] {
        let json = check(&folder, line).unwrap().json();
        let mut found: Vec<&String> = json.as_object().unwrap().keys().collect();
        found.sort();
        assert_eq!(found, keys);
    }
    let json = check(&folder, "-f ./new.yaml --objects ./objects").unwrap().json();
    assert_eq!(json["object"]["spec"]["planExecution"]["planName"], "update");
    assert_eq!(json["code"], 200);
}

/// The rules with a page of their own; those about flavors share one.
fn denials() -> impl Iterator<Item = Rule> {
    kinds::rules(crate::kinds::all()).filter(|rule| rule.page().starts_with("docs/denials/"))
}

/// Texts of the page about flavors, with their rules.
fn texts_of_the_page() -> Vec<(String, Regex)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/router-flavor.md");
    let page = fs::read_to_string(path).unwrap();
    let rows = page.split("\n## The rules\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut rule = String::new();
    let mut texts = Vec::new();
    for row in rows.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        if !cells[0].is_empty() {
            rule = cells[0].to_owned();
        }
        let text = cells[2].trim_matches('`').trim();
        if rule.starts_with("RF") && !text.is_empty() {
            let pattern = regex::escape(text).replace("\\.\\.\\.", ".+?");
            texts.push((rule.clone(), Regex::new(&pattern).unwrap()));
        }
    }
    texts
}

/// Each text of the page is a message of a rule, and each message is on the page.
fn flavor_rules() -> impl Iterator<Item = Rule> {
    kinds::rules(crate::kinds::all()).filter(|rule| rule.group() == RuleGroup::Flavors)
}

#[test]
fn the_page_about_flavors_says_what_the_rules_say() {
    let texts = texts_of_the_page();
    for rule in flavor_rules() {
        assert!(texts.iter().any(|(id, _)| id == rule.id()), "the page lacks {}", rule.id());
    }
    let goldens = ["kubectl", "check"].map(goldens_about_flavors).concat();
    // Tables of messages that need no cluster.
    let tables = ["crates/interlock-kong/src/data_plane/flavor", "crates/interlock-kong/src/tests"]
        .map(sources)
        .concat()
        .replace("\\\"", "\"");
    for (id, text) in &texts {
        let api_message = goldens.lines().chain(tables.lines()).any(|line| text.is_match(line));
        assert!(api_message, "{id}: nobody says {text}");
    }
    let warning = Regex::new(r"^Warning: (.+) \[(RF\d\d)\]$").unwrap();
    let refusal = Regex::new(r"^(?:The .+ is invalid: [a-zA-Z.]+: )?(.+) \[(RF\d\d)\]$").unwrap();
    for line in goldens.lines().filter(|line| !line.contains(" ... [")) {
        let Some(found) = warning.captures(line).or_else(|| refusal.captures(line)) else { continue };
        let known = texts.iter().any(|(id, text)| *id == found[2] && text.is_match(&found[1]));
        assert!(known, "not on the page: {line}");
    }
}

/// The content of the sources below a folder.
fn sources(folder: &str) -> String {
    let mut text = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => text += &fs::read_to_string(path).unwrap(),
            }
        }
    }
    text
}

/// kubectl's output for rules about flavors, or that of `interlock check` for the same changes.
fn goldens_about_flavors(folder: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let paths = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let of_flavors = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("flavor-");
    paths.filter(of_flavors).map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[rstest]
#[case("kubectl")]
#[case("check")]
fn every_rule_about_flavors_has_a_golden(#[case] folder: &str) {
    let text = goldens_about_flavors(folder);
    for rule in flavor_rules() {
        assert!(text.contains(&format!("[{}]\n", rule.id())), "tests/data/{folder} lacks {}", rule.id());
    }
    // RF11 has no message.
    assert!(text.contains("# RF11\n"));
}

/// A DataPlane with a pod template of 40 KB, as a cluster holds it with `traditional_compatible` staged, by a
/// stamp without room for what its flavor is read from.
#[rstest]
#[case::with_its_flavor(json!({"flavor": "traditional"}), None, "RF06")]
#[case::bare(json!({}), None, "RF10")]
#[case::bare_with_its_revision(json!({}), Some("revision.yaml"), "RF06")]
fn a_large_data_plane_is_judged_by_what_is_live(
    #[case] stamped: Value,
    #[case] objects: Option<&str>,
    #[case] rule: &str,
) {
    let plane = |flavor: &str| {
        json!({
            "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
            "metadata": {"name": "edge", "namespace": "kong", "uid": "0123456789"},
            "spec": {"deployment": {
                "rollout": {"strategy": {"blueGreen": {}}},
                "podTemplateSpec": {
                    "metadata": {"annotations": {"filler": "x".repeat(40 * 1024)}},
                    "spec": {"containers": [{"name": "proxy", "image": "kong:3.9",
                        "env": [{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]}]},
                },
            }},
        })
    };
    let mut live = plane("traditional");
    live["spec"]["deployment"].as_object_mut().unwrap().remove("rollout");
    let live = live["spec"].to_string();
    let hash = SpecHash::of(&live);
    let mut stamp = json!({"v": 1, "hash": hash, "ref": "ControllerRevision", "uid": "0123456789"});
    json_patch::merge(&mut stamp, &stamped);
    let mut old = plane("traditional_compatible");
    old["metadata"]["annotations"] = json!({meta::LAST_APPLIED_SPEC: stamp.to_string()});
    let key = NamespacedName::new("kong", "edge");
    let owner = revision::RevisionOwner {
        api_version: "gateway-operator.konghq.com/v1beta1",
        kind: "DataPlane",
        key: &key,
        uid: "0123456789",
        revision: 1,
    };
    let mut kept = revision::parts(&owner, &hash, &live).unwrap().remove(0);
    kept["metadata"]["namespace"] = json!("kong");
    let folder = folder();
    for (name, object) in [("old.yaml", &old), ("next.yaml", &plane("expressions")), ("revision.yaml", &kept)]
    {
        fs::write(folder.path().join(name), object.to_string()).unwrap();
    }
    let objects = objects.map(|file| format!(" --objects ./{file}")).unwrap_or_default();
    let verdict = check(&folder, &format!("-f ./next.yaml --old ./old.yaml{objects}")).unwrap();
    assert!(verdict.text().contains(&format!("[{rule}]")), "{}", verdict.text());
    assert_eq!(verdict.allowed(), rule == "RF10", "{}", verdict.text());
}

#[rstest]
#[case::texts(json!({"stringData": {"a": "x"}}), json!({"data": {"a": "eA=="}}))]
#[case::both(json!({"data": {"a": "eQ==", "b": "eg=="}, "stringData": {"a": "x"}}), json!({"data": {"a": "eA==", "b": "eg=="}}))]
#[case::neither(json!({}), json!({}))]
fn a_secret_is_judged_as_it_is_stored(#[case] given: Value, #[case] stored: Value) {
    let secret = |mut object: Value| {
        json_patch::merge(
            &mut object,
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}),
        );
        object
    };
    let mut object = secret(given);
    object::as_stored(&mut object);
    assert_eq!(object, secret(stored));
}

/// Every rule has a page with the problem, the reason and the remedy, and every page a rule.
#[test]
fn pages_and_rules_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/denials");
    let mut pages: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    pages.sort();
    let mut rules: Vec<String> = denials().map(|rule| format!("{}.md", rule.id())).collect();
    rules.sort();
    assert_eq!(pages, rules);
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    for rule in denials() {
        let page = fs::read_to_string(folder.join(format!("{}.md", rule.id()))).unwrap();
        assert!(page.starts_with(&format!("# {}\n", rule.id())), "{}", rule.id());
        for part in ["\n## What is refused\n", "\n## Why\n", "\n## What to do\n"] {
            assert!(page.contains(part), "{} lacks{part}", rule.id());
        }
        assert!(list.contains(&format!("]({}.md)", rule.id())), "README.md lacks {}", rule.id());
    }
}
