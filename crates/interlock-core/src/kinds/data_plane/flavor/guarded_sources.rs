//! The annotation that lists the flavor sources that are guarded, as `configmaps/NAME,secrets/NAME`.

use serde_json::Value;

use super::sources::{FlavorSource, SourceKind};
use crate::api::meta;
use crate::api::object::annotation;

/// The most sources of a gateway: the authorizer is asked about each.
pub const MOST: usize = 8;

/// The entries of the annotation.
pub fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|entry| !entry.is_empty())
}

/// Whether a gateway asks to guard a source of its namespace.
pub fn is_listed(gateway: &Value, source: &FlavorSource) -> bool {
    let text = annotation(gateway, meta::GUARDED_SOURCES).unwrap_or_default();
    listed(text).any(|entry| entry == entry_of(source))
}

/// The entry of a source.
pub fn entry_of(source: &FlavorSource) -> String {
    let resource = match source.kind {
        SourceKind::ConfigMap => "configmaps",
        SourceKind::Secret => "secrets",
    };
    format!("{resource}/{}", source.name.name)
}

/// The annotation of a gateway with one more source.
pub fn with(gateway: &Value, source: &FlavorSource) -> String {
    let text = annotation(gateway, meta::GUARDED_SOURCES).unwrap_or_default();
    let entry = entry_of(source);
    listed(text).chain([entry.as_str()]).collect::<Vec<_>>().join(",")
}
