//! Writes a spec that a verb decides on, on the condition that what it replaces is what was seen.

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_kong::data_plane::rollout::changes::StagedChanges;
use interlock_kong::data_plane::rollout::staged_hash;
use json_patch::jsonptr::PointerBuf;
use json_patch::{PatchOperation, RemoveOperation, ReplaceOperation};
use kube::api::Patch;
use serde_json::Value;

use super::data_plane::DataPlaneRef;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;

/// How often the spec is written again, as the status changes while pods start.
const TRIES: u32 = 5;

/// What is written, and the words about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpecWrite<'w> {
    /// What is done to the DataPlane: "set back".
    pub(super) done: &'w str,
    /// What to do where the spec was changed meanwhile.
    pub(super) again: &'w str,
    /// Whether the API server stores nothing.
    pub(super) is_dry_run: bool,
}

impl SpecWrite<'_> {
    /// Writes what `decide` makes of the object; returns the object as written, and what was decided.
    pub(super) async fn write<T>(
        &self,
        plane: &DataPlaneRef,
        decide: impl AsyncFn(&Value) -> Result<T, CliError>,
        spec: impl Fn(&T) -> &Value,
    ) -> Result<(Value, T), CliError> {
        let mut object = plane.get().await?;
        let seen = staged_hash(&object["spec"]);
        for _ in 0..TRIES {
            let decided = decide(&object).await?;
            let patch = patch(&object, spec(&decided).clone());
            if let Some(patched) = plane.patch_or_try(patch, self.is_dry_run).await? {
                return Ok((patched, decided));
            }
            object = plane.get().await?;
            if staged_hash(&object["spec"]) != seen {
                return Err(CliError::refused(self.not_done(plane))
                    .why("the spec was changed meanwhile")
                    .next(format!(
                        "look at what is staged now (`interlock rollout status {}`), and {}",
                        plane.arguments(),
                        self.again
                    )));
            }
        }
        Err(CliError::unreached(self.not_done(plane)).why("it is changed all the time").next("try again"))
    }

    fn not_done(&self, plane: &DataPlaneRef) -> String {
        format!("DataPlane {} is not {}", plane.key(), self.done)
    }
}

/// The spec, without a request for a promotion, of the version that was read.
fn patch(object: &Value, spec: Value) -> Patch<Value> {
    let replace = |path: &[&str], value: Value| {
        PatchOperation::Replace(ReplaceOperation {
            path: PointerBuf::from_tokens(path.iter().copied()),
            value,
        })
    };
    let version = meta_str(object, "resourceVersion").unwrap_or_default();
    let mut operations =
        vec![replace(&["metadata", "resourceVersion"], version.into()), replace(&["spec"], spec)];
    if annotation(object, meta::PROMOTE_WHEN_READY).is_some() {
        let path = PointerBuf::from_tokens(["metadata", "annotations", meta::PROMOTE_WHEN_READY]);
        operations.push(PatchOperation::Remove(RemoveOperation { path }));
    }
    Patch::Json(json_patch::Patch(operations))
}

/// Prints the fields that a write has changed.
pub(super) fn print_changes(changes: &StagedChanges) -> Result<(), CliError> {
    for field in &changes.fields {
        output::line(&plain(&format!("  {field}")))?;
    }
    match changes.more {
        0 => Ok(()),
        more => output::line(&format!("  and {more} more")),
    }
}
