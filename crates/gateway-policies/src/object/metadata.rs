//! The metadata that decides.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

/// `metadata` of any object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`; none for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.labels`.
    pub labels: Option<BTreeMap<String, String>>,
    /// `metadata.creationTimestamp`; none where the object was never created.
    pub creation_timestamp: Option<Timestamp>,
    /// `metadata.deletionTimestamp`.
    pub deletion_timestamp: Option<Timestamp>,
    /// `metadata.generation`.
    pub generation: Option<i64>,
}
