//! Flags of the subcommands of `interlock plan`.

use clap::{Args, ValueEnum};

use crate::cli::flags::Limit;

/// Which Instance, as an argument or as a flag.
#[derive(Args, Debug)]
pub(super) struct InstanceName {
    /// Name of the Instance.
    #[arg(value_name = "INSTANCE", required_unless_present = "instance")]
    name: Option<String>,
    /// The same as a flag, as `kubectl kudo` has it.
    #[arg(long, conflicts_with = "name")]
    instance: Option<String>,
}

impl InstanceName {
    /// The name; clap guarantees that there is one. `instance/NAME` is what kubectl prints.
    pub(super) fn get(&self) -> &str {
        let name = self.name.as_deref().or(self.instance.as_deref()).unwrap_or_default();
        name.rsplit_once('/').map_or(name, |(_, name)| name)
    }
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// For people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Form {
    /// Prints a value, or the text for people.
    pub(super) fn print<T: serde::Serialize>(
        self,
        value: &T,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Text => print!("{}", text()),
            Self::Json => println!("{}", serde_json::to_string_pretty(value)?),
            Self::Yaml => print!("{}", serde_saphyr::to_string(value)?),
        }
        Ok(())
    }
}

/// The Instance, and the output format.
#[derive(Args, Debug)]
pub(super) struct OutputFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    /// Output format.
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Form,
}

/// How long something is waited for.
#[derive(Args, Debug)]
pub(super) struct WaitLimit {
    /// Wait until it is done.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) limit: Limit,
}
