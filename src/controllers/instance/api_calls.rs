//! Sends the patches of [`patches`], on the version that was read, and stores the API server's answers.

use std::sync::Arc;

use interlock_core::api::stamp::Applied;
use interlock_core::effect::{ApiFailure, Note, Severity};
use interlock_kudo::instance::change::history::EndedRun;
use interlock_kudo::instance::change::uid;
use interlock_kudo::instance::change::uid::ScheduledOn as UidSubject;
use jiff::Timestamp;
use tracing::info;

use super::context::InstanceContext;
use super::patches;
use super::patches::InstanceChange;
use super::status_patch::StatusChange;
use super::view::InstanceView;
use super::{plan_intent, spec_archive, status_patch};
use crate::cluster::watch::WatchChange;
use crate::runtime::rounds::Flow;

/// Writes the Instance on the version that was read.
pub(super) async fn patch(
    ctx: &InstanceContext,
    subject: &InstanceView,
    change: InstanceChange<'_>,
) -> Result<Flow, ApiFailure> {
    let body = patches::instance(subject, change);
    let object = ctx.bookkeeping.patch_instance(&subject.key, subject.resource_version(), body).await?;
    ctx.saw(&subject.key, &WatchChange::Applied(object));
    Ok(Flow::Again)
}

/// Writes the status; `true` when it differed.
pub(super) async fn patch_status(
    ctx: &InstanceContext,
    subject: &InstanceView,
    change: StatusChange,
) -> Result<bool, ApiFailure> {
    let Some(status) = status_patch::status(subject, change, Timestamp::now()) else { return Ok(false) };
    write_status(ctx, subject, status).await?;
    Ok(true)
}

/// Writes the status and caches it; returns the version of the answer.
pub(super) async fn write_status(
    ctx: &InstanceContext,
    subject: &InstanceView,
    status: serde_json::Value,
) -> Result<Option<InstanceView>, ApiFailure> {
    let object = send_status(ctx, subject, status).await?;
    ctx.saw(&subject.key, &WatchChange::Applied(object.clone()));
    let written = InstanceView::read(&subject.key, object).ok();
    if let Some(written) = &written {
        ctx.status_cache.record_write(written);
    }
    Ok(written)
}

/// Sends a change of the status, on the version that was read; returns the new Instance.
pub(super) async fn send_status(
    ctx: &InstanceContext,
    subject: &InstanceView,
    status: serde_json::Value,
) -> Result<Arc<serde_json::Value>, ApiFailure> {
    let object = status_patch::with_status(&subject.object, &status);
    let answer = ctx.bookkeeping.replace_status(&subject.key, &object).await;
    answer.inspect_err(|failure| {
        if failure.may_have_happened() {
            ctx.status_cache.invalidate(&subject.key);
        }
    })
}

/// The uid of a run that the reconciler schedules: the same for a repeated decision on the same version.
pub(super) fn fresh_uid(subject: &InstanceView, plan: &str, spec: &Applied<'_>) -> String {
    let of = UidSubject {
        namespace: &subject.key.namespace,
        name: &subject.key.name,
        version: subject.resource_version(),
    };
    uid::plan_uid(of, plan, &spec.hash()).to_string()
}

/// Schedules a plan under a uid, on the stamp or on the present spec; `ended` is the run before, for the
/// history.
pub(super) async fn schedule_as(
    ctx: &InstanceContext,
    subject: &InstanceView,
    on_stamp: bool,
    (plan, uid): (&str, &str),
    ended: Option<EndedRun>,
) -> Result<Flow, ApiFailure> {
    let differs = subject.stamp.as_ref().is_none_or(|s| s.hash != subject.hash);
    let stamp = (differs && !on_stamp).then(|| patches::stamp(subject, &subject.spec)).flatten();
    info!(instance = %subject.key, plan, uid, "a plan is scheduled by the reconciler");
    patch(
        ctx,
        subject,
        InstanceChange { schedule: Some((plan, uid)), stamp, ended, ..InstanceChange::default() },
    )
    .await
}

/// Takes the plan out of `planExecution`, and adds nothing.
pub(super) async fn unschedule(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    json_patch(ctx, subject, &patches::clear(subject, None, None)).await?;
    Ok(Flow::Again)
}

pub(super) async fn clear(ctx: &InstanceContext, subject: &InstanceView) -> Result<Flow, ApiFailure> {
    let patch =
        patches::clear(subject, plan_intent::finished_run(ctx, subject), plan_intent::answered(ctx, subject));
    let object = json_patch(ctx, subject, &patch).await?;
    if let Ok(now) = InstanceView::read(&subject.key, object) {
        let kept = patches::referenced(now.stamp.as_ref());
        let before = patches::referenced(subject.stamp.as_ref());
        if before.iter().any(|hash| !kept.contains(hash)) {
            spec_archive::prune(ctx, &now).await?;
        }
    }
    Ok(Flow::Again)
}

async fn json_patch(
    ctx: &InstanceContext,
    subject: &InstanceView,
    patch: &json_patch::Patch,
) -> Result<Arc<serde_json::Value>, ApiFailure> {
    let object = ctx.bookkeeping.json_patch_instance(&subject.key, patch).await?;
    ctx.saw(&subject.key, &WatchChange::Applied(object.clone()));
    Ok(object)
}

pub(super) async fn note(
    ctx: &InstanceContext,
    subject: &InstanceView,
    severity: Severity,
    reason: &str,
    message: String,
) {
    let note = Note { severity, reason: reason.to_owned(), message };
    ctx.events.publish(&subject.key, subject.uid(), note).await;
}
