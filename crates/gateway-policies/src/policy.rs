//! A policy: what it targets, and the rules of its block.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::node::NodeKey;

/// The identity of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId {
    /// The name of its kind ([`crate::PolicyKind::name`]).
    pub kind: Arc<str>,
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl PolicyId {
    /// `NAMESPACE/NAME`, as messages name the policies of one kind.
    pub fn qualified_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

/// The place of a policy among those of its kind on one target; the older one comes first.
///
/// GEP-713, "Conflict resolution": by `creationTimestamp`, then by the text `namespace/name`. A policy that was
/// never created is the youngest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence {
    is_uncreated: bool,
    created: Option<Timestamp>,
    qualified_name: String,
    /// The policy.
    pub id: PolicyId,
}

/// Whether rules give way to more specific ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A more specific policy wins. Rules outside any block are defaults.
    Defaults,
    /// The less specific policy wins.
    Overrides,
}

/// How the rules of two policies combine.
///
/// With the [`Role`] it is a merge strategy of GEP-713: Atomic Defaults, Atomic Overrides, Patch Defaults, Patch
/// Overrides. `Merge` is a custom one in its words. None is [`crate::PolicyClass::Direct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// All rules of one policy, and none of the other. The default (GEP-713).
    Atomic,
    /// Rules of both, by key and each rule whole (Kuadrant, RFC 0009).
    Merge,
    /// Fields of both, as a JSON Merge Patch (RFC 7386) of the rules of one onto those of the other (GEP-713).
    ///
    /// The kind has to split its rules into fields ([`crate::fields_under`]); whole rules are merged as by `Merge`.
    /// A null stays in the merged rules, and removes the field of each policy that its own wins over.
    Patch,
}

/// Rules by key. A rule is whole: nothing here looks into it.
pub type Rules = BTreeMap<Arc<str>, Arc<Value>>;

/// The rules of a policy, and how they combine.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Defaults or overrides.
    pub role: Role,
    /// Atomic or merge.
    pub strategy: Strategy,
    /// The rules.
    pub rules: Rules,
    /// The predicates of the whole block ([`crate::PolicyKind::conditions`]).
    pub conditions: Vec<Value>,
}

/// What is wrong with a field of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The path of the field.
    pub field: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Violation {
    /// A violation of a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A policy as its kind reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The identity.
    pub id: PolicyId,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `metadata.generation`, for `observedGeneration`.
    pub generation: i64,
    /// Whether `metadata.deletionTimestamp` is set: the policy acts no more.
    pub is_deleting: bool,
    /// What it targets, sorted, each once.
    pub targets: Vec<NodeKey>,
    /// The rules; none where the policy was never valid.
    pub block: Option<Block>,
    /// What is wrong with it. A block beside violations is the last valid one.
    pub violations: Vec<Violation>,
    /// What acts otherwise than its author may expect.
    pub warnings: Vec<Violation>,
}

impl Policy {
    /// Its place among the policies of its kind on one target.
    pub fn precedence(&self) -> Precedence {
        Precedence {
            is_uncreated: self.created.is_none(),
            created: self.created,
            qualified_name: self.id.qualified_name(),
            id: self.id.clone(),
        }
    }

    /// The policy to store in place of `last`. An invalid version leaves the last valid one in force.
    #[must_use]
    pub fn after(self, last: Option<&Self>) -> Self {
        let is_valid = self.violations.is_empty();
        match last.filter(|last| !is_valid && last.block.is_some()) {
            None => self,
            Some(last) => Self { targets: last.targets.clone(), block: last.block.clone(), ..self },
        }
    }
}
