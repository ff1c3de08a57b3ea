//! The state of a rollout: `interlock rollout status`, and the wait for what was asked of it, with a line for each change.

use std::time::Duration;

use clap::Args;
use interlock_kong::data_plane::rollout::report::RolloutPhase;
use interlock_kong::data_plane::rollout::report::follow::RolloutProgress;
use interlock_kong::data_plane::rollout::report::summary::RolloutSummary;
use serde_json::Value;

use super::data_plane::{DataPlaneName, DataPlaneRef};
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::invoked::as_called;
use crate::cli::common::output;
use crate::cli::common::output::{News, OutputFlag};

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
    let mut shown = News { last: line(printed) };
    let end = plane.until_value(Duration::MAX, |object| {
        let summary = RolloutSummary::of(&object, None);
        let printed = shown.line(line(&summary));
        printed.map_or_else(|error| Some(Err(error)), |()| is_over(&summary).then_some(Ok(summary)))
    });
    match end.await? {
        Some(summary) if summary.phase.has_failed() || summary.stalled.is_some() => {
            let failed = CliError::refused(format!("{plane}: {}", summary.phase))
                .why(summary.stalled.or(summary.waits_for).unwrap_or_default());
            Err(failed.next_where(summary.next))
        }
        Some(_) => Ok(()),
        None => Err(CliError::unreached("the watch has ended")),
    }
}

/// Whether a rollout does not go on.
fn is_over(summary: &RolloutSummary) -> bool {
    let rests =
        matches!(summary.phase, RolloutPhase::Idle | RolloutPhase::InPlace) && summary.staged.is_none();
    rests || summary.phase.has_failed() || summary.stalled.is_some()
}

pub(in crate::cli) fn line(summary: &RolloutSummary) -> String {
    let waits_for = summary.waits_for.as_ref().map_or_else(String::new, |what| format!(", waits for {what}"));
    format!("dataplane {}/{}: {}{waits_for}", summary.namespace, summary.name, summary.phase)
}

/// Waits until it is done.
pub(super) async fn until_done(
    plane: &DataPlaneRef,
    limit: Duration,
    asked: &Value,
    progress: impl Fn(&Value) -> RolloutProgress,
) -> Result<(), CliError> {
    let mut shown = None;
    let mut look = |object: &Value| match progress(object) {
        RolloutProgress::Done => Some(Ok(())),
        RolloutProgress::Failed(why) => Some(Err(failed(plane, &why))),
        RolloutProgress::Replaced => {
            Some(Err(changed(plane, "is not promoted", ", and the request was for the one before")))
        }
        RolloutProgress::Withdrawn => Some(Err(withdrawn(plane))),
        RolloutProgress::Overwritten => Some(Err(changed(plane, "has another spec", ""))),
        RolloutProgress::Waiting(state) if shown.as_ref() == Some(&state) => None,
        RolloutProgress::Waiting(state) => {
            let printed = output::line(&plain(&format!("dataplane {}: {state}", plane.key())));
            shown = Some(state);
            printed.err().map(Err)
        }
    };
    // The state is known even if no event follows.
    if let Some(end) = look(asked) {
        return end;
    }
    let ended = plane.until_value(limit, |object| look(&object)).await?;
    ended.ok_or_else(|| {
        plane.not_done(limit).why(shown.unwrap_or_default()).next(format!(
            "wait longer with --timeout, or look at what it waits for: `interlock rollout status {}`",
            plane.arguments()
        ))
    })
}

fn failed(plane: &DataPlaneRef, why: &str) -> CliError {
    CliError::refused(format!("the rollout of {plane} has failed")).why(why).next(format!(
        "correct the cause (`kubectl describe dataplane {arguments}`), or take it back with `interlock rollout abort \
         {arguments}`",
        arguments = plane.arguments()
    ))
}

/// The error of a request that was taken back.
pub(in crate::cli) fn withdrawn(plane: &DataPlaneRef) -> CliError {
    CliError::refused(format!("{plane} is not promoted"))
        .why("the request was taken back meanwhile")
        .next(format!("request it again: `interlock rollout promote {}`", plane.arguments()))
}

/// The error of a spec that another has replaced.
fn changed(plane: &DataPlaneRef, what: &str, why: &str) -> CliError {
    CliError::refused(format!("{plane} {what}"))
        .why(format!("the spec was changed meanwhile{why}"))
        .next(format!("look at what is staged now: `interlock rollout status {}`", plane.arguments()))
}
