//! The objects that guard.

use std::fmt;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::core::ApiResource;
use serde_json::Value;

/// What objects guard by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// MutatingWebhookConfiguration
    Mutating,
    /// ValidatingWebhookConfiguration
    Validating,
    /// ValidatingAdmissionPolicy
    Policy,
    /// ValidatingAdmissionPolicyBinding
    Binding,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mutating, Self::Validating, Self::Policy, Self::Binding];

    /// As in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutating => "MutatingWebhookConfiguration",
            Self::Validating => "ValidatingWebhookConfiguration",
            Self::Policy => "ValidatingAdmissionPolicy",
            Self::Binding => "ValidatingAdmissionPolicyBinding",
        }
    }

    /// What `interlock render` prints it with.
    pub(super) fn part(self) -> &'static str {
        match self {
            Self::Mutating | Self::Validating => "webhooks",
            Self::Policy | Self::Binding => "policies",
        }
    }
}

/// One of the two kinds of the policy layer, as it is watched here.
pub(super) fn resource(kind: Kind) -> Option<ApiResource> {
    match kind {
        Kind::Mutating | Kind::Validating => None,
        Kind::Policy => Some(ApiResource::erase::<ValidatingAdmissionPolicy>(&())),
        Kind::Binding => Some(ApiResource::erase::<ValidatingAdmissionPolicyBinding>(&())),
    }
}

/// Which object; all are cluster-wide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

impl Id {
    /// Of an object as it is written in a manifest.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let kind = Kind::ALL.into_iter().find(|kind| object["kind"] == kind.as_str())?;
        Some(Self { kind, name: object["metadata"]["name"].as_str()?.to_owned() })
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// What a watch saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of which object.
    pub id: Id,
    /// The object; `None` where there is none.
    pub object: Option<Value>,
}
