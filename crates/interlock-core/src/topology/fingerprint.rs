//! Fingerprints: hashes that differ if a change affects an object.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Hash of any value; the same in every process.
pub fn of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Fingerprint of an object without names, metadata and status: its generation if it has one, as the
/// watch may see only part of the object.
pub fn content(object: &Value) -> u64 {
    if let Some(generation) = object.pointer("/metadata/generation") {
        return of(generation);
    }
    const OTHER: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
    let members = object.as_object().into_iter().flatten();
    of(members.filter(|(name, _)| !OTHER.contains(&name.as_str())).collect::<Vec<_>>())
}

/// Fingerprint of `spec`.
pub fn spec(object: &Value) -> u64 {
    of(object.get("spec"))
}
