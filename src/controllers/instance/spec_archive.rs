//! Archive of specs that are too large for an Instance's stamp, in ControllerRevisions.

use interlock_core::api::meta;
use interlock_core::api::revision::RevisionOwner;
use interlock_core::api::stamp::{Applied, SpecHash};
use interlock_core::effect::ApiFailure;

use super::context::InstanceContext;
use super::patches;
use super::view::InstanceView;
use crate::controllers::revisions;

/// Archives a spec, before any other effect of the run.
pub async fn write(
    ctx: &InstanceContext,
    subject: &InstanceView,
    spec: &Applied<'_>,
) -> Result<(), ApiFailure> {
    let text = spec.canonical();
    revisions::write(&ctx.bookkeeping, &owner(subject), &SpecHash::of(&text), &text).await
}

/// Reads a spec of a stamp back; `None` where it is incomplete or has another hash.
pub async fn read(
    ctx: &InstanceContext,
    subject: &InstanceView,
    hash: &SpecHash,
) -> Result<Option<Applied<'static>>, ApiFailure> {
    let found = revisions::read(&ctx.bookkeeping, &owner(subject), hash).await?;
    Ok(found.and_then(|text| parse(&text, hash)))
}

/// Deletes specs that the stamp no longer refers to.
pub async fn prune(ctx: &InstanceContext, subject: &InstanceView) -> Result<(), ApiFailure> {
    let kept = patches::referenced(subject.stamp.as_ref());
    ctx.status_cache.forget_archived(&subject.key);
    let keep = |short: &str| kept.iter().any(|hash| hash.short() == short);
    revisions::prune(&ctx.bookkeeping, &owner(subject), keep, 0).await
}

/// The Instance as the owner of its ControllerRevisions.
pub fn owner(subject: &InstanceView) -> RevisionOwner<'_> {
    RevisionOwner {
        api_version: meta::KUDO_API_VERSION,
        kind: "Instance",
        key: &subject.key,
        uid: subject.uid(),
        revision: subject.generation().unwrap_or_default(),
    }
}

/// A stored spec; `None` unless it has that hash.
fn parse(text: &str, hash: &SpecHash) -> Option<Applied<'static>> {
    let spec: Applied<'_> = serde_json::from_str(text).ok()?;
    (spec.hash() == *hash).then(|| spec.into_owned())
}
