//! Reference to a gateway, and its spec reduced to the flavor.

use std::fmt;

use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::kinds::row::name;
use interlock_core::topology::{KindName, NodeId};
use serde_json::Value;

use super::reading::FlavorReading;
use crate::data_plane::names::{DATA_PLANE, GUARDED_DEPLOYMENT};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GatewayKind {
    /// A DataPlane of Kong's operator.
    DataPlane,
    /// A Deployment that runs Kong.
    Deployment,
}

impl GatewayKind {
    /// The kind that the API server serves.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DataPlane => "DataPlane",
            Self::Deployment => "Deployment",
        }
    }

    /// Path of its pod template.
    pub fn template(self) -> &'static str {
        match self {
            Self::DataPlane => "spec.deployment.podTemplateSpec",
            Self::Deployment => "spec.template",
        }
    }
}

/// Reference to a gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayRef {
    pub kind: GatewayKind,
    pub name: NamespacedName,
}

impl GatewayRef {
    /// The kinds of gateways in the topology.
    pub const KINDS: [KindName; 2] = [DATA_PLANE, GUARDED_DEPLOYMENT];

    /// The gateway of the topology; `None` for an object of another kind.
    pub fn of_node(id: &NodeId) -> Option<Self> {
        let kind = match &id.kind {
            kind if *kind == DATA_PLANE => GatewayKind::DataPlane,
            kind if *kind == GUARDED_DEPLOYMENT => GatewayKind::Deployment,
            _ => return None,
        };
        Some(Self { kind, name: name(id) })
    }

    pub fn is(&self, object: &Value) -> bool {
        object["kind"] == self.kind.as_str()
            && meta_str(object, "name") == Some(self.name.name.as_str())
            && meta_str(object, "namespace") == Some(self.name.namespace.as_str())
    }
}

impl fmt::Display for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// A spec, reduced to the flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorSpec {
    /// The flavor of its pods.
    pub reading: FlavorReading,
    /// Whether a second set of pods takes changes before the live one does.
    pub staged: bool,
}
