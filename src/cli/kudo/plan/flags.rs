//! Flags of the subcommands of `interlock plan`.

use clap::Args;

use crate::cli::common::flags::Limit;
use crate::cli::common::output::OutputFlag;

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
        bare(self.name.as_deref().or(self.instance.as_deref()).unwrap_or_default())
    }
}

/// The name without the kind before it.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

/// The Instance, and the form of the output.
#[derive(Args, Debug)]
pub(super) struct OutputFlags {
    #[command(flatten)]
    pub(super) name: InstanceName,
    #[command(flatten)]
    pub(super) form: OutputFlag,
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
