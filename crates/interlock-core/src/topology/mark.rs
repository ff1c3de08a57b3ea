//! Hashes of what must differ to concern anybody.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Of anything; the same in every process.
pub fn of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Of what an object says beside names, metadata and status: its generation where it has one,
/// as not all of it may be watched.
pub fn content(object: &Value) -> u64 {
    if let Some(generation) = object.pointer("/metadata/generation") {
        return of(generation);
    }
    const OTHER: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
    let members = object.as_object().into_iter().flatten();
    of(members.filter(|(name, _)| !OTHER.contains(&name.as_str())).collect::<Vec<_>>())
}

/// Of `spec`.
pub fn spec(object: &Value) -> u64 {
    of(object.get("spec"))
}
