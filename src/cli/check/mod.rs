//! `interlock check`: the same mutation and rules as the webhook, without a cluster.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use interlock_core::admission::kind::GuardedKind;
use interlock_core::admission::lister::Lister;
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, WebhookEndpoint, answer};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, NamespacedName, meta_str};
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::kinds::{self, Kinds};
use serde_json::{Value, json};

use super::exit;
use super::files::{read_all, read_one};
use super::flags::FreezeFlag;

mod decision;
mod settings;

use self::decision::CheckDecision;
use settings::read_rules;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Operation {
    /// The object is created.
    Create,
    /// It changes from --old to -f.
    Update,
    /// It is deleted.
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
pub struct CheckArguments {
    /// YAML or JSON file of the new object (of the object itself for a deletion); - is
    /// standard input.
    #[arg(short = 'f', long = "filename", value_name = "NEW|-")]
    new: PathBuf,
    /// File of the current object; by default the one of the same name in --objects.
    #[arg(long, value_name = "OLD")]
    old: Option<PathBuf>,
    /// File or folder of objects that the cluster holds: OperatorVersions, Instances, Namespaces
    /// with their labels.
    #[arg(long, value_name = "DIR")]
    objects: Vec<PathBuf>,
    /// Operation on the object; by default update if there is an old one, else create.
    #[arg(long, value_enum)]
    operation: Option<Operation>,
    /// User of the request.
    #[arg(long, value_name = "NAME", default_value = "somebody")]
    user: String,
    /// File of the Interlock object, for what the rules do where; by default they all deny. A
    /// Namespace that --objects does not hold has its name as the only label.
    #[arg(long, value_name = "FILE")]
    interlock: Option<PathBuf>,
    /// What is frozen while a plan runs.
    #[arg(long, value_enum, default_value = "strict")]
    freeze: FreezeFlag,
    /// The bookkeeping user, the only one that admission skips.
    #[arg(long, value_name = "NAME", default_value = meta::CONTROLLER_USER)]
    controller_user: String,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

/// Runs the command: 0 allowed, 1 denied, 2 error.
pub fn main(arguments: CheckArguments, kinds: Kinds) -> ExitCode {
    let told = run(&arguments, kinds).and_then(|verdict| {
        let text = match arguments.output {
            Output::Text => verdict.text(),
            Output::Json => format!("{:#}\n", verdict.json()),
        };
        std::io::stdout().write_all(text.as_bytes()).context("the answer cannot be written")?;
        Ok(verdict.allowed())
    });
    exit::decided(told)
}

fn run(arguments: &CheckArguments, kinds: Kinds) -> anyhow::Result<CheckDecision> {
    let objects = arguments.objects.iter().map(|path| read_all(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let objects: Vec<Value> = objects.into_iter().flatten().collect();
    let (given, old, namespace) = change(arguments, &objects, kinds)?;
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
                old.context("an update needs the current object: give --old, or a --objects that holds it")?;
            (with_kept_label(given, &old), old)
        }
    };
    let mut lister = StaticLister::default();
    for object in &objects {
        lister.add(object, &namespace)?;
    }
    if let Some(path) = &arguments.interlock {
        lister.set_rules(read_rules(path, kinds)?);
        let name_alone = namespace_object(&namespace);
        if !objects.iter().any(|object| same(object, &name_alone, "")) {
            lister.add(&name_alone, "")?;
        }
    }
    let config =
        Config { controller_user: arguments.controller_user.clone(), freeze: arguments.freeze.into() };
    let review = review(operation, &arguments.user, object, old)?;
    both_endpoints(review, &kinds::guarded(kinds), &lister, &config)
}

/// The given object, its old version where known, and their namespace.
fn change(
    arguments: &CheckArguments,
    objects: &[Value],
    kinds: Kinds,
) -> anyhow::Result<(Value, Option<Value>, String)> {
    let mut given = read_guarded(&arguments.new, kinds)?;
    let mut old = arguments.old.as_deref().map(|old| read_guarded(old, kinds)).transpose()?;
    let namespace = namespace_of(old.as_ref()).or(namespace_of(Some(&given))).unwrap_or("default").to_owned();
    if let Some(old) = old.as_ref().filter(|old| !same(old, &given, &namespace)) {
        bail!(
            "--old is {}, -f is {}: give the same object before and after",
            named(old, &namespace),
            named(&given, &namespace)
        );
    }
    if old.is_none() && arguments.operation != Some(Operation::Create) {
        old = objects.iter().find(|object| same(object, &given, &namespace)).cloned();
    }
    for object in [Some(&mut given), old.as_mut()].into_iter().flatten() {
        if meta_str(object, "namespace").is_none() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        as_stored(object);
    }
    Ok((given, old, namespace))
}

/// The object of a file, of a kind that the webhook matches.
fn read_guarded(path: &Path, kinds: Kinds) -> anyhow::Result<Value> {
    let object = read_one(path)?;
    let gvk = Gvk::of(&object)
        .with_context(|| format!("{}: the object has no apiVersion or no kind: add both", path.display()))?;
    let guarded = kinds::guarded(kinds);
    if guarded.iter().any(|known| known.resource.gvk() == gvk) {
        return Ok(object);
    }
    let of = |gvk: &Gvk| format!("{} of {}", gvk.kind, gvk.api_version());
    let known: Vec<String> = guarded.iter().map(|known| of(&known.resource.gvk())).collect();
    bail!(
        "{} holds {}, a kind that Interlock does not decide about: give one of {}",
        path.display(),
        of(&gvk),
        known.join(", ")
    )
}

/// The API server stores a Secret without `stringData`: it moves the texts to `data`.
fn as_stored(object: &mut Value) {
    if Gvk::of(object) != Some(Gvk::new("v1", "Secret")) {
        return;
    }
    let Some(Value::Object(texts)) = object.as_object_mut().and_then(|object| object.remove("stringData"))
    else {
        return;
    };
    if !object["data"].is_object() {
        object["data"] = json!({});
    }
    for (key, text) in texts {
        object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

/// A Namespace with the label that the API server gives to every one.
fn namespace_object(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
    })
}

/// Mutation, then validation of the mutated object.
fn both_endpoints(
    mut review: Value,
    kinds: &[&'static GuardedKind],
    lister: &dyn Lister,
    config: &Config,
) -> anyhow::Result<CheckDecision> {
    let mutated = decide(WebhookEndpoint::Mutate, &review, kinds, lister, config)?;
    if !mutated.allowed() {
        return Ok(mutated);
    }
    review["request"]["object"] = mutated.object.clone();
    let validated = decide(WebhookEndpoint::Validate, &review, kinds, lister, config)?;
    let mut verdict = if validated.allowed() { mutated.with_warnings_of(&validated) } else { validated };
    verdict.patch = mutated.patch;
    Ok(verdict)
}

fn decide(
    endpoint: WebhookEndpoint,
    review: &Value,
    kinds: &[&'static GuardedKind],
    lister: &dyn Lister,
    config: &Config,
) -> anyhow::Result<CheckDecision> {
    let body = serde_json::to_vec(review)?;
    let reply = match answer(kinds, endpoint, &body, lister, config, CacheWait::Exhausted)? {
        AdmissionAnswer::Done(reply) => reply,
        AdmissionAnswer::Wait(key) => {
            bail!("OperatorVersion {key} is not among the objects: add it with --objects")
        }
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
    Ok(CheckDecision { response, record: reply.record.into_owned(), patch, object })
}

fn namespace_of(object: Option<&Value>) -> Option<&str> {
    meta_str(object?, "namespace").filter(|namespace| !namespace.is_empty())
}

/// Whether two objects are the same, with a default for an absent namespace.
fn same(one: &Value, other: &Value, namespace: &str) -> bool {
    let name = |object| {
        Some(NamespacedName::new(namespace_of(Some(object)).unwrap_or(namespace), meta_str(object, "name")?))
    };
    Gvk::of(one).is_some()
        && Gvk::of(one) == Gvk::of(other)
        && name(one).is_some()
        && name(one) == name(other)
}

/// An object for people, with a default for an absent namespace.
fn named(object: &Value, namespace: &str) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = meta_str(object, "name").or(meta_str(object, "generateName")).unwrap_or_default();
    format!("{kind} {}/{name}", namespace_of(Some(object)).unwrap_or(namespace))
}

/// A manifest does not contain the label that the controller wrote on a source of flavors, and apply keeps
/// it.
fn with_kept_label(mut given: Value, old: &Value) -> Value {
    let kept = &old["metadata"]["labels"][meta::FLAVOR_SOURCE];
    if *kept == meta::FLAVOR_SOURCE_OURS
        && let Some(metadata) = given.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(labels) = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut()
    {
        labels.entry(meta::FLAVOR_SOURCE).or_insert_with(|| kept.clone());
    }
    given
}

fn review(operation: Operation, user: &str, object: Value, old: Value) -> anyhow::Result<Value> {
    let present = if object.is_null() { &old } else { &object };
    let gvk = Gvk::of(present).context("the object has no apiVersion or no kind: add both")?;
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

#[cfg(test)]
mod tests;
