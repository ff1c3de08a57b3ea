//! Flags of the subcommands of `interlock rollout`.

use clap::Args;

use crate::cli::common::flags::Limit;

/// Which DataPlane, as kubectl prints it or by its name.
#[derive(Args, Debug)]
pub(super) struct DataPlaneName {
    /// The DataPlane: NAME or dataplane/NAME.
    #[arg(value_name = "NAME")]
    name: String,
}

impl DataPlaneName {
    pub(super) fn get(&self) -> &str {
        self.name.rsplit_once('/').map_or(&self.name, |(_, name)| name)
    }
}

/// Flags of a verb.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct VerbFlags {
    #[command(flatten)]
    pub(super) name: DataPlaneName,
    /// Wait until it is done: 1 where it fails, 3 where it is not done in time.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) limit: Limit,
}
