//! Waits for the end of what was asked of a rollout, with a line for each change.

use std::time::Duration;

use interlock_kong::data_plane::rollout::follow::RolloutProgress;
use serde_json::Value;

use super::data_plane::DataPlaneRef;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;

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
        RolloutProgress::Replaced => Some(Err(replaced(plane))),
        RolloutProgress::Withdrawn => Some(Err(withdrawn(plane))),
        RolloutProgress::Overwritten => Some(Err(overwritten(plane))),
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
    match plane.until(limit, |object| look(&object)).await? {
        Some(()) => Ok(()),
        None => Err(CliError::unreached(format!("DataPlane {} is not done after {limit:?}", plane.key()))
            .why(shown.unwrap_or_default())
            .next(format!(
                "wait longer with --timeout, or look at what it waits for: `interlock rollout status {}`",
                plane.arguments()
            ))),
    }
}

fn failed(plane: &DataPlaneRef, why: &str) -> CliError {
    CliError::refused(format!("the rollout of DataPlane {} has failed", plane.key())).why(why).next(format!(
        "correct the cause (`kubectl describe dataplane {arguments}`), or take it back with `interlock rollout abort \
         {arguments}`",
        arguments = plane.arguments()
    ))
}

fn replaced(plane: &DataPlaneRef) -> CliError {
    CliError::refused(format!("DataPlane {} is not promoted", plane.key()))
        .why("the spec was changed meanwhile, and the request was for the one before")
        .next(format!("look at what is staged now: `interlock rollout status {}`", plane.arguments()))
}

/// The error of a request that was taken back.
pub(in crate::cli) fn withdrawn(plane: &DataPlaneRef) -> CliError {
    CliError::refused(format!("DataPlane {} is not promoted", plane.key()))
        .why("the request was taken back meanwhile")
        .next(format!("request it again: `interlock rollout promote {}`", plane.arguments()))
}

fn overwritten(plane: &DataPlaneRef) -> CliError {
    CliError::refused(format!("DataPlane {} has another spec", plane.key()))
        .why("the spec was changed meanwhile")
        .next(format!("look at what is staged now: `interlock rollout status {}`", plane.arguments()))
}
