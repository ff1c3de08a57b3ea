//! `interlock plan`: how the plans of an Instance stand, and a way out of each.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::target::{TargetFlags, finish};
use subject::Subject;

mod abort;
mod history;
mod request;
mod retry;
mod status;
mod subject;
mod wait;

/// Flags of `interlock plan`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Tells how the plans of an Instance stand, and what the one that runs waits for.
    Status(status::Flags),
    /// Tells the last runs of an Instance, with who asked what of them.
    History(history::Flags),
    /// Waits for the plan that runs: 0 COMPLETE, 1 FATAL_ERROR, 2 no end in time, or an error.
    Wait(wait::Flags),
    /// Ends the plan that is scheduled or runs.
    Abort(abort::Flags),
    /// Runs a plan again that failed, from the failed step on where nothing else has changed.
    Retry(retry::Flags),
}

/// Which Instance, as an argument or as a flag.
#[derive(Args, Debug)]
struct Name {
    /// Name of the Instance.
    #[arg(value_name = "INSTANCE", required_unless_present = "instance")]
    name: Option<String>,
    /// The same as a flag, as `kubectl kudo` has it.
    #[arg(long, conflicts_with = "name")]
    instance: Option<String>,
}

impl Name {
    /// The name; clap has seen to it that there is one. `instance/NAME` is what kubectl prints.
    fn get(&self) -> &str {
        let name = self.name.as_deref().or(self.instance.as_deref()).unwrap_or_default();
        name.rsplit_once('/').map_or(name, |(_, name)| name)
    }
}

/// In which form something is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Form {
    /// Prints a value, or the text where people read it.
    fn print<T: serde::Serialize>(self, value: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        match self {
            Self::Text => print!("{}", text()),
            Self::Json => println!("{}", serde_json::to_string_pretty(value)?),
            Self::Yaml => print!("{}", serde_saphyr::to_string(value)?),
        }
        Ok(())
    }
}

/// How long something is waited for.
#[derive(Args, Debug)]
struct Patience {
    /// Wait until it is done.
    #[arg(long)]
    wait: bool,
    /// Longest wait.
    #[arg(long, default_value = "5m", value_parser = super::run::duration)]
    timeout: Duration,
}

/// Does what was asked for. Exit codes: 0 done, 1 failed; those of `wait` are its own.
pub fn main(arguments: Arguments) -> ExitCode {
    let waits = matches!(arguments.verb, Verb::Wait(_));
    match finish(run(arguments)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            if waits { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { verb, target } = arguments;
    let subject = |name: &Name| Subject::connect(&target, name.get().to_owned());
    match verb {
        Verb::Status(flags) => status::run(&subject(&flags.name).await?, &flags).await?,
        Verb::History(flags) => history::run(&subject(&flags.name).await?, &flags).await?,
        Verb::Wait(flags) => return wait::run(&subject(&flags.name).await?, &flags).await,
        Verb::Abort(flags) => abort::run(&subject(&flags.request.name).await?, &flags).await?,
        Verb::Retry(flags) => retry::run(&subject(&flags.name).await?, &flags).await?,
    }
    Ok(ExitCode::SUCCESS)
}
