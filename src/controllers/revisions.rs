//! Specs that are too large for the annotation, in ControllerRevisions owned by their object: written, read
//! back, and deleted when unreferenced.

use std::collections::BTreeMap;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::revision;
use interlock_core::api::revision::{PartsReader, RevisionOwner};
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::ApiFailure;

use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::requests::local;

/// Writes a spec, given as JSON that hashes to `hash`. An existing one is left alone.
pub async fn write(
    bookkeeping: &Bookkeeping,
    owner: &RevisionOwner<'_>,
    hash: &SpecHash,
    spec: &str,
) -> Result<(), ApiFailure> {
    let parts = revision::parts(owner, hash, spec)
        .map_err(|error| local(format!("the spec of {} cannot be packed: {error}", owner.key)))?;
    let mut foreign = false;
    for part in &parts {
        foreign |= bookkeeping.create_revision(&owner.key.namespace, part).await?.is_none();
    }
    // Another client may have made one of that name.
    if foreign && read(bookkeeping, owner, hash).await?.as_deref() != Some(spec) {
        let name = revision::name(&owner.key.name, owner.uid, hash, 0);
        return Err(ApiFailure {
            code: 409,
            reason: "AlreadyExists".to_owned(),
            message: format!(
                "ControllerRevision {}/{name} is there and does not keep the spec of {} {}: delete it",
                owner.key.namespace, owner.kind, owner.key
            ),
            namespace_terminating: false,
        });
    }
    Ok(())
}

/// Reads a spec back as JSON; `None` where it is incomplete. The caller checks its hash.
pub async fn read(
    bookkeeping: &Bookkeeping,
    owner: &RevisionOwner<'_>,
    hash: &SpecHash,
) -> Result<Option<String>, ApiFailure> {
    let mut parts = PartsReader::default();
    while let Some(number) = parts.next() {
        let name = revision::name(&owner.key.name, owner.uid, hash, number);
        let key = NamespacedName::new(owner.key.namespace.as_str(), name);
        let part = bookkeeping.revision(&key).await?;
        if part.and_then(|part| parts.take(&part)).is_none() {
            return Ok(None);
        }
    }
    Ok(parts.text())
}

/// Deletes the specs of an object, except those with a short hash to keep, and the newest `spared` of the
/// others.
pub async fn prune(
    bookkeeping: &Bookkeeping,
    owner: &RevisionOwner<'_>,
    keep: impl Fn(&str) -> bool,
    spared: usize,
) -> Result<(), ApiFailure> {
    let namespace = &owner.key.namespace;
    let found = bookkeeping.revisions(namespace, (meta::REVISION_OF, owner.uid)).await?;
    let mut specs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for part in found {
        if let Some(hash) = part.name.as_deref().and_then(revision::short_hash) {
            specs.entry(hash.to_owned()).or_default().push(part);
        }
    }
    let mut old: Vec<_> = specs.into_iter().filter(|(hash, _)| !keep(hash)).map(|(_, parts)| parts).collect();
    old.sort_by_key(|parts| {
        std::cmp::Reverse(parts.iter().map(|part| part.creation_timestamp.clone()).max())
    });
    for part in old.into_iter().skip(spared).flatten() {
        let (Some(name), Some(uid)) = (part.name, part.uid) else { continue };
        bookkeeping.delete_revision(&NamespacedName::new(namespace.as_str(), name), &uid).await?;
    }
    Ok(())
}
