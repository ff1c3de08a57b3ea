//! Streams, folders, packages and states: several objects, each on what the ones before leave.

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// Checks these files of a folder.
fn files(files: &[(&str, &str)], line: &str) -> anyhow::Result<Checked> {
    let folder = folder();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    check(&folder, line)
}

fn error(text: &str) -> String {
    format!("{:#}", files(&[("a.yaml", text)], "-f ./a.yaml").err().unwrap())
}

/// A version before its Instance is known to it; without it the Instance is refused.
#[test]
fn each_object_is_decided_on_what_the_ones_before_leave() {
    let stream = format!("{VERSION}---\n{INSTANCE}");
    let checked = files(&[("a.yaml", &stream)], "-f ./a.yaml").unwrap();
    assert_eq!(checked.verdicts(), ["allowed", "allowed"], "{}", checked.text());
    assert_eq!(checked.0.decisions[1].plan.as_deref(), Some("deploy"));
    let stream = format!("{INSTANCE}---\n{VERSION}");
    let checked = files(&[("a.yaml", &stream)], "-f ./a.yaml").unwrap();
    assert_eq!(checked.verdicts(), ["refused", "allowed"], "{}", checked.text());
    assert!(checked.text().contains("[version-missing]"), "{}", checked.text());
}

/// What a refused object would have left is not there for those after it.
#[test]
fn a_refused_object_leaves_nothing() {
    let stream = format!("{}---\n{INSTANCE}", VERSION.replace("spec:\n", "spec:\n  unknown: 1\n"));
    let checked = files(&[("a.yaml", &stream)], "-f ./a.yaml").unwrap();
    assert_eq!(checked.verdicts(), ["refused", "refused"], "{}", checked.text());
}

/// The first creates, and schedules a plan; the second changes what runs.
#[test]
fn a_second_version_of_an_object_is_an_update_of_the_first() {
    let stream = format!("{VERSION}---\n{INSTANCE}---\n{}", INSTANCE.replace("\"3\"", "\"5\""));
    let checked = files(&[("a.yaml", &stream)], "-f ./a.yaml").unwrap();
    assert_eq!(checked.verdicts(), ["allowed", "allowed", "refused"], "{}", checked.text());
    assert_eq!(checked.0.decisions[2].rules, ["plan-running"]);
    let text = checked.text();
    assert!(text.contains("a.yaml:19)\n"), "{text}");
    assert!(text.ends_with("\n3 objects: 2 allowed, 1 refused, 0 not checked\n"), "{text}");
}

#[test]
fn an_object_that_is_deleted_is_gone_for_those_after_it() {
    let version = VERSION.replace("kafka-1", "kafka-2");
    let instance = INSTANCE.replace("kafka-1", "kafka-2");
    let given = [("state/v.yaml", version.as_str()), ("state/i.yaml", &instance), ("a/1.yaml", &version)];
    let delete = "--objects ./state --operation delete";
    let checked = files(&given, &format!("-f ./a {delete}")).unwrap();
    assert_eq!(checked.verdicts(), ["refused"], "{}", checked.text());
    let given = [&given[..], &[("a/0.yaml", &instance)]].concat();
    let checked = files(&given, &format!("-f ./a {delete}")).unwrap();
    assert_eq!(checked.verdicts(), ["allowed", "allowed"], "{}", checked.text());
}

/// In the order of their names, folders in their place; other files are left out.
#[test]
fn folders_are_read_in_order() {
    let given = [
        ("a/2.yml", INSTANCE),
        ("a/1/version.yaml", VERSION),
        ("a/3.json", "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}"),
        ("a/0.md", "no object"),
    ];
    let checked = files(&given, "-f ./a").unwrap();
    assert_eq!(checked.verdicts(), ["allowed", "allowed"], "{}", checked.text());
    assert_eq!(checked.first().kind, "OperatorVersion");
}

#[test]
fn a_list_is_its_items_with_their_lines() {
    let indented = |text: &str| text.trim_end().replace('\n', "\n  ");
    let list = format!(
        "apiVersion: v1\nkind: List\nmetadata: {{resourceVersion: \"\"}}\nitems:\n- {}\n- {}\n",
        indented(VERSION),
        indented(&INSTANCE.replace("\"3\"", "many"))
    );
    let checked = files(&[("a.yaml", &list)], "-f ./a.yaml").unwrap();
    assert_eq!(checked.verdicts(), ["allowed", "refused"], "{}", checked.text());
    let lines: Vec<usize> = checked.0.decisions.iter().map(|decision| decision.place.line).collect();
    assert_eq!(lines, [5, 15]);
    let cause = &checked.0.decisions[1].refusal.as_ref().unwrap().causes[0];
    assert_eq!((cause.field.as_str(), cause.place.line), ("spec.parameters.NODES", 20));
}

/// As `kubectl get -o json` prints them.
#[test]
fn a_list_of_json_has_lines_as_well() {
    let instance = |name: &str| json!({"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": name}, "spec": {"unknown": 1}});
    let list = format!("{:#}", json!({"items": [instance("a"), instance("b")], "kind": "List"}));
    let line = |text: &str, nth: usize| {
        list.lines().enumerate().filter(|(_, line)| line.contains(text)).nth(nth).unwrap().0 + 1
    };
    let checked = files(&[("a.json", &list)], "-f ./a.json").unwrap();
    for (i, decision) in checked.0.decisions.iter().enumerate() {
        let cause = &decision.refusal.as_ref().unwrap().causes[0];
        assert_eq!((cause.field.as_str(), cause.place.line), ("spec.unknown", line("unknown", i)), "{list}");
    }
}

/// As `interlock package install` writes them; an Instance after the package knows it.
#[test]
fn a_package_is_its_operator_and_its_version() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/first/operator");
    let instance = "apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: demo}\nspec:\n  operatorVersion: {name: first-0.1.0}\n";
    let line = format!("-f {} ./a.yaml -n team", examples.display());
    let checked = files(&[("a.yaml", instance)], &line).unwrap();
    assert_eq!(checked.verdicts(), ["allowed"; 3], "{}", checked.text());
    assert_eq!(checked.0.decisions[2].subject(), "Instance team/demo");
}

/// So is its archive, which may name nothing that has to be downloaded.
#[test]
fn an_archive_is_a_package_too() {
    let packed = |task: &str| {
        let operator = format!("name: first\noperatorVersion: 0.1.0\ntasks: [{task}]\n");
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, text) in [("operator.yaml", operator.as_str()), ("params.yaml", "parameters: []\n")] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            archive.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    };
    let folder = folder();
    let checked = |task: &str| {
        fs::write(folder.path().join("first.tgz"), packed(task)).unwrap();
        check(&folder, "-f ./first.tgz -n team")
    };
    let found = checked("").unwrap();
    assert_eq!(found.verdicts(), ["allowed"; 2], "{}", found.text());
    assert!(found.0.decisions[1].subject().contains("first-0.1.0"));
    let error =
        checked("{name: t, kind: KudoOperator, spec: {package: 'https://host/db.tgz'}}").err().unwrap();
    assert!(format!("{error:#}").contains("this command downloads nothing"), "{error:#}");
}

#[rstest]
#[case::no_mark_between_manifests(
    "apiVersion: v1\nkind: A\nmetadata: {name: a}\napiVersion: v1\nkind: B\nmetadata: {name: b}\n",
    "a.yaml:4: the key apiVersion is in line 1 already: where a second manifest begins, put a line with --- before it"
)]
#[case::in_the_second_document(
    "kind: A\nmetadata: {name: a}\n---\nkind: B\nmetadata: {name: b}\nspec:\n  a: 1\n  a: 2\n",
    "a.yaml:8: the key a is in line 7 already: remove one of both"
)]
#[case::json(
    "{\"kind\": \"A\",\n\t\"kind\": \"B\"}",
    "a.yaml:2: the object has the key kind twice: remove one of both"
)]
#[case::no_yaml("kind: A\nmetadata: [\n", "a.yaml:")]
#[case::no_metadata("kind: A\n---\nkind: B\n", "a.yaml:1: ")]
fn what_cannot_be_read_is_named_with_its_line(#[case] text: &str, #[case] expected: &str) {
    let error = error(text);
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case::unknown_field("Instance", "  unknown: 1\n", 400, "spec.unknown", "schema-unknown-field", 5)]
#[case::type_("Operator", "  maintainers:\n  - a\n", 422, "spec.maintainers[0]", "schema-type", 6)]
fn the_schema_refuses_with_places(
    #[case] kind: &str,
    #[case] spec: &str,
    #[case] code: u64,
    #[case] field: &str,
    #[case] rule: &str,
    #[case] line: usize,
) {
    let text = format!(
        "apiVersion: kudo.dev/v1beta1\nkind: {kind}\nmetadata: {{name: prod, namespace: team}}\nspec:\n{spec}"
    );
    let checked = files(&[("a.yaml", &text)], "-f ./a.yaml").unwrap();
    let refusal = checked.first().refusal.as_ref().unwrap();
    assert_eq!(refusal.code, code, "{}", checked.text());
    let found =
        (refusal.causes[0].field.as_str(), refusal.causes[0].rule.as_str(), refusal.causes[0].place.line);
    assert_eq!(found, (field, rule, line));
}

#[test]
fn the_schema_of_an_interlock_is_asked() {
    let checked = files(&[("a.yaml", &interlock("{group: lock, action: Warn}"))], "-f ./a.yaml").unwrap();
    assert_eq!(checked.first().rules, ["schema-rule"], "{}", checked.text());
    assert!(checked.text().contains("spec.rules[0].group: group lock always denies"), "{}", checked.text());
    let checked = files(&[("a.yaml", &interlock("{group: freeze, action: Warn}"))], "-f ./a.yaml").unwrap();
    assert!(checked.allowed() && checked.0.unevaluated() == 0, "{}", checked.text());
}

#[test]
fn a_version_that_is_not_served_is_refused() {
    let text = INSTANCE.replace("kudo.dev/v1beta1", "kudo.dev/v1");
    let checked = files(&[("a.yaml", &text)], "-f ./a.yaml").unwrap();
    assert!(
        checked.text().contains("kudo.dev/v1 is not served: write one of kudo.dev/v1beta1"),
        "{}",
        checked.text()
    );
}

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.example.com}
spec:
  group: example.com
  names: {kind: Disk, plural: disks}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
            x-kubernetes-validations:
            - {rule: self.size >= oldSelf.size, message: a disk does not shrink}
            - {rule: 'cel.bind(s, self.size, s > 0)'}
";

/// The definition, an object of it and a change, in one stream; the rule that cannot be asked is named.
#[test]
fn a_definition_of_the_stream_is_asked_about_the_objects_after_it() {
    let disk = |size: u8| {
        format!("apiVersion: example.com/v1\nkind: Disk\nmetadata: {{name: a}}\nspec: {{size: {size}}}\n")
    };
    let stream = [DEFINITION.to_owned(), disk(3), disk(5), disk(4)].join("---\n");
    let checked = files(&[("a.yaml", &stream)], "-f ./a.yaml").unwrap();
    assert_eq!(checked.verdicts(), ["not checked", "allowed", "allowed", "refused"], "{}", checked.text());
    let text = checked.text();
    assert!(text.contains("spec: a disk does not shrink [schema-rule]"), "{text}");
    assert!(text.contains("Not evaluated: spec: cel.bind(s, self.size, s > 0): "), "{text}");
    assert!(
        text.ends_with("4 objects: 2 allowed, 1 refused, 1 not checked; rules of schemas not evaluated: 3\n"),
        "{text}"
    );
    for output in [ReportFormat::Json, ReportFormat::Junit, ReportFormat::Sarif] {
        assert!(output.of(&checked.0, None).contains("cel.bind"), "{output:?}");
    }
}

/// All that a report can say: allowed, refused by the webhook and by a schema, warned, not checked, not evaluated.
fn everything() -> (tempfile::TempDir, Report) {
    let folder = folder();
    let stream = [
        VERSION,
        &INSTANCE.replace("\"3\"", "\"5\""),
        &INSTANCE.replace("name: prod", "name: stage").replace("NODES: \"3\"", "NODES: <many>"),
        "apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {name: dev}\nspec:\n  parameters:\n    NODES: 3\n  operatorVersion: []\n",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
        DEFINITION,
        "apiVersion: example.com/v1\nkind: Disk\nmetadata: {name: a}\nspec:\n  size: 1\n",
    ]
    .join("---\n");
    fs::write(folder.path().join("a & b.yaml"), stream).unwrap();
    let words = ["check", "-f", &folder.path().join("a & b.yaml").display().to_string()].map(str::to_owned);
    let report = run(&Cli::try_parse_from(words).unwrap().arguments, crate::kinds::all()).unwrap();
    (folder, report)
}

/// `INTERLOCK_BLESS=1` writes what is printed now.
#[rstest]
#[case(ReportFormat::Text, "stream.txt")]
#[case(ReportFormat::Json, "stream.json")]
#[case(ReportFormat::Junit, "stream.xml")]
#[case(ReportFormat::Sarif, "stream.sarif")]
fn outputs_are_the_goldens(#[case] output: ReportFormat, #[case] name: &str) {
    let (folder, report) = everything();
    let encoded = folder.path().display().to_string();
    let text = output
        .of(&report, None)
        .replace(&format!("file://{encoded}/"), "")
        .replace(&format!("{encoded}/"), "");
    let text = text.replace(&format!("\"{}\"", crate::telemetry::build::VERSION), "\"VERSION\"");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/check").join(name);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    similar_asserts::assert_eq!(fs::read_to_string(&path).unwrap_or_default(), text, "{}", name);
}

#[test]
fn sarif_has_a_rule_for_each_result() {
    let (_folder, report) = everything();
    let sarif: Value = serde_json::from_str(&ReportFormat::Sarif.of(&report, None)).unwrap();
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 5, "{results:#?}");
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(
            Path::new(env!("CARGO_MANIFEST_DIR")).join(rule["properties"]["page"].as_str().unwrap()).exists()
        );
        assert!(result["locations"][0]["physicalLocation"]["region"]["startLine"].as_u64().unwrap() > 0);
    }
}

/// The page names every key of the JSON and every rule about a schema.
#[test]
fn the_page_names_what_is_printed() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/check.md")).unwrap();
    let (_folder, report) = everything();
    let json: Value = serde_json::from_str(&ReportFormat::Json.of(&report, None)).unwrap();
    let top = json.as_object().unwrap().keys().cloned();
    let summary = json["summary"].as_object().unwrap().keys().cloned();
    let object = json["objects"][0].as_object().unwrap().keys().cloned();
    for key in top.chain(summary).chain(object) {
        assert!(["", "."].iter().any(|dot| page.contains(&format!("`{dot}{key}"))), "the page lacks {key}");
    }
    use crd_schema::ErrorKind::{
        Duplicate, Forbidden, Invalid, NotSupported, Required, Rule, TooLong, Type, Undecodable, UnknownField,
    };
    for kind in [
        Duplicate,
        Forbidden,
        Invalid,
        NotSupported,
        Required,
        Rule,
        TooLong,
        Type,
        Undecodable,
        UnknownField,
    ] {
        assert!(page.contains(&format!("`schema-{}`", kind.id())), "the page lacks {}", kind.id());
    }
}
