//! Which gateway is meant, and what its spec says about flavors.

use std::fmt;

use super::Flavor;
use super::reading::Reading;
use crate::api::object::NamespacedName;

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// What it is.
    pub kind: SubjectKind,
    /// Its name.
    pub name: NamespacedName,
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

/// Permission for exactly one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// What runs.
    pub from: Flavor,
    /// What is wanted.
    pub to: Flavor,
}

impl Override {
    /// Of an annotation's value, such as `traditional->expressions`.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("->")?;
        Some(Self { from: Flavor::named(from.trim())?, to: Flavor::named(to.trim())? })
    }
}
