//! The Secrets of type `interlock.dev/spec` in which Interlock 0.1 kept large specs, gzipped: read and
//! deleted, with the rights of the overlay `migrate-spec-secrets`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::revision;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::ApiFailure;
use serde_json::Value;

use super::context::InstanceContext;
use super::view::InstanceView;

/// Key of the data.
const DATA: &str = "spec.json.gz";

/// Reads a spec as JSON; `None` where it is incomplete.
pub async fn read(
    ctx: &InstanceContext,
    subject: &InstanceView,
    hash: &SpecHash,
) -> Result<Option<String>, ApiFailure> {
    let secrets = parts(ctx, subject, hash).await?;
    let data: Option<Vec<Vec<u8>>> =
        secrets.iter().map(|s| STANDARD.decode(s.get("data")?.get(DATA)?.as_str()?).ok()).collect();
    Ok(data.and_then(|data| revision::unpack(&data)))
}

/// Deletes a spec, its first part last: without that the others are not found.
pub async fn delete(
    ctx: &InstanceContext,
    subject: &InstanceView,
    hash: &SpecHash,
) -> Result<(), ApiFailure> {
    for secret in parts(ctx, subject, hash).await?.iter().rev() {
        let (Some(name), Some(uid)) = (meta_str(secret, "name"), meta_str(secret, "uid")) else { continue };
        let key = NamespacedName::new(subject.key.namespace.as_str(), name);
        ctx.bookkeeping.delete_secret(&key, uid).await?;
    }
    Ok(())
}

async fn parts(
    ctx: &InstanceContext,
    subject: &InstanceView,
    hash: &SpecHash,
) -> Result<Vec<Value>, ApiFailure> {
    let mut found = Vec::new();
    let mut count = 1;
    while found.len() < count {
        let name = revision::name(&subject.key.name, subject.uid(), hash, found.len());
        let key = NamespacedName::new(subject.key.namespace.as_str(), name);
        let Some(secret) = ctx.bookkeeping.secret(&key).await? else { return Ok(found) };
        if secret.get("type").and_then(Value::as_str) != Some(meta::SPEC_SECRET_TYPE) {
            return Ok(found);
        }
        count = revision::count(&secret);
        found.push(secret);
    }
    Ok(found)
}
