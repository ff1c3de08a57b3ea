//! `interlock guard presets`.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use interlock_guard::Preset;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::cli::common::error::CliError;
use crate::cli::common::output::{OutputFlag, table};

/// Characters of a line of an expression, where that has an operator to begin the next with.
const WIDTH: usize = 110;

/// Flags of the command.
#[derive(Args, Debug)]
pub(super) struct PresetsFlags {
    /// The one to show whole.
    name: Option<String>,
    #[command(flatten)]
    output: OutputFlag,
}

pub(super) fn run(flags: &PresetsFlags) -> anyhow::Result<()> {
    let output = flags.output.output;
    if let Some(name) = &flags.name {
        let preset = named(name)?;
        return Ok(output.print(&whole(preset), || text(preset))?);
    }
    let presets = interlock_guard::presets();
    let rows: Vec<Value> = presets.iter().map(in_short).collect();
    output.print(&rows, || {
        let row = |own: &Preset| vec![own.name.clone(), minutes(own.patience), kinds(own).join(", ")];
        table(&["NAME", "PATIENCE", "KINDS"], presets.iter().map(row))
    })?;
    Ok(())
}

/// The preset of a name.
pub(super) fn named(name: &str) -> Result<&'static Preset, CliError> {
    let generic = interlock_guard::generic().filter(|own| own.name == name);
    interlock_guard::named(name).or(generic).ok_or_else(|| {
        CliError::usage(format!("there is no preset {name}")).next("`interlock guard presets` lists them")
    })
}

fn kinds(preset: &Preset) -> Vec<String> {
    preset.kinds.iter().map(ToString::to_string).collect()
}

fn in_short(preset: &Preset) -> Value {
    let mut versions: Vec<&str> =
        preset.kinds.iter().flat_map(|own| &own.versions).map(String::as_str).collect();
    versions.sort_unstable();
    versions.dedup();
    json!({"name": preset.name, "kinds": kinds(preset), "versions": versions})
}

fn whole(preset: &Preset) -> Value {
    let busy = preset.busy.iter().map(|own| {
        json!({"name": own.name, "expression": own.expression, "message": own.message, "since": own.since,
               "messageExpression": own.message_expression})
    });
    let mut whole = in_short(preset);
    whole["title"] = json!(preset.title);
    whole["source"] = json!(preset.source);
    whole["paths"] = json!(preset.paths);
    whole["except"] = json!(preset.except);
    whole["busyWhen"] = busy.collect();
    whole["patience"] = json!(minutes(preset.patience));
    whole["notes"] = json!(preset.notes);
    whole
}

fn text(preset: &Preset) -> String {
    let mut text = format!("{}: {}\n\n", preset.name, preset.title);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:9} {value}");
        }
    };
    line("kinds", &kinds(preset).join(", "));
    line("guarded", &preset.paths.join(", "));
    line("never", &preset.except.join(", "));
    line("patience", &minutes(preset.patience));
    line("source", &preset.source);
    for busy in &preset.busy {
        let message = busy.message.as_deref().or(busy.message_expression.as_deref()).unwrap_or_default();
        let _ = write!(text, "\nbusy: {}, {message}\n{}", busy.name, wrapped(&busy.expression));
    }
    if !preset.notes.is_empty() {
        let _ = write!(text, "\n{}", preset.notes);
    }
    text
}

/// An expression in lines that begin with an operator.
fn wrapped(expression: &str) -> String {
    let parts = expression.replace(" && ", "\n&& ").replace(" || ", "\n|| ");
    let mut lines: Vec<String> = Vec::new();
    for part in parts.lines() {
        match lines.last_mut() {
            Some(line) if line.len() + part.len() < WIDTH => *line += &format!(" {part}"),
            _ => lines.push(part.to_owned()),
        }
    }
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// A duration as guards write it, such as `30m`.
fn minutes(duration: Duration) -> String {
    let printer = jiff::fmt::friendly::SpanPrinter::new();
    SignedDuration::try_from(duration).map(|own| printer.duration_to_string(&own)).unwrap_or_default()
}
