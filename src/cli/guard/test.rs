//! `interlock guard test`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_guard::api::{GuardSpec, MatchSpec};
use interlock_guard::judgement::{Guard, Verdict};
use interlock_guard::{Preset, generic, of_kind};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::presets;
use crate::cli::common::error::CliError;
use crate::cli::common::files;
use crate::cli::common::output::{Output, OutputFlag, table, text};

/// The kinds of guards.
const KINDS: [&str; 2] = ["ChangeGuard", "ClusterChangeGuard"];
const API: &str = "interlock.dev/v1alpha1";

/// Flags of the command.
#[derive(Args, Debug)]
pub(super) struct TestFlags {
    /// The guard that decides, a file with a ChangeGuard.
    #[arg(short = 'f', long = "filename", value_name = "GUARD", conflicts_with = "preset")]
    guard: Option<PathBuf>,
    /// The preset that decides; by default that of each object's kind, or `generic`.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Objects as they are in a cluster, with their status: YAML, a List, or JSON lines; - is standard input.
    #[arg(long, value_name = "FILE")]
    objects: PathBuf,
    /// The same objects as a change would make them; what they are called tells which is which.
    #[arg(long, value_name = "FILE")]
    change: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlag,
}

/// What is said of an object.
#[derive(Debug, Serialize)]
struct Line {
    object: String,
    busy: bool,
    by: Vec<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<String>>,
    /// Expressions that cannot be evaluated on it, by which it is not busy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<String>,
}

pub(super) fn run(flags: &TestFlags) -> anyhow::Result<()> {
    let stdin = |file: &PathBuf| file == Path::new("-");
    if [Some(&flags.objects), flags.change.as_ref(), flags.guard.as_ref()]
        .into_iter()
        .flatten()
        .filter(|own| stdin(own))
        .count()
        > 1
    {
        return Err(CliError::usage("standard input can be only one of the files").into());
    }
    let mut guards = match (&flags.guard, &flags.preset) {
        (Some(file), _) => Guards::of_file(file)?,
        (None, Some(name)) => Guards::OfPreset(guard(presets::named(name)?)?),
        (None, None) => Guards::OfKinds(BTreeMap::new()),
    };
    let objects = files::read_bare(&flags.objects)?;
    let changes = flags.change.as_deref().map(files::read_bare).transpose()?;
    let changes = changes.map(|own| Changes::of(own, &objects)).transpose()?;
    let lines: Result<Vec<Line>, CliError> = objects
        .iter()
        .map(|object| {
            let change = changes.as_ref().map(|own| own.to(object));
            Ok(guards.of(object)?.map_or_else(|| unmatched(object, change), |own| line(own, object, change)))
        })
        .collect();
    print(flags.output.output, &lines?, changes.is_some())?;
    Ok(())
}

/// What decides.
enum Guards {
    /// A guard, and what it matches.
    Own(Guard, MatchSpec),
    /// One preset for all objects.
    OfPreset(Guard),
    /// The presets of the objects' kinds, by name.
    OfKinds(BTreeMap<&'static str, Guard>),
}

impl Guards {
    fn of_file(file: &Path) -> anyhow::Result<Self> {
        let object = files::read_one(file)?;
        let place = file.display().to_string();
        if object["apiVersion"] != API || !object["kind"].as_str().is_some_and(|own| KINDS.contains(&own)) {
            let what = format!("{place} holds no guard");
            return Err(CliError::usage(what).next(format!("give it the kind {} of {API}", KINDS[0])).into());
        }
        let spec = GuardSpec::deserialize(&object["spec"]).map_err(|error| {
            CliError::usage("the spec is not that of a guard").place(&place).why(error.to_string())
        })?;
        let guard = Guard::of_spec(&spec).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            CliError::usage("the guard cannot be used").place(&place).why(errors.join("\n"))
        })?;
        Ok(Self::Own(guard, spec.matches))
    }

    /// The guard of an object; none where it does not match.
    fn of(&mut self, object: &Value) -> Result<Option<&Guard>, CliError> {
        let group = Gvk::of(object).map(|own| own.group).unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        Ok(Some(match self {
            Self::Own(guard, matches) => return Ok(matches.names(&group, kind).then_some(guard)),
            Self::OfPreset(guard) => guard,
            Self::OfKinds(guards) => {
                let preset = of_kind(&group, kind).or_else(generic);
                let preset = preset.ok_or_else(|| CliError::refused("no preset is known for this kind"))?;
                match guards.entry(&preset.name) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => place.insert(guard(preset)?),
                }
            }
        }))
    }
}

fn guard(preset: &Preset) -> Result<Guard, CliError> {
    Guard::of_preset(preset).map_err(|error| {
        CliError::refused(format!("the preset {} cannot be used", preset.name)).why(error.to_string())
    })
}

/// Objects as a change would make them, by what they are.
struct Changes(BTreeMap<(String, String), Value>);

impl Changes {
    fn of(changed: Vec<Value>, objects: &[Value]) -> Result<Self, CliError> {
        if changed.is_empty() {
            return Err(
                CliError::usage("--change holds no object").next("give the objects as a change makes them")
            );
        }
        let objects: BTreeSet<(String, String)> = objects.iter().map(identity).collect();
        let mut known = BTreeMap::new();
        for object in changed {
            let called = called(&object);
            if meta_str(&object, "name").is_none() {
                return Err(CliError::usage(format!("{called} of --change has no name"))
                    .next("give it metadata.name, and the object too"));
            }
            let identity = identity(&object);
            if !objects.contains(&identity) {
                return Err(CliError::usage(format!("{called} of --change is not among the objects"))
                    .next("give it the API group, kind, namespace and name that it has there"));
            }
            if known.insert(identity, object).is_some() {
                return Err(
                    CliError::usage(format!("{called} is twice in --change")).next("leave one of them out")
                );
            }
        }
        Ok(Self(known))
    }

    fn to(&self, object: &Value) -> Option<&Value> {
        self.0.get(&identity(object))
    }
}

/// The API group, and what an object is called.
fn identity(object: &Value) -> (String, String) {
    (Gvk::of(object).map(|own| own.group).unwrap_or_default(), called(object))
}

/// `Kind/namespace/name`.
fn called(object: &Value) -> String {
    let part = |field| meta_str(object, field).unwrap_or_default();
    format!("{}/{}/{}", object["kind"].as_str().unwrap_or_default(), part("namespace"), part("name"))
}

/// What a guard does not match.
fn unmatched(object: &Value, change: Option<Option<&Value>>) -> Line {
    Line {
        object: called(object),
        busy: false,
        by: Vec::new(),
        message: "the guard does not match it".to_owned(),
        decision: change.map(|_| Verdict::Allow.as_str()),
        changed: change.map(|_| Vec::new()),
        failed: Vec::new(),
    }
}

/// `changed` is there where changes are asked about: the object as the change makes it, none where it stays.
fn line(guard: &Guard, object: &Value, changed: Option<Option<&Value>>) -> Line {
    let found = guard.busy(object);
    let judgement = changed.map(|own| guard.judge(object, own.unwrap_or(object)));
    let mut messages: Vec<&str> = found.busy.iter().map(|own| own.message.as_str()).collect();
    messages.extend(
        judgement.iter().filter(|own| own.is_owned).map(|_| "a controller owns it, and may change it"),
    );
    Line {
        object: called(object),
        busy: !found.busy.is_empty(),
        message: messages.join("; "),
        by: found.busy.iter().map(|own| own.name.clone()).collect(),
        decision: judgement.as_ref().map(|own| own.verdict.as_str()),
        changed: judgement.map(|own| own.changed),
        failed: found.failures.iter().map(ToString::to_string).collect(),
    }
}

fn print(output: Output, lines: &[Line], with_changes: bool) -> Result<(), CliError> {
    // A line for each, so that a stream of any length can be read as it comes.
    if output == Output::Json {
        let lines = lines.iter().map(|line| serde_json::to_string(line).map(|text| text + "\n"));
        let lines: String = lines
            .collect::<Result<_, _>>()
            .map_err(|error| CliError::refused("the output cannot be written").why(error.to_string()))?;
        return text(&lines);
    }
    output.print(&lines, || {
        let row = |line: &Line| {
            let busy = if line.busy { "busy" } else { "at rest" };
            let said = std::iter::once(&line.message).filter(|own| !own.is_empty()).chain(&line.failed);
            let said = said.map(String::as_str).collect::<Vec<_>>().join("; ");
            let mut row = vec![line.object.clone(), busy.to_owned(), line.by.join(",")];
            if with_changes {
                row.push(line.decision.unwrap_or_default().to_owned());
                row.push(line.changed.iter().flatten().cloned().collect::<Vec<_>>().join(","));
            }
            row.push(said);
            row
        };
        let mut heading = vec!["OBJECT", "STATE", "BY"];
        heading.extend(["DECISION", "CHANGED"].into_iter().filter(|_| with_changes));
        heading.push("MESSAGE");
        table(&heading, lines.iter().map(row))
    })
}
