//! `interlock guard test`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_guard::judgement::Guard;
use interlock_guard::{Preset, generic, of_kind};
use serde::Serialize;
use serde_json::Value;

use super::presets;
use crate::cli::common::error::CliError;
use crate::cli::common::files;
use crate::cli::common::output::{Output, OutputFlag, table, text};

/// Flags of the command.
#[derive(Args, Debug)]
pub(super) struct TestFlags {
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
    let preset = flags.preset.as_deref().map(presets::named).transpose()?;
    let objects = files::read_bare(&flags.objects)?;
    let changes = flags.change.as_deref().map(files::read_bare).transpose()?;
    let changes = changes.map(|own| Changes::of(own, &objects)).transpose()?;
    let mut guards = Guards::default();
    let lines: Result<Vec<Line>, CliError> = objects
        .iter()
        .map(|object| {
            let guard = guards.of(preset, object)?;
            Ok(line(guard, object, changes.as_ref().map(|own| own.to(object))))
        })
        .collect();
    print(flags.output.output, &lines?, changes.is_some())?;
    Ok(())
}

/// The compiled guards, by their names.
#[derive(Default)]
struct Guards(BTreeMap<&'static str, Guard>);

impl Guards {
    fn of(&mut self, named: Option<&'static Preset>, object: &Value) -> Result<&Guard, CliError> {
        let group = || Gvk::of(object).map(|own| own.group).unwrap_or_default();
        let preset = named.or_else(|| of_kind(&group(), object["kind"].as_str()?)).or_else(generic);
        let preset = preset.ok_or_else(|| CliError::refused("no preset is known for this kind"))?;
        if !self.0.contains_key(preset.name.as_str()) {
            let guard = Guard::of_preset(preset).map_err(|error| {
                CliError::refused(format!("the preset {} cannot be used", preset.name)).why(error.to_string())
            })?;
            self.0.insert(&preset.name, guard);
        }
        self.0.get(preset.name.as_str()).ok_or_else(|| CliError::refused("the preset is not known"))
    }
}

/// Objects as a change would make them, by what they are called.
struct Changes(BTreeMap<String, Value>);

impl Changes {
    fn of(changed: Vec<Value>, objects: &[Value]) -> Result<Self, CliError> {
        let mut known = BTreeMap::new();
        for object in changed {
            let called = called(&object);
            if !objects.iter().any(|own| self::called(own) == called) {
                return Err(CliError::usage(format!("{called} of --change is not among the objects"))
                    .next("give it the kind, namespace and name that it has there"));
            }
            known.insert(called, object);
        }
        Ok(Self(known))
    }

    fn to(&self, object: &Value) -> Option<&Value> {
        self.0.get(&called(object))
    }
}

/// `Kind/namespace/name`.
fn called(object: &Value) -> String {
    let part = |field| meta_str(object, field).unwrap_or_default();
    format!("{}/{}/{}", object["kind"].as_str().unwrap_or_default(), part("namespace"), part("name"))
}

/// `changed` is there where changes are asked about: the object as the change makes it, none where it stays.
fn line(guard: &Guard, object: &Value, changed: Option<Option<&Value>>) -> Line {
    let found = guard.busy(object);
    let judgement = changed.map(|own| guard.judge(object, own.unwrap_or(object)));
    let messages: Vec<&str> = found.busy.iter().map(|own| own.message.as_str()).collect();
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
            let said = line.message.clone() + &line.failed.join("; ");
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
