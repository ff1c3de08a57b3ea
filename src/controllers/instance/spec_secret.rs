//! Specs that are too large for the annotation: gzipped, in Secrets owned by the Instance.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::context::Context;
use super::subject::Subject;
use crate::api::meta;
use crate::api::object::{NamespacedName, meta_str};
use crate::api::stamp::{Applied, SpecHash};
use crate::effect::ApiFailure;
use crate::plan::keep;

/// Annotation of each part: how many there are.
const PARTS: &str = "interlock.dev/parts";
/// Key of the data.
const DATA: &str = "spec.json.gz";

/// Writes a spec, before any other effect of the run.
pub async fn write(ctx: &Context, subject: &Subject, spec: &Applied<'_>) -> Result<(), ApiFailure> {
    let parts = keep::pack(spec).map_err(|error| ApiFailure {
        code: 0,
        reason: "Local".to_owned(),
        message: format!("the spec could not be packed: {error}"),
        namespace_terminating: false,
    })?;
    let hash = spec.hash();
    for (i, part) in parts.iter().enumerate() {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": meta::SPEC_SECRET_TYPE,
            "metadata": {
                "name": keep::secret_name(&subject.key.name, subject.uid(), &hash, i),
                "annotations": { PARTS: parts.len().to_string() },
                "ownerReferences": [{
                    "apiVersion": meta::KUDO_API_VERSION,
                    "kind": "Instance",
                    "name": subject.key.name,
                    "uid": subject.uid(),
                }],
            },
            "data": { DATA: STANDARD.encode(part) },
        });
        ctx.bookkeeping.create_secret(&subject.key.namespace, &secret).await?;
    }
    Ok(())
}

/// Reads a spec back; `None` when it is not there whole.
pub async fn read(
    ctx: &Context,
    subject: &Subject,
    hash: &SpecHash,
) -> Result<Option<Applied<'static>>, ApiFailure> {
    let secrets = parts(ctx, subject, hash).await?;
    let data: Option<Vec<Vec<u8>>> =
        secrets.iter().map(|s| STANDARD.decode(s.get("data")?.get(DATA)?.as_str()?).ok()).collect();
    Ok(data.and_then(|data| keep::unpack(&data, hash)))
}

/// Deletes a spec that no stamp refers to any more.
pub async fn delete(ctx: &Context, subject: &Subject, hash: &SpecHash) -> Result<(), ApiFailure> {
    for secret in parts(ctx, subject, hash).await? {
        let (Some(name), Some(uid)) = (meta_str(&secret, "name"), meta_str(&secret, "uid")) else { continue };
        ctx.bookkeeping
            .delete_secret(&NamespacedName::new(subject.key.namespace.as_str(), name), uid)
            .await?;
    }
    Ok(())
}

async fn parts(ctx: &Context, subject: &Subject, hash: &SpecHash) -> Result<Vec<Value>, ApiFailure> {
    let mut found = Vec::new();
    loop {
        let name = keep::secret_name(&subject.key.name, subject.uid(), hash, found.len());
        let key = NamespacedName::new(subject.key.namespace.as_str(), name);
        let Some(secret) = ctx.bookkeeping.secret(&key).await? else { return Ok(found) };
        if secret.get("type").and_then(Value::as_str) != Some(meta::SPEC_SECRET_TYPE) {
            return Ok(found);
        }
        let total = secret
            .pointer("/metadata/annotations")
            .and_then(|a| a.get(PARTS)?.as_str()?.parse::<usize>().ok())
            .unwrap_or(1);
        found.push(secret);
        if found.len() >= total {
            return Ok(found);
        }
    }
}
