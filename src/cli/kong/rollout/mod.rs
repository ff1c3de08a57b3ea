//! `interlock rollout`: shows, promotes and aborts what is staged in a DataPlane, and goes back to what was live.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::data_plane::{DataPlaneName, DataPlaneRef, VerbFlags};
use crate::cli::common::target::{TargetFlags, block_on};

pub(in crate::cli) mod data_plane;
mod history;
pub(in crate::cli) mod status;
pub(in crate::cli) mod verbs;

/// Flags of `interlock rollout`.
#[derive(Args, Debug)]
pub struct RolloutCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    target: TargetFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Shows the phase of a rollout, what is live, what is staged, and what it waits for.
    Status(status::RolloutStatusFlags),
    /// Promotes the staged change when its pods are ready: 0 requested or live, 1 nothing is staged.
    Promote(VerbFlags),
    /// Sets the spec back to the live one: 0 set back, 1 nothing is staged.
    Abort(VerbFlags),
    /// Lists the revisions that were live, and what each changed.
    History(history::HistoryFlags),
    /// Writes the spec of an earlier revision, which is staged as any change: 0 written, 1 there is no such
    /// revision.
    Undo(verbs::UndoFlags),
}

/// Runs the command.
pub fn main(arguments: RolloutCommand) -> ExitCode {
    block_on(run(arguments))
}

async fn run(arguments: RolloutCommand) -> anyhow::Result<()> {
    let RolloutCommand { verb, target } = arguments;
    let plane = async |name: &DataPlaneName| DataPlaneRef::connect(&target, name.get()).await;
    match verb {
        Verb::Status(flags) => status::run(&plane(&flags.name).await?, &flags).await?,
        Verb::Promote(flags) => verbs::promote(&plane(&flags.name).await?, &flags).await?,
        Verb::Abort(flags) => verbs::abort(&plane(&flags.name).await?, &flags).await?,
        Verb::History(flags) => history::run(&plane(&flags.name).await?, &flags).await?,
        Verb::Undo(flags) => verbs::undo_to(&plane(&flags.verb.name).await?, &flags).await?,
    }
    Ok(())
}
