//! The guard objects: webhook configurations, policies and bindings.

use std::fmt;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::core::ApiResource;
use serde_json::Value;

/// The kinds of guard objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardKind {
    /// MutatingWebhookConfiguration
    Mutating,
    /// ValidatingWebhookConfiguration
    Validating,
    /// ValidatingAdmissionPolicy
    Policy,
    /// ValidatingAdmissionPolicyBinding
    Binding,
}

impl GuardKind {
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

    /// The part of `interlock render` that prints it.
    pub(super) fn part(self) -> &'static str {
        match self {
            Self::Mutating | Self::Validating => "webhooks",
            Self::Policy | Self::Binding => "policies",
        }
    }
}

/// The watched resource of one of the two policy kinds.
pub(super) fn resource(kind: GuardKind) -> Option<ApiResource> {
    match kind {
        GuardKind::Mutating | GuardKind::Validating => None,
        GuardKind::Policy => Some(ApiResource::erase::<ValidatingAdmissionPolicy>(&())),
        GuardKind::Binding => Some(ApiResource::erase::<ValidatingAdmissionPolicyBinding>(&())),
    }
}

/// Identifies an object; all are cluster-scoped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuardId {
    pub kind: GuardKind,
    pub name: String,
}

impl GuardId {
    /// Of an object in a manifest.
    pub(super) fn of(object: &Value) -> Option<Self> {
        let kind = GuardKind::ALL.into_iter().find(|kind| object["kind"] == kind.as_str())?;
        Some(Self { kind, name: object["metadata"]["name"].as_str()?.to_owned() })
    }
}

impl fmt::Display for GuardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// An observation of a watch.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Of which object.
    pub id: GuardId,
    /// The object; `None` where there is none.
    pub object: Option<Value>,
}
