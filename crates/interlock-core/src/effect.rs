//! The effects that a decision wants, as data. The runtime's executor carries them out, and nothing else does.

use std::sync::Arc;

use serde_json::Value;

use crate::api::object::{ObjectKey, meta_str};

/// A write that a decision wants.
///
/// Every write of an object is conditional: a first write fails where the object is there, a later one carries
/// the `resourceVersion` that it was decided on, a delete carries uid and `resourceVersion`.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// POST; fails when the object is there already.
    Create {
        /// The complete object.
        object: Value,
    },
    /// JSON merge patch (RFC 7396) with `metadata.resourceVersion` in it.
    Patch {
        /// The object.
        key: ObjectKey,
        /// Version that the patch was computed against.
        resource_version: String,
        /// The patch, without the version.
        patch: Value,
    },
    /// Server-side apply of the fields that Interlock owns, under its field manager: a field that an earlier
    /// apply set and this one leaves out is removed.
    Apply {
        /// The object, with these fields only. A `metadata.resourceVersion` in it is the version that the apply
        /// was decided on; without one the apply creates the object, and an object of that name is a conflict.
        /// The API server creates an object that was deleted since, unless `metadata.uid` is in it as well.
        object: Value,
        /// Takes over fields that other managers own; without, each is a conflict.
        force: bool,
    },
    /// DELETE.
    Delete {
        /// The object.
        key: ObjectKey,
        /// Precondition.
        uid: String,
        /// Precondition.
        resource_version: String,
        /// What becomes of what the object owns.
        propagation: Propagation,
    },
    /// JSON merge patch of the subresource `status`, with `metadata.resourceVersion` in it.
    Status {
        /// The object.
        key: ObjectKey,
        /// Version that the status was computed against.
        resource_version: String,
        /// The status, as a patch of it.
        status: Value,
    },
    /// An Event on an object. A lost one changes nothing.
    Event {
        /// The object.
        key: ObjectKey,
        /// Its uid.
        uid: String,
        /// What happened.
        note: Note,
    },
    /// Counts an object that was put right, in the metrics of the process; it follows the write that did so.
    Healed {
        /// Kind of the object, one of those that a reconciler makes.
        kind: String,
        /// What had happened to it.
        cause: HealCause,
    },
}

/// What had happened to an object that was put right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HealCause {
    /// It was deleted.
    Deleted,
    /// A field of it was changed or removed.
    Edited,
    /// Something was added to it.
    Added,
}

impl HealCause {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Deleted, Self::Edited, Self::Added];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Edited => "edited",
            Self::Added => "added",
        }
    }
}

impl Effect {
    /// A patch of an object on the version that was read; `None` where that has none.
    pub fn patch_of(key: ObjectKey, found: &Value, patch: Value) -> Option<Self> {
        let resource_version = meta_str(found, "resourceVersion")?.to_owned();
        Some(Self::Patch { key, resource_version, patch })
    }

    /// The deletion of an object on the version that was read, in the background.
    pub fn delete_of(key: ObjectKey, found: &Value) -> Self {
        let text = |field| meta_str(found, field).unwrap_or_default().to_owned();
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        Self::Delete { key, uid, resource_version, propagation: Propagation::Background }
    }

    /// Whether it names the version that it was decided on, as far as it needs one: without, the API server
    /// would take it unconditionally.
    pub fn is_conditional(&self) -> bool {
        match self {
            Self::Create { .. } | Self::Apply { .. } | Self::Event { .. } | Self::Healed { .. } => true,
            Self::Patch { resource_version, .. } | Self::Status { resource_version, .. } => {
                !resource_version.is_empty()
            }
            Self::Delete { uid, resource_version, .. } => !uid.is_empty() && !resource_version.is_empty(),
        }
    }

    /// Whether another effect writes the same, whatever versions the two were decided on.
    pub fn is_same_write(&self, other: &Self) -> bool {
        self.unversioned() == other.unversioned()
    }

    fn unversioned(&self) -> Self {
        let mut effect = self.clone();
        match &mut effect {
            Self::Create { object } | Self::Apply { object, .. } => {
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("resourceVersion");
                    metadata.remove("uid");
                }
            }
            Self::Patch { resource_version, .. }
            | Self::Delete { resource_version, .. }
            | Self::Status { resource_version, .. } => resource_version.clear(),
            Self::Event { .. } | Self::Healed { .. } => {}
        }
        effect
    }

    /// The object that is written, or that an Event is about; `None` for what is only counted.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Create { object } | Self::Apply { object, .. } => ObjectKey::of(object),
            Self::Patch { key, .. }
            | Self::Delete { key, .. }
            | Self::Status { key, .. }
            | Self::Event { key, .. } => Some(key.clone()),
            Self::Healed { .. } => None,
        }
    }
}

/// How the garbage collector deletes what a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// First what it owns: the object and its name are there until then.
    Foreground,
    /// The object at once, what it owns afterwards.
    Background,
}

impl Propagation {
    /// The value of `propagationPolicy`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "Foreground",
            Self::Background => "Background",
        }
    }
}

/// Answer of the API server to a failed request, as the pure modules evaluate it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// Code and reason, for people.
    pub fn status(&self) -> String {
        match (self.code, self.reason.as_str()) {
            (0, _) => "nothing".to_owned(),
            (code, "") => code.to_string(),
            (code, reason) => format!("{code} {reason}"),
        }
    }

    /// Whether the object would be larger than the API server or etcd takes (1.5 MiB).
    pub fn is_too_large(&self) -> bool {
        let of_etcd = ["request is too large", "message larger than max"];
        self.code == 413 || self.code == 500 && of_etcd.iter().any(|text| self.message.contains(text))
    }

    /// Whether the write may have happened nevertheless.
    pub fn may_have_happened(&self) -> bool {
        self.code == 0 || self.code >= 500
    }
}

/// A file of a running container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodFile {
    /// The Pod.
    pub pod: ObjectKey,
    /// Its uid: another Pod of its name has other files.
    pub uid: String,
    /// The container.
    pub container: String,
    /// Absolute path of the file.
    pub path: String,
}

/// The most bytes that are read of a file: 1 MiB, what KUDO takes and etcd holds.
pub const MAX_FILE: usize = 1 << 20;

/// Result of reading a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileRead {
    /// All of it.
    Content(Arc<[u8]>),
    /// It has more than [`MAX_FILE`] bytes.
    TooLarge,
    /// The command that reads it ended with an error.
    Ended {
        /// Its exit code.
        code: i32,
        /// What it said, shortened.
        said: String,
    },
    /// The API server or the kubelet did not run the command.
    Failed(ApiFailure),
}

/// Severity of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// `Normal`
    Normal,
    /// `Warning`
    Warning,
}

/// What an Event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Severity.
    pub severity: Severity,
    /// CamelCase reason, one of [`crate::api::meta::event`] or a task error's name.
    pub reason: String,
    /// For people, at most 1,024 bytes.
    pub message: String,
}
