//! Reference to a gateway, and its spec reduced to the flavor.

use std::fmt;

use interlock_core::api::object::{NamespacedName, meta_str};
use serde_json::Value;

use super::reading::FlavorReading;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GatewayKind {
    /// A DataPlane of Kong's operator.
    DataPlane,
    /// A Deployment that runs Kong.
    Deployment,
}

impl GatewayKind {
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
    pub fn is(&self, object: &Value) -> bool {
        let kind = match self.kind {
            GatewayKind::DataPlane => "DataPlane",
            GatewayKind::Deployment => "Deployment",
        };
        object["kind"] == kind
            && meta_str(object, "name") == Some(self.name.name.as_str())
            && meta_str(object, "namespace") == Some(self.name.namespace.as_str())
    }
}

impl fmt::Display for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            GatewayKind::DataPlane => write!(f, "DataPlane {}", self.name),
            GatewayKind::Deployment => write!(f, "Deployment {}", self.name),
        }
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
