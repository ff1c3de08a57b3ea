//! `interlock rollout abort`.

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::kinds::data_plane::rollout::follow::abort_progress;
use interlock_core::kinds::data_plane::rollout::staged_hash;
use interlock_core::kinds::data_plane::rollout::verbs;
use interlock_core::kinds::data_plane::rollout::verbs::Abort;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, ReplaceOperation};
use kube::api::Patch;
use serde_json::Value;

use super::data_plane::DataPlaneRef;
use super::flags::VerbFlags;
use super::wait;
use crate::cli::error::{CliError, plain};
use crate::cli::output;

/// How often the spec is written again, as the status changes while pods start.
const TRIES: u32 = 5;

/// Sets the spec back to what is live.
pub(super) async fn run(plane: &DataPlaneRef, flags: &VerbFlags) -> Result<(), CliError> {
    let (object, undone) = write(plane).await?;
    output::line(&format!("dataplane {}: the spec is what is live again; undone:", plane.key()))?;
    for field in &undone.undone.fields {
        output::line(&plain(&format!("  {field}")))?;
    }
    if undone.undone.more > 0 {
        output::line(&format!("  and {} more", undone.undone.more))?;
    }
    if !flags.wait {
        return Ok(());
    }
    wait::until_done(plane, flags.limit.timeout, &object, abort_progress).await?;
    output::line(&format!("dataplane {}: nothing is staged", plane.key()))
}

/// Writes the live spec, on the condition that what is undone is what was seen.
async fn write(plane: &DataPlaneRef) -> Result<(Value, Abort), CliError> {
    let mut object = plane.get().await?;
    let seen = staged_hash(&object["spec"]);
    for _ in 0..TRIES {
        let kept = plane.kept(&object).await;
        let abort = verbs::abort(&object, kept.spec.as_ref()).map_err(|why| {
            let refusal = plane.refusal("set back", &why);
            match &kept.unread {
                Some(unread) => refusal.why(unread),
                None => refusal,
            }
        })?;
        if let Some(patched) = plane.patch(patch(&object, &abort)).await? {
            return Ok((patched, abort));
        }
        object = plane.get().await?;
        if staged_hash(&object["spec"]) != seen {
            return Err(CliError::refused(format!("DataPlane {} is not set back", plane.key()))
                .why("the spec was changed meanwhile")
                .next(format!(
                    "look at what is staged now (`interlock rollout status {}`), and abort that",
                    plane.arguments()
                )));
        }
    }
    Err(CliError::unreached(format!("DataPlane {} is not set back", plane.key()))
        .why("it is changed all the time")
        .next("try again"))
}

/// The spec, without a request to promote it, of the version that was read.
fn patch(object: &Value, abort: &Abort) -> Patch<Value> {
    let replace = |path: &[&str], value: Value| {
        PatchOperation::Replace(ReplaceOperation {
            path: PointerBuf::from_tokens(path.iter().copied()),
            value,
        })
    };
    let version = meta_str(object, "resourceVersion").unwrap_or_default();
    let mut operations = vec![
        replace(&["metadata", "resourceVersion"], version.into()),
        replace(&["spec"], abort.spec.clone()),
    ];
    if annotation(object, meta::PROMOTE_WHEN_READY).is_some() {
        let path = PointerBuf::from_tokens(["metadata", "annotations", meta::PROMOTE_WHEN_READY]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    Patch::Json(json_patch::Patch(operations))
}
