//! `interlock rollout promote`.

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::api::stamp::SpecHash;
use interlock_kong::data_plane::rollout::follow::PromotionFollower;
use interlock_kong::data_plane::rollout::promotion::{PromotionRequest, requested};
use interlock_kong::data_plane::rollout::report::ReportedPhase;
use interlock_kong::data_plane::rollout::summary::RolloutSummary;
use interlock_kong::data_plane::rollout::verbs;
use kube::api::Patch;
use serde_json::{Value, json};

use super::data_plane::DataPlaneRef;
use super::flags::VerbFlags;
use super::wait;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;

/// How often a request is written again, as the status changes while pods start.
const TRIES: u32 = 5;

/// Requests the promotion of what is staged.
pub(super) async fn run(plane: &DataPlaneRef, flags: &VerbFlags) -> Result<(), CliError> {
    let object = plane.get().await?;
    let hash = staged(plane, &object).await?;
    let follower = PromotionFollower::of(&object);
    let requested = request(plane, object, &hash).await?;
    output::line(&plain(&requested_line(plane, &requested, &hash)))?;
    if !flags.wait {
        return Ok(());
    }
    wait::until_done(plane, flags.limit.timeout, &requested, |object| follower.progress(object)).await?;
    output::line(&format!("dataplane {}: spec {} is live", plane.key(), hash.short()))
}

async fn staged(plane: &DataPlaneRef, object: &Value) -> Result<SpecHash, CliError> {
    let kept = plane.kept(object).await;
    verbs::promote(object, kept.spec.as_ref()).map_err(|why| plane.refusal("promoted", &why))
}

/// Writes the annotation, on the condition that the spec is still the one that is meant.
pub(in crate::cli) async fn request(
    plane: &DataPlaneRef,
    mut object: Value,
    hash: &SpecHash,
) -> Result<Value, CliError> {
    for _ in 0..TRIES {
        let stands = annotation(&object, meta::PROMOTE_WHEN_READY);
        if stands.is_some_and(|value| requested(value, &object["spec"]) == PromotionRequest::ThisSpec) {
            return Ok(object);
        }
        let patch = json!({"metadata": {
            "resourceVersion": meta_str(&object, "resourceVersion"),
            "annotations": {meta::PROMOTE_WHEN_READY: hash},
        }});
        if let Some(patched) = plane.patch(Patch::Merge(patch)).await? {
            return Ok(patched);
        }
        object = plane.get().await?;
        if staged(plane, &object).await? != *hash {
            return Err(CliError::refused(format!("DataPlane {} is not promoted", plane.key()))
                .why("the spec was changed meanwhile")
                .next(format!(
                    "look at what is staged now (`interlock rollout status {}`), and promote that",
                    plane.arguments()
                )));
        }
    }
    Err(CliError::unreached(format!("DataPlane {} is not promoted", plane.key()))
        .why("it is changed all the time")
        .next("try again"))
}

/// The line about a request.
pub(in crate::cli) fn requested_line(plane: &DataPlaneRef, object: &Value, hash: &SpecHash) -> String {
    let summary = RolloutSummary::of(object, None);
    let done = format!("dataplane {}: the promotion of spec {} is requested", plane.key(), hash.short());
    match summary.phase {
        ReportedPhase::AwaitingPromotion | ReportedPhase::Promoting => done,
        ReportedPhase::Unreported => {
            format!("{done}; no controller has reported on it: {}", summary.next.unwrap_or_default())
        }
        phase => {
            let waits_for = summary.waits_for.map_or_else(String::new, |what| format!(": {what}"));
            format!("{done}, and takes effect when the preview is ready (now {phase}{waits_for})")
        }
    }
}
