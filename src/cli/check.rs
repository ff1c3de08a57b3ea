//! `interlock check`: the same mutation and rules as the webhook, without a cluster.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::admission::snapshot::Snapshot;
use crate::admission::view::View;
use crate::admission::{Answer, Config, Door, Patience, Record, answer};
use crate::api::meta;
use crate::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use crate::template::yaml;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// The object comes to be.
    Create,
    /// It changes from --old to -f.
    Update,
    /// It goes.
    Delete,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// Flags of `interlock check`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// YAML or JSON file of the object as it would be (of the object itself for a deletion); - is
    /// standard input.
    #[arg(short = 'f', long = "filename", value_name = "NEW|-")]
    new: PathBuf,
    /// File of the object as it is; by default the one of the same name in --objects.
    #[arg(long, value_name = "OLD")]
    old: Option<PathBuf>,
    /// File or folder of objects that the cluster holds: OperatorVersions, Instances, Namespaces.
    #[arg(long, value_name = "DIR")]
    objects: Vec<PathBuf>,
    /// What happens to the object; by default update where there is an old one, else create.
    #[arg(long, value_enum)]
    operation: Option<Operation>,
    /// Who asks.
    #[arg(long, value_name = "NAME", default_value = "somebody")]
    user: String,
    /// What is frozen while a plan runs.
    #[arg(long, value_enum, default_value = "strict")]
    freeze: super::FreezeFlag,
    /// The bookkeeping user, the only one that admission skips.
    #[arg(long, value_name = "NAME", default_value = meta::CONTROLLER_USER)]
    controller_user: String,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

/// Runs the command: 0 allowed, 1 refused, 2 it could not be told.
pub fn main(arguments: Arguments) -> ExitCode {
    let told = run(&arguments).and_then(|verdict| {
        let text = match arguments.output {
            Output::Text => verdict.text(),
            Output::Json => format!("{:#}\n", verdict.json()),
        };
        std::io::stdout().write_all(text.as_bytes()).context("the answer cannot be written")?;
        Ok(verdict.allowed())
    });
    match told {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// What both doors said.
struct Verdict {
    response: Value,
    record: Record,
    patch: Value,
    object: Value,
}

fn run(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let mut given = read_one(&arguments.new)?;
    let objects = arguments.objects.iter().map(|path| read_all(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let objects: Vec<Value> = objects.into_iter().flatten().collect();
    let mut old = arguments.old.as_deref().map(read_one).transpose()?;
    let namespace = namespace_of(old.as_ref()).or(namespace_of(Some(&given))).unwrap_or("default").to_owned();
    if old.is_none() && arguments.operation != Some(Operation::Create) {
        old = objects.iter().find(|object| same(object, &given, &namespace)).cloned();
    }
    for object in [Some(&mut given), old.as_mut()].into_iter().flatten() {
        if meta_str(object, "namespace").is_none() {
            object["metadata"]["namespace"] = json!(namespace);
        }
    }
    let operation = match (arguments.operation, &old) {
        (Some(operation), _) => operation,
        (None, Some(_)) => Operation::Update,
        (None, None) => Operation::Create,
    };
    let (object, old) = match operation {
        Operation::Create => (given, Value::Null),
        Operation::Delete => (Value::Null, old.unwrap_or(given)),
        Operation::Update => {
            let old =
                old.context("an update needs the object as it is: give --old, or a --objects that holds it")?;
            (given, old)
        }
    };
    let mut view = Snapshot::default();
    for object in &objects {
        view.add(object, &namespace)?;
    }
    let config =
        Config { controller_user: arguments.controller_user.clone(), freeze: arguments.freeze.into() };
    let review = review(operation, &arguments.user, object, old)?;
    both_doors(review, &view, &config)
}

/// Mutation, then validation of what it made.
fn both_doors(mut review: Value, view: &dyn View, config: &Config) -> anyhow::Result<Verdict> {
    let mutated = ask(Door::Mutate, &review, view, config)?;
    if !mutated.allowed() {
        return Ok(mutated);
    }
    review["request"]["object"] = mutated.object.clone();
    let validated = ask(Door::Validate, &review, view, config)?;
    let mut verdict = if validated.allowed() { mutated.clone_for(&validated) } else { validated };
    verdict.patch = mutated.patch;
    Ok(verdict)
}

fn ask(door: Door, review: &Value, view: &dyn View, config: &Config) -> anyhow::Result<Verdict> {
    let body = serde_json::to_vec(review)?;
    let reply = match answer(door, &body, view, config, Patience::Exhausted)? {
        Answer::Done(reply) => reply,
        Answer::Wait(key) => bail!("OperatorVersion {key} is not among the objects: add it with --objects"),
    };
    let mut answer: Value = serde_json::from_slice(&reply.body)?;
    let response = answer["response"].take();
    let mut object = review["request"]["object"].clone();
    let patch = match response["patch"].as_str() {
        Some(text) => serde_json::from_slice(&STANDARD.decode(text)?)?,
        None => json!([]),
    };
    let operations: json_patch::Patch = serde_json::from_value(patch.clone())?;
    json_patch::patch(&mut object, &operations)?;
    Ok(Verdict { response, record: reply.record, patch, object })
}

impl Verdict {
    fn allowed(&self) -> bool {
        self.response["allowed"] == json!(true)
    }

    /// What mutation said, with what validation adds.
    fn clone_for(&self, validated: &Self) -> Self {
        let mut record = self.record.clone();
        let mut response = self.response.clone();
        let mut warnings = self.warnings();
        for warning in validated.warnings() {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        response["warnings"] = json!(warnings);
        for rule in &validated.record.rules {
            if !record.rules.contains(rule) {
                record.rules.push(rule);
            }
        }
        Self { response, record, patch: self.patch.clone(), object: self.object.clone() }
    }

    fn warnings(&self) -> Vec<String> {
        let warnings = self.response["warnings"].as_array();
        warnings.into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
    }

    fn json(&self) -> Value {
        let status = &self.response["status"];
        let allowed = self.allowed();
        json!({
            "allowed": allowed,
            "code": if allowed { json!(200) } else { status["code"].clone() },
            "reason": status["reason"],
            "message": status["message"],
            "causes": status["details"]["causes"].as_array().cloned().unwrap_or_default(),
            "rules": self.record.rules,
            "warnings": self.warnings(),
            "patch": self.patch,
            "object": self.object,
        })
    }

    fn text(&self) -> String {
        let subject = format!("{} {}/{}", self.record.kind, self.record.namespace, self.record.name);
        let mut text: String = self.warnings().iter().map(|w| format!("Warning: {w}\n")).collect();
        if !self.allowed() {
            let status = &self.response["status"];
            let message = status["message"].as_str().unwrap_or_default();
            let head = format!(
                "refused ({} {}): {subject}",
                status["code"],
                status["reason"].as_str().unwrap_or_default()
            );
            return format!("{text}{head}\n{message}\n");
        }
        text.push_str(&format!("allowed: {subject}\n"));
        if let Some(plan) = &self.record.plan {
            text.push_str(&format!("plan: {plan}\n"));
        }
        for operation in self.patch.as_array().into_iter().flatten() {
            let word = |key: &str| operation[key].as_str().unwrap_or_default();
            let value = operation.get("value").map(|v| format!(" {v}")).unwrap_or_default();
            text.push_str(&format!("patch: {} {}{value}\n", word("op"), word("path")));
        }
        text
    }
}

fn namespace_of(object: Option<&Value>) -> Option<&str> {
    meta_str(object?, "namespace").filter(|namespace| !namespace.is_empty())
}

/// Whether two objects are one, in a namespace that stands for one that is absent.
fn same(one: &Value, other: &Value, namespace: &str) -> bool {
    let name = |object| {
        Some(NamespacedName::new(namespace_of(Some(object)).unwrap_or(namespace), meta_str(object, "name")?))
    };
    Gvk::of(one).is_some()
        && Gvk::of(one) == Gvk::of(other)
        && name(one).is_some()
        && name(one) == name(other)
}

fn review(operation: Operation, user: &str, object: Value, old: Value) -> anyhow::Result<Value> {
    let present = if object.is_null() { &old } else { &object };
    let gvk = Gvk::of(present).context("the object has no apiVersion or no kind")?;
    let name = meta_str(&old, "name").or(meta_str(&object, "name"));
    Ok(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "interlock-check",
            "kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
            "name": name,
            "namespace": namespace_of(Some(present)),
            "operation": operation.as_str(),
            "userInfo": {"username": user},
            "object": object,
            "oldObject": old,
            "dryRun": true,
        }
    }))
}

/// The one object of a file.
fn read_one(path: &Path) -> anyhow::Result<Value> {
    let objects = parse(path, &text_of(path)?)?;
    match <[Value; 1]>::try_from(objects) {
        Ok([object]) => Ok(object),
        Err(objects) => bail!("{} holds {} objects: give a file with one", path.display(), objects.len()),
    }
}

/// The objects of a file, or of all YAML and JSON files of a folder and its folders.
fn read_all(path: &Path) -> anyhow::Result<Vec<Value>> {
    let cannot = || format!("{} cannot be read", path.display());
    if !path.is_dir() {
        return parse(path, &text_of(path)?);
    }
    let mut entries =
        fs::read_dir(path).with_context(cannot)?.collect::<Result<Vec<_>, _>>().with_context(cannot)?;
    entries.sort_by_key(fs::DirEntry::path);
    let mut objects = Vec::new();
    for entry in entries.iter().map(fs::DirEntry::path) {
        let known = entry.extension().is_some_and(|e| ["yaml", "yml", "json"].iter().any(|k| e == *k));
        if known || entry.is_dir() {
            objects.extend(read_all(&entry)?);
        }
    }
    Ok(objects)
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("{} cannot be read", path.display());
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).with_context(cannot)?;
        return Ok(text);
    }
    fs::read_to_string(path).with_context(cannot)
}

/// Documents that are objects; a List stands for its items.
fn parse(path: &Path, text: &str) -> anyhow::Result<Vec<Value>> {
    let documents = match serde_json::from_str(text) {
        Ok(value) => vec![value],
        Err(_) => {
            yaml::documents(text).with_context(|| format!("{} is neither YAML nor JSON", path.display()))?
        }
    };
    let mut objects = Vec::new();
    for document in documents {
        if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
            && let Some(items) = document["items"].as_array()
        {
            objects.extend(items.iter().cloned());
        } else if document.get("metadata").is_some() || ObjectKey::of(&document).is_some() {
            objects.push(document);
        } else {
            bail!("{} holds a document that is no Kubernetes object", path.display());
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;
    use crate::api::rule::Rule;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        arguments: Arguments,
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
        write("two.yaml", &format!("{INSTANCE}---\n{INSTANCE}"));
        folder
    }

    fn check(folder: &tempfile::TempDir, line: &str) -> anyhow::Result<Verdict> {
        let at = |word: &str| match word.starts_with("./") {
            true => folder.path().join(&word[2..]).display().to_string(),
            false => word.to_owned(),
        };
        let words = std::iter::once("check".to_owned()).chain(line.split_whitespace().map(at));
        run(&Cli::try_parse_from(words)?.arguments)
    }

    #[rstest]
    #[case::create("-f ./new.yaml --operation create --objects ./objects", true, "deploy")]
    #[case::update_of_what_is_there("-f ./new.yaml --objects ./objects", true, "update")]
    #[case::update_from_a_file("-f ./new.yaml --old ./running.yaml --objects ./objects", false, "")]
    #[case::same_plan("-f ./new.yaml --old ./running.yaml --objects ./objects --freeze same-plan", false, "")]
    #[case::wrong_value("-f ./wrong.yaml --objects ./objects", false, "")]
    #[case::no_version("-f ./new.yaml", false, "")]
    #[case::delete("-f ./new.yaml --operation delete --objects ./objects", true, "")]
    #[case::bookkeeping(
        "-f ./wrong.yaml --objects ./objects --user system:serviceaccount:interlock-system:interlock",
        true,
        ""
    )]
    #[case::another_controller(
        "-f ./wrong.yaml --objects ./objects --user me --controller-user me",
        true,
        ""
    )]
    fn decisions(#[case] line: &str, #[case] allowed: bool, #[case] plan: &str) {
        let folder = folder();
        let verdict = check(&folder, line).unwrap();
        assert_eq!(verdict.allowed(), allowed, "{}", verdict.text());
        if allowed {
            assert_eq!(verdict.record.plan.as_deref().unwrap_or_default(), plan);
        }
        assert!(!verdict.json()["message"].to_string().contains("s3cret"));
    }

    #[rstest]
    #[case::two("-f ./two.yaml", "holds 2 objects")]
    #[case::absent("-f ./lost.yaml", "cannot be read")]
    #[case::no_object("-f ./objects/README.md", "no Kubernetes object")]
    #[case::no_old("-f ./new.yaml --operation update", "give --old")]
    fn errors(#[case] line: &str, #[case] text: &str) {
        let error = format!("{:#}", check(&folder(), line).err().unwrap());
        assert!(error.contains(text), "{error}");
    }

    #[test]
    fn json_has_every_key_in_both_cases() {
        let folder = folder();
        let keys = ["allowed", "causes", "code", "message", "object", "patch", "reason", "rules", "warnings"];
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

    /// Every rule has a page that says what, why and what to do, and every page a rule.
    #[test]
    fn pages_and_rules_agree() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/denials");
        let mut pages: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "README.md")
            .collect();
        pages.sort();
        let mut rules: Vec<String> = Rule::ALL.iter().map(|rule| format!("{}.md", rule.id())).collect();
        rules.sort();
        assert_eq!(pages, rules);
        let list = fs::read_to_string(folder.join("README.md")).unwrap();
        for rule in Rule::ALL {
            let page = fs::read_to_string(folder.join(format!("{}.md", rule.id()))).unwrap();
            assert!(page.starts_with(&format!("# {}\n", rule.id())), "{}", rule.id());
            for part in ["\n## What is refused\n", "\n## Why\n", "\n## What to do\n"] {
                assert!(page.contains(part), "{} lacks{part}", rule.id());
            }
            assert!(list.contains(&format!("]({}.md)", rule.id())), "README.md lacks {}", rule.id());
        }
    }
}
