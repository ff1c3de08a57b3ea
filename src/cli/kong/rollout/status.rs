//! `interlock rollout status`.

use std::time::Duration;

use clap::Args;
use interlock_kong::data_plane::rollout::report::ReportedPhase;
use interlock_kong::data_plane::rollout::summary::RolloutSummary;

use super::data_plane::DataPlaneRef;
use super::flags::DataPlaneName;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::invoked::as_called;
use crate::cli::common::output;
use crate::cli::common::output::OutputFlag;

/// Flags of `status`.
#[derive(Args, Debug)]
#[group(skip)]
pub(super) struct RolloutStatusFlags {
    #[command(flatten)]
    pub(super) name: DataPlaneName,
    #[command(flatten)]
    form: OutputFlag,
    /// Print a line for each change, until nothing is staged (0), or the rollout has failed or is stalled (1).
    #[arg(long, short, conflicts_with = "output")]
    watch: bool,
}

/// Prints the state of a rollout.
pub(super) async fn run(plane: &DataPlaneRef, flags: &RolloutStatusFlags) -> Result<(), CliError> {
    let object = plane.get().await?;
    let kept = plane.kept(&object).await;
    let mut summary = RolloutSummary::of(&object, kept.spec.as_ref());
    if let Some(why) = kept.unread {
        summary.live.unknown = Some(why);
    }
    flags.form.output.print(&summary, || as_called(&plain_lines(&summary.to_string())))?;
    if flags.watch { watch(plane, &summary).await } else { Ok(()) }
}

/// Names and messages of others do not steer the terminal.
fn plain_lines(text: &str) -> String {
    text.lines().map(|line| plain(line) + "\n").collect()
}

async fn watch(plane: &DataPlaneRef, printed: &RolloutSummary) -> Result<(), CliError> {
    let mut shown = line(printed);
    let end = plane.until(Duration::MAX, |object| {
        let summary = RolloutSummary::of(&object, None);
        let line = line(&summary);
        if line != shown {
            if let Err(error) = output::line(&plain(&line)) {
                return Some(Err(error));
            }
            shown = line;
        }
        is_over(&summary).then_some(Ok(summary))
    });
    match end.await? {
        Some(summary) if summary.phase.has_failed() || summary.stalled.is_some() => {
            let failed = CliError::refused(format!("DataPlane {}: {}", plane.key(), summary.phase))
                .why(summary.stalled.or(summary.waits_for).unwrap_or_default());
            Err(match summary.next {
                Some(next) => failed.next(next),
                None => failed,
            })
        }
        Some(_) => Ok(()),
        None => Err(CliError::unreached("the watch has ended")),
    }
}

/// Whether a rollout does not go on.
fn is_over(summary: &RolloutSummary) -> bool {
    let rests =
        matches!(summary.phase, ReportedPhase::Idle | ReportedPhase::InPlace) && summary.staged.is_none();
    rests || summary.phase.has_failed() || summary.stalled.is_some()
}

pub(in crate::cli) fn line(summary: &RolloutSummary) -> String {
    let waits_for = summary.waits_for.as_ref().map_or_else(String::new, |what| format!(", waits for {what}"));
    format!("dataplane {}/{}: {}{waits_for}", summary.namespace, summary.name, summary.phase)
}
