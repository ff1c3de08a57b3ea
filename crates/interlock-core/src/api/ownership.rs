//! Whose an object is.

use serde_json::Value;

use super::meta;

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
