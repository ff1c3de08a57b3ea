//! Handles specs that cannot be archived, and those that an older version stored elsewhere.

use interlock_core::api::meta;
use interlock_core::api::meta::condition as types;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::{ApiFailure, Severity};
use interlock_kudo::instance::change::conditions;

use super::api_calls::{note, patch, patch_status};
use super::context::InstanceContext;
use super::flow::Flow;
use super::patches;
use super::patches::InstanceChange;
use super::status_patch::StatusChange;
use super::view::InstanceView;
use super::{spec_archive, spec_secrets};
use crate::runtime::controller::Action;

/// Reports why a spec could not be archived, where a person has to act; its plan does not begin.
pub(super) async fn not_kept(
    ctx: &InstanceContext,
    subject: &InstanceView,
    failure: ApiFailure,
) -> Result<Flow, ApiFailure> {
    let reason = match failure.code {
        403 if failure.namespace_terminating => return Err(failure),
        403 => types::MISSING_RIGHT,
        409 | 413 | 422 => types::SPEC_NOT_KEPT,
        _ => return Err(failure),
    };
    let remedy = if failure.code == 403 { "; apply what `interlock render rbac` prints" } else { "" };
    let message = format!(
        "the spec is too large for the annotation and cannot be kept in a ControllerRevision: {}{remedy}",
        failure.message
    );
    stall(ctx, subject, reason, message).await
}

/// Moves the specs of a stamp out of Secrets; `None` where it refers to none.
///
/// Deletes the Secrets before it updates the stamp: reads prefer ControllerRevisions.
pub(super) async fn migrate(
    ctx: &InstanceContext,
    subject: &InstanceView,
) -> Result<Option<Flow>, ApiFailure> {
    for hash in patches::in_secrets(subject) {
        match move_spec(ctx, subject, &hash).await {
            Ok(()) => {}
            // Its deletion does not wait: owned objects are deleted with it.
            Err(Failed { failure, .. }) if failure.code == 403 && subject.deleted_at().is_some() => {
                return Ok(None);
            }
            Err(Failed { failure, of_secrets: true })
                if failure.code == 403 && !failure.namespace_terminating =>
            {
                return missing_right(ctx, subject, &failure).await.map(Some);
            }
            Err(Failed { failure, .. }) => return not_kept(ctx, subject, failure).await.map(Some),
        }
    }
    let Some(stamp) = patches::migrated(subject) else { return Ok(None) };
    tracing::info!(instance = %subject.key, "its specs were moved from Secrets to ControllerRevisions");
    patch(ctx, subject, InstanceChange { stamp: Some(stamp), ..InstanceChange::default() }).await.map(Some)
}

/// A request that failed.
struct Failed {
    failure: ApiFailure,
    /// Whether the request was for Secrets.
    of_secrets: bool,
}

async fn move_spec(ctx: &InstanceContext, subject: &InstanceView, hash: &SpecHash) -> Result<(), Failed> {
    let archive = |failure| Failed { failure, of_secrets: false };
    let secrets = |failure| Failed { failure, of_secrets: true };
    if !spec_archive::holds(ctx, subject, hash).await.map_err(archive)? {
        let found = spec_archive::read_secrets(ctx, subject, hash).await.map_err(secrets)?;
        let own = || (subject.hash == *hash).then(|| subject.spec.clone());
        // Where neither has it, nothing is archived, and the run reports that.
        if let Some(spec) = found.or_else(own) {
            spec_archive::write(ctx, subject, &spec).await.map_err(archive)?;
        }
    }
    spec_secrets::delete(ctx, subject, hash).await.map_err(secrets)
}

async fn missing_right(
    ctx: &InstanceContext,
    subject: &InstanceView,
    refused: &ApiFailure,
) -> Result<Flow, ApiFailure> {
    let message = format!(
        "an older Interlock kept the spec of this Instance in Secrets, which this one may not read and delete: {}; \
         nothing is run until it is moved: `kubectl apply -k manifests/overlays/{}` (see docs/upgrade.md)",
        refused.message,
        meta::install::MIGRATE_SPEC_SECRETS,
    );
    stall(ctx, subject, types::MISSING_RIGHT, message).await
}

async fn stall(
    ctx: &InstanceContext,
    subject: &InstanceView,
    reason: &str,
    message: String,
) -> Result<Flow, ApiFailure> {
    let conditions = conditions::stalled(reason, message.as_str());
    if patch_status(ctx, subject, StatusChange { conditions, ..StatusChange::default() }).await? {
        note(ctx, subject, Severity::Warning, reason, message).await;
    }
    Ok(Flow::End(Action::Retry))
}
