//! The answer about an object: the data that text and JSON print.

use std::collections::BTreeMap;

use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::kinds::story::Told;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::facts;

/// The answer about an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhyAnswer {
    pub(super) object: AnsweredObject,
    /// Its kind and its state.
    pub(super) is: Vec<String>,
    /// What the stories add.
    #[serde(flatten)]
    pub(super) members: BTreeMap<&'static str, Value>,
    pub(super) depends_on: Vec<Dependency>,
    pub(super) acted_on_by: Vec<Actor>,
    /// Newest first.
    pub(super) happened: Vec<RecentEvent>,
    /// Unknown parts, and why.
    pub(super) unknown: Vec<String>,
}

impl WhyAnswer {
    /// An object of which nothing is known yet.
    pub(super) fn about(object: &Value) -> Self {
        Self {
            object: named(object),
            is: Vec::new(),
            members: BTreeMap::new(),
            depends_on: Vec::new(),
            acted_on_by: Vec::new(),
            happened: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// Adds a further story about the object.
    pub(super) fn add(&mut self, told: Told) {
        self.is.extend(told.is);
        self.members.extend(told.member);
        self.unknown.extend(told.unknown);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct AnsweredObject {
    /// Kind with its group.
    pub(super) kind: String,
    /// Absent for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) name: String,
}

impl std::fmt::Display for AnsweredObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// A dependency of the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Dependency {
    #[serde(flatten)]
    pub(super) on: AnsweredObject,
    /// Name of the link between them.
    pub(super) link: &'static str,
    pub(super) state: Presence,
    /// Why its presence is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Presence {
    Present,
    Terminating,
    Missing,
    Unknown,
}

impl Presence {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Terminating => "being deleted",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// A writer of the object, or a component that decides about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Actor {
    pub(super) who: String,
    pub(super) does: String,
}

/// An event in the history of the object or of its Instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RecentEvent {
    pub(super) at: Timestamp,
    pub(super) what: String,
}

/// The name of an object.
pub(super) fn named(object: &Value) -> AnsweredObject {
    let of = |field| meta_str(object, field).unwrap_or_default().to_owned();
    let kind = Gvk::of(object).map(|gvk| facts::name_of(&gvk.group, &gvk.kind)).unwrap_or_default();
    AnsweredObject { kind, namespace: of("namespace"), name: of("name") }
}
