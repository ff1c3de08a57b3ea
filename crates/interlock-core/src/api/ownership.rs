//! Whose an object is.

use serde_json::Value;

use super::meta;
use super::object::{annotation, meta_str};

/// Whether this process made an object for the owner with that uid, also where its marks were taken off.
pub fn is_of(owner: &str, found: &Value) -> bool {
    let references = found["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut controllers = references.filter(|reference| reference["controller"] == true);
    match controllers.next() {
        Some(controller) => controller["uid"] == owner,
        None => is_applied(found),
    }
}

/// Whether fields of an object are those of our last apply.
pub fn is_applied(found: &Value) -> bool {
    let mut entries = found["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.any(|entry| entry["manager"] == meta::APPLY_MANAGER && entry["operation"] == "Apply")
}

/// Uids of the Instances that made or apply an object, as its metadata lists them: owners and
/// adopter, or for a cluster-scoped object, which can have no owner, maker and sharers.
pub fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    let metadata = &object["metadata"];
    let cluster_scoped = meta_str(object, "namespace").unwrap_or_default().is_empty();
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let label = metadata["labels"][meta::INSTANCE_UID].as_str().filter(|_| cluster_scoped);
    let shared = annotation(object, meta::SHARED_BY).filter(|_| cluster_scoped);
    owners
        .filter_map(|owner| owner["uid"].as_str())
        .chain(label)
        .chain(annotation(object, meta::ADOPTED_BY))
        .chain(shared.into_iter().flat_map(|list| list.split(',')))
        .filter(|uid| !uid.is_empty())
}
