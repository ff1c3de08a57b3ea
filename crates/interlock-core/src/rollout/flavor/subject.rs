//! Which gateway is meant, and what its spec says about flavors.

use std::fmt;

use serde_json::Value;

use super::reading::Reading;
use crate::api::object::{NamespacedName, meta_str};

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// A DataPlane of Kong's operator.
    DataPlane,
    /// A Deployment that runs Kong.
    Deployment,
}

impl SubjectKind {
    /// Where its pod template stands.
    pub fn template(self) -> &'static str {
        match self {
            Self::DataPlane => "spec.deployment.podTemplateSpec",
            Self::Deployment => "spec.template",
        }
    }
}

/// A gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// Its name.
    pub name: NamespacedName,
}

impl Subject {
    /// Whether an object is it.
    pub fn is(&self, object: &Value) -> bool {
        let kind = match self.kind {
            SubjectKind::DataPlane => "DataPlane",
            SubjectKind::Deployment => "Deployment",
        };
        object["kind"] == kind
            && meta_str(object, "name") == Some(self.name.name.as_str())
            && meta_str(object, "namespace") == Some(self.name.namespace.as_str())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SubjectKind::DataPlane => write!(f, "DataPlane {}", self.name),
            SubjectKind::Deployment => write!(f, "Deployment {}", self.name),
        }
    }
}

/// A spec, as far as flavors go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What its pods run with.
    pub reading: Reading,
    /// Whether a second set of pods takes changes before the live one does.
    pub staged: bool,
}
