//! The inventory of an Instance in ControllerRevisions: read, and written under another name for each content.

use std::collections::BTreeMap;

use interlock_core::api::inventory::ObjectInventory;
use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::revision;
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::ApiFailure;

use super::context::InstanceContext;
use super::inventory_cache::KeptInventory;
use super::spec_archive;
use super::view::InstanceView;
use crate::cluster::requests::local;

/// The inventory at the begin of a pass, which is read once a run.
pub async fn of_run(ctx: &InstanceContext, subject: &InstanceView) -> Result<KeptInventory, ApiFailure> {
    if let Some(known) = ctx.inventories.get(subject) {
        return Ok(known);
    }
    // Before the first run there is none.
    if subject.basis.is_none() && subject.entries().is_empty() {
        return Ok(KeptInventory::default());
    }
    read(ctx, subject).await
}

/// Reads the inventory. Where an earlier process was killed between two writes there are two, which count together:
/// nothing is lost, and what is listed in vain is gone already.
pub async fn read(ctx: &InstanceContext, subject: &InstanceView) -> Result<KeptInventory, ApiFailure> {
    let namespace = &subject.key.namespace;
    let found = ctx.bookkeeping.revisions(namespace, (meta::INVENTORY_OF, subject.uid())).await?;
    let mut kept = KeptInventory::default();
    let mut contents: BTreeMap<String, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
    for part in found {
        let (Some(name), Some(uid)) = (part.name, part.uid) else { continue };
        let key = NamespacedName::new(namespace.as_str(), name.as_str());
        let Some(object) = ctx.bookkeeping.revision(&key).await? else { continue };
        if let (Some(hash), Some(number), Some(data)) =
            (revision::short_hash(&name), revision::part_number(&name), revision::data(&object))
        {
            contents.entry(hash.to_owned()).or_default().insert(number, data);
        }
        kept.parts.insert(name, uid);
    }
    for parts in contents.into_values() {
        let parts: Vec<Vec<u8>> = parts.into_values().collect();
        let inventory = revision::unpack(&parts).and_then(|text| serde_json::from_str(&text).ok());
        kept.inventory = kept.inventory.joined(inventory.unwrap_or_default());
    }
    Ok(kept)
}

/// Writes an inventory in place of another one.
pub async fn write(
    ctx: &InstanceContext,
    subject: &InstanceView,
    inventory: ObjectInventory,
    former: KeptInventory,
) -> Result<KeptInventory, ApiFailure> {
    let text = serde_json::to_string(&inventory).map_err(|error| local(error.to_string()))?;
    ctx.inventories.forget(&subject.key);
    let parts = revision::inventory_parts(&spec_archive::owner(subject), &SpecHash::of(&text), &text)
        .map_err(|error| local(format!("the inventory of {} cannot be packed: {error}", subject.key)))?;
    let namespace = subject.key.namespace.as_str();
    let mut kept = KeptInventory { inventory, parts: BTreeMap::new() };
    for part in &parts {
        let name = meta_str(part, "name").unwrap_or_default();
        let stored = match ctx.bookkeeping.create_revision(namespace, part).await? {
            Some(made) => Some(made),
            None => ctx.bookkeeping.revision(&NamespacedName::new(namespace, name)).await?,
        };
        if let Some(uid) = stored.as_ref().and_then(|stored| meta_str(stored, "uid")) {
            kept.parts.insert(name.to_owned(), uid.to_owned());
        }
    }
    // Only what this process has read or written: another one may have written since.
    for (name, uid) in former.parts.into_iter().filter(|(name, _)| !kept.parts.contains_key(name)) {
        ctx.bookkeeping.delete_revision(&NamespacedName::new(namespace, name), &uid).await?;
    }
    ctx.inventories.put(subject, &kept, text.len());
    Ok(kept)
}
