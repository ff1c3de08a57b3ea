//! `interlock why`: explains an object by its state, its dependencies, its actors and its history.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use self::answer::WhyAnswer;
use self::facts::FactReader;
use super::discovery::{NamedObject, ServedKinds};
use super::reader::{self, ReadOutcome};
use super::target::{TargetFlags, block_on};

mod actors;
mod answer;
mod facts;
mod recent_events;
mod story;
mod text;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Flags of `interlock why`.
#[derive(Args, Debug)]
pub struct WhyArguments {
    /// The object: KIND/NAMESPACE/NAME, KIND/NAME, or KIND NAME.
    #[arg(value_name = "OBJECT", required = true, num_args = 1..=2)]
    object: Vec<String>,
    /// Form of the answer.
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    #[command(flatten)]
    target: TargetFlags,
}

/// Prints the answer.
pub fn main(arguments: WhyArguments) -> ExitCode {
    block_on(run(arguments))
}

async fn run(arguments: WhyArguments) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.object.iter().map(String::as_str).collect();
    let named = NamedObject::parse(&words).map_err(anyhow::Error::msg)?;
    let (client, home) = arguments.target.connect().await?;
    let served = ServedKinds::discover(&client).await?;
    let resource = served.find(&named.kind)?;
    let namespace = named.namespace.as_deref().unwrap_or(&home);
    let (at, name) = (if resource.namespaced { namespace } else { "" }, &named.name);
    let place = if at.is_empty() { name.clone() } else { format!("{at}/{name}") };
    let object = match reader::get(&client, resource, at, name).await {
        ReadOutcome::There(object) => object,
        ReadOutcome::Missing => bail!("{} {place} does not exist", resource.api.kind),
        ReadOutcome::Unknown(why) => bail!("{} {place} cannot be read: {why}", resource.api.kind),
    };
    let facts = FactReader { client: &client, served: &served }.read_all(object).await;
    let story = WhyAnswer::of(&facts);
    let text = match arguments.output {
        Output::Text => text::text(&story),
        Output::Json => format!("{:#}\n", serde_json::to_value(&story)?),
    };
    std::io::stdout().write_all(text.as_bytes()).context("standard output")
}
