//! `interlock rollout abort`.

use interlock_kong::data_plane::rollout::follow::abort_progress;
use interlock_kong::data_plane::rollout::verbs;
use interlock_kong::data_plane::rollout::verbs::Abort;
use serde_json::Value;

use super::data_plane::DataPlaneRef;
use super::flags::VerbFlags;
use super::spec_write::{SpecWrite, print_changes};
use super::wait;
use crate::cli::common::error::CliError;
use crate::cli::common::output;

/// Sets the spec back to what is live.
pub(super) async fn run(plane: &DataPlaneRef, flags: &VerbFlags) -> Result<(), CliError> {
    let (object, undone) = write(plane).await?;
    output::line(&format!("dataplane {}: the spec is what is live again; undone:", plane.key()))?;
    print_changes(&undone.undone)?;
    if !flags.wait {
        return Ok(());
    }
    wait::until_done(plane, flags.limit.timeout, &object, abort_progress).await?;
    output::line(&format!("dataplane {}: nothing is staged", plane.key()))
}

/// Writes the live spec.
async fn write(plane: &DataPlaneRef) -> Result<(Value, Abort), CliError> {
    let decide = async |object: &Value| {
        let kept = plane.kept(object).await;
        verbs::abort(object, kept.spec.as_ref()).map_err(|why| {
            let refusal = plane.refusal("set back", &why);
            match &kept.unread {
                Some(unread) => refusal.why(unread),
                None => refusal,
            }
        })
    };
    let write = SpecWrite { done: "set back", again: "abort that", is_dry_run: false };
    write.write(plane, decide, |abort| &abort.spec).await
}
