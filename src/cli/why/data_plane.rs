//! What is read of a DataPlane, for itself and for what belongs to it.

use interlock_core::api::object::Gvk;
use interlock_kong::api as kong;
use interlock_kong::data_plane::names::DATA_PLANE;
use serde_json::Value;

/// What belongs to a DataPlane, as far as it was read.
#[derive(Debug)]
pub(super) struct DataPlaneObjects {
    /// Its Deployments; the error where they may not be listed.
    pub(super) deployments: Result<Vec<Value>, String>,
    /// Its live spec, where the object only refers to it.
    pub(super) live_spec: Option<Value>,
}

impl Default for DataPlaneObjects {
    fn default() -> Self {
        Self { deployments: Ok(Vec::new()), live_spec: None }
    }
}

/// Whether an object is a DataPlane.
pub(super) fn is_data_plane(object: &Value) -> bool {
    Gvk::of(object).is_some_and(|gvk| gvk.group == kong::GROUP && gvk.kind == DATA_PLANE.kind)
}
