//! `interlock rollout undo`.

use clap::{Args, ValueEnum};
use interlock_kong::data_plane::rollout::history::History;
use interlock_kong::data_plane::rollout::history::undo::{
    Undo, UndoOutcome, UndoRefusal, undo, undo_progress,
};
use interlock_kong::data_plane::rollout::staged_hash;
use serde_json::Value;

use super::data_plane::DataPlaneRef;
use super::flags::VerbFlags;
use super::history;
use super::spec_write::{SpecWrite, print_changes};
use super::wait;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// Flags of `undo`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct UndoFlags {
    #[command(flatten)]
    pub(super) verb: VerbFlags,
    /// The revision to go back to, as `rollout history` lists it. Without it, the one before the live one.
    #[arg(long, value_name = "REVISION", alias = "to-revision")]
    to: Option<i64>,
    /// Let the API server and admission judge the write, and store nothing.
    #[arg(long, value_enum, conflicts_with = "wait")]
    dry_run: Option<DryRun>,
}

/// Who judges a write that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DryRun {
    /// The API server.
    Server,
}

/// Writes the spec of a revision.
pub(super) async fn run(plane: &DataPlaneRef, flags: &UndoFlags) -> Result<(), CliError> {
    let decide = async |object: &Value| {
        let listed = plane.history(object).await?;
        let uid = history::uid(object);
        let kept = plane.kept(object).await;
        undo(object, kept.spec.as_ref(), &History::of(&listed, uid), flags.to)
            .map_err(|why| refusal(plane, &why))
    };
    let is_dry_run = flags.dry_run.is_some();
    let write = SpecWrite { done: "undone", again: "undo that", is_dry_run };
    let (object, done) = write.write(plane, decide, |undo| &undo.spec).await?;
    let dry_run = if is_dry_run { " (server dry run)" } else { "" };
    let revision = done.revision;
    output::line(&format!(
        "dataplane {}: the spec is that of revision {revision}{dry_run}; changed:",
        plane.key()
    ))?;
    print_changes(&done.changes)?;
    if is_dry_run {
        return Ok(());
    }
    if !flags.verb.wait {
        return output::line(&next(plane, &done));
    }
    let hash = staged_hash(&object["spec"]);
    let progress = |object: &Value| undo_progress(&hash, object);
    wait::until_done(plane, flags.verb.limit.timeout, &object, progress).await?;
    output::line(&next(plane, &done))
}

/// What has become of the write, and the next command.
fn next(plane: &DataPlaneRef, done: &Undo) -> String {
    let (key, arguments) = (plane.key(), plane.arguments());
    match done.outcome {
        UndoOutcome::Staged => {
            format!(
                "dataplane {key}: revision {} is staged; promote it: `interlock rollout promote {arguments}`",
                done.revision
            )
        }
        UndoOutcome::Unstaged => {
            format!("dataplane {key}: nothing is staged, as revision {} is live", done.revision)
        }
        UndoOutcome::InPlace => {
            format!("dataplane {key}: revision {} is rolled out in place", done.revision)
        }
    }
}

fn refusal(plane: &DataPlaneRef, why: &UndoRefusal) -> CliError {
    let arguments = plane.arguments();
    let list = format!("`interlock rollout history {arguments}`");
    let error = CliError::refused(format!("DataPlane {} is not undone", plane.key())).why(why.to_string());
    error.next(match why {
        UndoRefusal::InProgress => {
            format!("wait for its end: `interlock rollout status {arguments} --watch`")
        }
        UndoRefusal::NoHistory => {
            "write the spec yourself; Interlock records a revision once the live pods were ready, \
                                   where it carries DataPlanes out"
                .to_owned()
        }
        UndoRefusal::NoFormer => format!("look at what there is: {list}"),
        UndoRefusal::Unknown { .. } => format!("choose one with --to: {list}"),
        UndoRefusal::Unreadable(_) => format!("choose another one with --to: {list}"),
        UndoRefusal::Written(_) => format!("look at what is staged: `interlock rollout status {arguments}`"),
    })
}
