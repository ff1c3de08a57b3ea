//! The writes that a decision requests, as data. Only `cluster::apply` executes them.

use serde_json::Value;

use crate::api::object::ObjectKey;

/// A write of one child of a package, made under the effects identity.
///
/// Every write is conditional: a first write is a POST, a later one carries the
/// `resourceVersion` that it was decided on, a delete carries uid and `resourceVersion`.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildWrite {
    /// POST; fails when the object is there already.
    Create {
        /// The complete object.
        object: Value,
    },
    /// JSON merge patch (RFC 7396) with `metadata.resourceVersion` in it.
    MergePatch {
        /// The object.
        key: ObjectKey,
        /// Version that the patch was computed against.
        resource_version: String,
        /// The patch, without the version.
        patch: Value,
    },
    /// DELETE with foreground propagation.
    Delete {
        /// The object.
        key: ObjectKey,
        /// Precondition.
        uid: String,
        /// Precondition.
        resource_version: String,
    },
}

impl ChildWrite {
    /// The object that is written.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Create { object } => ObjectKey::of(object),
            Self::MergePatch { key, .. } | Self::Delete { key, .. } => Some(key.clone()),
        }
    }
}

/// Answer of the API server to a failed request, as the pure modules evaluate it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiFailure {
    /// HTTP status; 0 when there was no answer.
    pub code: u16,
    /// `status.reason`.
    pub reason: String,
    /// `status.message`, for people.
    pub message: String,
    /// Whether the server reports that the namespace is being terminated
    /// (`details.causes[].reason == NamespaceTerminating`).
    pub namespace_terminating: bool,
}

impl ApiFailure {
    /// Whether the server serves nothing at the path, not even an API that would give a reason: the
    /// answer is not about the object.
    pub fn is_of_kind(&self) -> bool {
        self.code == 404 && self.reason != "NotFound"
    }

    /// Whether the write may have happened nevertheless.
    pub fn may_have_happened(&self) -> bool {
        self.code == 0 || self.code >= 500
    }
}

/// Severity of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// `Normal`
    Normal,
    /// `Warning`
    Warning,
}

/// An Event on an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Severity.
    pub severity: Severity,
    /// CamelCase reason, one of [`crate::api::meta::event`] or a task error's name.
    pub reason: String,
    /// For people, at most 1,024 bytes.
    pub message: String,
}
