//! A write, with the objects as the API server has them.

use interlock_core::admission::request::Request;
use interlock_core::admission::review::ReviewObject;
use interlock_core::api::json::Raw;
use interlock_core::api::resource::Resource;
use serde_json::{Value, json};

/// An object before and after.
pub(super) struct Write {
    /// None where it is deleted.
    pub(super) new: Option<Value>,
    /// None where it is created.
    pub(super) old: Option<Value>,
}

/// An object of a review, as far as the graph reads it.
pub(super) fn object_of(resource: &Resource, request: &Request<'_>, object: &ReviewObject<'_>) -> Value {
    let metadata = &object.metadata;
    let parsed = |raw: Option<Raw<'_>>| -> Value {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    };
    json!({
        "apiVersion": resource.gvk().api_version(), "kind": resource.kind,
        "metadata": {
            "namespace": request.namespace, "name": request.name,
            "creationTimestamp": metadata.creation_timestamp.as_deref(),
            "generation": parsed(metadata.generation), "labels": parsed(metadata.labels),
        },
        "spec": parsed(object.spec),
    })
}
