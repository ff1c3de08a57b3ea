//! `interlock check` says of manifests what a real API server says, guarded by Interlock: the same are admitted, and
//! the same fields are named where they are refused.
//!
//! A file of `cases/` has a valid object and changes of it as merge patches. Each is sent as a dry run with strict
//! field validation, and checked offline; no file says what is to come of it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use interlock::install::{InstallOptions, Part, objects};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::support::client::Answer;
use crate::support::interlock::{binary, interlock};
use crate::support::{Client, Cluster, Interlock, shared, wait_until};

/// A KUDO Instance of this spec.
fn instance(spec: &str) -> String {
    format!("apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata: {{name: a}}\nspec: {spec}\n")
}

/// Nothing refused, something refused, nothing decided; from standard input, without a cluster.
#[test]
fn exit_codes() {
    let version = "apiVersion: kudo.dev/v1beta1\nkind: OperatorVersion\nmetadata: {name: v}\nspec:\n  operator: {name: o}\n  version: 1.0.0\n  plans: {deploy: {}}\n";
    let known = format!("{version}---\n{}", instance("{operatorVersion: {name: v}}"));
    let cases = [
        (known.as_str(), &["-f", "-"][..], 0, "2 objects: 2 allowed, 0 refused, 0 not checked"),
        (&instance("{operatorVersion: {name: v}}"), &["-f", "-"], 1, "[version-missing]"),
        (&instance("{unknown: 1}"), &["-f", "-", "-o", "junit"], 1, "schema-unknown-field"),
        ("kind: [", &["-f", "-"], 2, ""),
        ("", &["-f", "-"], 2, ""),
        ("", &["-o", "junit"], 2, ""),
    ];
    for (input, arguments, code, text) in cases {
        let mut command = Command::new(binary());
        command
            .arg("check")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.status.code(), Some(code), "{stdout}\n{stderr}");
        assert!(stdout.contains(text) && stdout.is_empty() == (code == 2), "{stdout}\n{stderr}");
        assert_eq!(stderr.is_empty(), code != 2, "{stderr}");
    }
}

/// What is said of a change: whether it is admitted, and the fields that are named.
#[derive(Debug, PartialEq)]
struct Said {
    admitted: bool,
    fields: BTreeSet<String>,
}

#[derive(Default)]
struct Compared {
    admitted: usize,
    refused: usize,
    differences: Vec<String>,
}

#[test]
fn check_says_what_the_api_server_says() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    for definition in objects(Part::KongCrds, &InstallOptions::default()).unwrap() {
        define(&admin, &definition);
    }
    let space = cluster.namespace("check");
    let mut compared = Compared::default();
    for name in CASES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/check/cases").join(name);
        let text = std::fs::read_to_string(&file).unwrap().replace("NAMESPACE", space.name());
        let cases = go_template::yaml::read(&text).unwrap();
        compare(name, &cases, &admin, space.name(), &mut compared);
    }
    assert!(compared.differences.is_empty(), "{}", compared.differences.join("\n"));
    assert!(compared.admitted >= 40 && compared.refused >= 60, "{}, {}", compared.admitted, compared.refused);
}

/// Ours, then stock ones; Kong's own definition of DataPlanes replaces ours.
const CASES: [&str; 13] = [
    "interlock.yaml",
    "operator.yaml",
    "operatorversion.yaml",
    "instance.yaml",
    "dataplane.yaml",
    "kong-dataplane.yaml",
    "httproute.yaml",
    "grpcroute.yaml",
    "gateway.yaml",
    "gatewayclass.yaml",
    "controlplane.yaml",
    "referencegrant.yaml",
    "envoyfilter.yaml",
];

fn compare(name: &str, cases: &Value, admin: &Client, namespace: &str, compared: &mut Compared) {
    let folder = tempfile::tempdir().unwrap();
    let objects = folder.path().join("objects");
    std::fs::create_dir(&objects).unwrap();
    for stock in list(&cases["definitions"]) {
        let Some(path) = shared::find(&format!("crds/{}", stock.as_str().unwrap())) else { return };
        let definition = go_template::yaml::read(&std::fs::read_to_string(path).unwrap()).unwrap();
        std::fs::write(objects.join("definition.json"), definition.to_string()).unwrap();
        define(admin, &definition);
    }
    for (i, given) in list(&cases["given"]).iter().enumerate() {
        let stored = admin.post(given["path"].as_str().unwrap(), &given["object"]).ok();
        std::fs::write(objects.join(format!("given-{i}.json")), stored.to_string()).unwrap();
    }
    let path = cases["path"].as_str().unwrap();
    let offline = Offline { admin, folder: folder.path(), namespace };
    for (title, patch) in map(&cases["create"]) {
        let object = patched(&cases["base"], patch);
        let answer = admin.post(&format!("{path}?dryRun=All&fieldValidation=Strict"), &object);
        compared.add(name, title, answer.code, &answer.body, &offline.check(&object, None));
    }
    if map(&cases["update"]).next().is_none() {
        return;
    }
    let stored = admin.post(path, &cases["base"]).ok();
    for (title, patch) in map(&cases["update"]) {
        let object = patched(&stored, patch);
        let one = format!(
            "{path}/{}?dryRun=All&fieldValidation=Strict",
            stored["metadata"]["name"].as_str().unwrap()
        );
        let answer = put_on_current(admin, &one, &object);
        compared.add(
            name,
            &format!("update: {title}"),
            answer.code,
            &answer.body,
            &offline.check(&object, Some(&stored)),
        );
    }
}

/// Puts an object on the version that is stored, as the process that runs here writes status and annotations meanwhile.
fn put_on_current(admin: &Client, path: &str, object: &Value) -> Answer {
    admin.put_edited(path, |stored| {
        let version = stored["metadata"]["resourceVersion"].take();
        *stored = object.clone();
        stored["metadata"]["resourceVersion"] = version;
    })
}

fn define(admin: &Client, definition: &Value) {
    let name = definition["metadata"]["name"].as_str().unwrap();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    admin.server_side_apply(&format!("{path}?fieldManager=test&force=true"), definition).ok();
    let group = definition["spec"]["group"].as_str().unwrap();
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
    let version = definition["spec"]["versions"][0]["name"].as_str().unwrap();
    wait_until("the definition is served", Duration::from_secs(60), || {
        let stored = admin.read(&path).ok();
        let established = stored["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
        let listed = admin.read(&format!("/apis/{group}/{version}/{plural}"));
        if established && listed.code == 200 { Ok(()) } else { Err(listed.to_string()) }
    });
}

struct Offline<'a> {
    admin: &'a Client,
    folder: &'a Path,
    namespace: &'a str,
}

impl Offline<'_> {
    /// What `interlock check -o json` says of an object.
    fn check(&self, object: &Value, old: Option<&Value>) -> Value {
        let file = |name: &str| self.folder.join(name).display().to_string();
        std::fs::write(file("new.json"), object.to_string()).unwrap();
        let mut arguments: Vec<String> =
            ["check", "-o", "json", "-n", self.namespace, "-f"].map(str::to_owned).into();
        arguments.extend([file("new.json"), "--objects".to_owned(), file("objects")]);
        arguments.extend(["--user".to_owned(), "kubernetes-admin".to_owned()]);
        match old {
            Some(old) => {
                std::fs::write(file("old.json"), old.to_string()).unwrap();
                arguments.extend(["--old".to_owned(), file("old.json")]);
            }
            None => arguments.extend(["--operation".to_owned(), "create".to_owned()]),
        }
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let out = interlock(self.admin, &words, "");
        serde_json::from_str(&out.stdout).unwrap_or_else(|_| panic!("{out}"))
    }
}

impl Compared {
    fn add(&mut self, file: &str, title: &str, code: u16, answer: &Value, report: &Value) {
        let decision = &report["objects"][0];
        let offline = Said {
            admitted: decision["allowed"] == true,
            fields: list(&decision["causes"]).iter().filter_map(|cause| field(&cause["field"])).collect(),
        };
        let online = Said { admitted: code < 300, fields: named(answer) };
        match online.admitted {
            true => self.admitted += 1,
            false => self.refused += 1,
        }
        // Rules that were not asked are named, unless something else refuses the object.
        let unasked = online.admitted && decision["notEvaluated"] != json!([]);
        // What cannot be decoded is refused without a list of fields.
        let fields_differ = !online.fields.is_empty() && !offline.admitted && online.fields != offline.fields;
        if online.admitted != offline.admitted || fields_differ || unasked {
            self.differences.push(format!(
                "{file}: {title}: the API server says {online:?}\n  {}\n  offline {offline:?}\n  {}\n  {}",
                answer["message"], decision["message"], decision["notEvaluated"]
            ));
        }
    }
}

/// The fields that a refusal of the API server names.
fn named(answer: &Value) -> BTreeSet<String> {
    let causes = list(&answer["details"]["causes"]);
    if !causes.is_empty() {
        // A path with a dot before it is the scale subresource's own, beside the error of the schema.
        let own = causes.iter().filter(|cause| !cause["field"].as_str().unwrap_or_default().starts_with('.'));
        return own
            .filter_map(|cause| field(&cause["field"]).or_else(|| quoted(&cause["message"])))
            .collect();
    }
    let unknown = Regex::new("unknown field \"([^\"]+)\"").unwrap();
    let message = answer["message"].as_str().unwrap_or_default();
    unknown.captures_iter(message).map(|found| found[1].to_owned()).collect()
}

/// A field, but for `<nil>`; the API server leaves out the index of an owner.
fn field(value: &Value) -> Option<String> {
    let field = value.as_str().filter(|field| !field.is_empty() && *field != "<nil>")?;
    Some(field.replace("ownerReferences[0]", "ownerReferences"))
}

/// The field that the text of an error without one names.
fn quoted(message: &Value) -> Option<String> {
    let named = Regex::new(r#"(?:: "([^"]+)" must |format int32 in (\S+))"#).unwrap();
    let found = named.captures(message.as_str()?)?;
    found.get(1).or(found.get(2)).map(|field| field.as_str().to_owned())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn patched(base: &Value, patch: &Value) -> Value {
    let mut object = base.clone();
    json_patch::merge(&mut object, patch);
    set_nulls(&mut object);
    object
}

/// A null of a patch removes the field, so that the text NULL stands for one.
fn set_nulls(value: &mut Value) {
    match value {
        Value::String(text) if text == "NULL" => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(set_nulls),
        Value::Object(members) => members.values_mut().for_each(set_nulls),
        _ => {}
    }
}
