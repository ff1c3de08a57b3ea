//! What the check reads of any object, and how the API server stores it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, meta_str};
use serde_json::{Value, json};

/// The namespace, where the object names one.
pub(super) fn namespace_of(object: &Value) -> Option<&str> {
    meta_str(object, "namespace").filter(|namespace| !namespace.is_empty())
}

pub(super) fn set_namespace(object: &mut Value, namespace: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
}

/// The name, or the start of a generated one.
pub(super) fn name_of(object: &Value) -> &str {
    meta_str(object, "name").or(meta_str(object, "generateName")).unwrap_or_default()
}

/// An object for people, with a default for an absent namespace.
pub(super) fn named(object: &Value, namespace: &str) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    format!("{kind} {}/{}", namespace_of(object).unwrap_or(namespace), name_of(object))
}

/// Whether two objects are the same, with a default for an absent namespace.
pub(super) fn same(one: &Value, other: &Value, namespace: &str) -> bool {
    let key = |object| {
        let name = meta_str(object, "name")?;
        Some((Gvk::of(object)?, namespace_of(object).unwrap_or(namespace).to_owned(), name.to_owned()))
    };
    key(one).is_some() && key(one) == key(other)
}

/// The API server stores a Secret without `stringData`: it moves the texts to `data`.
pub(super) fn as_stored(object: &mut Value) {
    if Gvk::of(object) != Some(Gvk::new("v1", "Secret")) {
        return;
    }
    let Some(Value::Object(texts)) = object.as_object_mut().and_then(|object| object.remove("stringData"))
    else {
        return;
    };
    if !object["data"].is_object() {
        object["data"] = json!({});
    }
    for (key, text) in texts {
        object["data"][key] = json!(STANDARD.encode(text.as_str().unwrap_or_default()));
    }
}

/// A manifest does not contain the label that the controller wrote on a source of flavors, and apply keeps
/// it.
pub(super) fn with_kept_label(mut given: Value, old: &Value) -> Value {
    let kept = &old["metadata"]["labels"][meta::FLAVOR_SOURCE];
    if *kept == meta::FLAVOR_SOURCE_OURS
        && let Some(metadata) = given.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(labels) = metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut()
    {
        labels.entry(meta::FLAVOR_SOURCE).or_insert_with(|| kept.clone());
    }
    given
}
