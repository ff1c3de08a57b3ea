//! A kind of policies, as its author describes it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::effective::EffectivePolicy;
use crate::limits;
use crate::node::{NodeKey, ObjectKind};
use crate::path::Path;
use crate::policy::{Policy, Rules, Strategy, Violation};

/// How a kind acts (GEP-713, "Classes of metaresources").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyClass {
    /// On its target alone. Of several policies on one target the oldest acts, and the others are in conflict.
    Direct,
    /// On all paths through its target, merged with the others on the path.
    Inherited,
}

/// A kind of objects that a policy can target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetKind {
    /// The kind.
    pub kind: ObjectKind,
    /// Whether a policy can name a section of it.
    pub has_sections: bool,
}

impl TargetKind {
    /// A kind that is targeted whole.
    pub const fn whole(kind: ObjectKind) -> Self {
        Self { kind, has_sections: false }
    }

    /// A kind that is targeted whole or by section.
    pub const fn with_sections(kind: ObjectKind) -> Self {
        Self { kind, has_sections: true }
    }
}

/// What a policy is rendered for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The path of inherited policies.
    Path(Arc<Path>),
    /// The target of a direct policy.
    Target(NodeKey),
}

/// A kind of policies.
///
/// `spec` of an object has `targetRef` or `targetRefs`, and either `defaults`, `overrides` or neither. A block
/// has a `strategy`. What else stands in a block are the rules, which only the kind understands.
pub trait PolicyKind: Send + Sync {
    /// The name by which an index knows the kind. It differs from the kind in Kubernetes only where two groups
    /// have a kind of one name.
    fn name(&self) -> &str;

    /// The kind in Kubernetes.
    fn kubernetes_kind(&self) -> &str {
        self.name()
    }

    /// The kind's API group.
    fn group(&self) -> &str;

    /// Direct or inherited.
    fn class(&self) -> PolicyClass {
        PolicyClass::Inherited
    }

    /// The kinds that it can target.
    fn targets(&self) -> &[TargetKind];

    /// Whether a rule without a name can be targeted by its position, as `rule-2` (Kuadrant).
    fn has_positions(&self) -> bool {
        true
    }

    /// The most targets of one policy; one with more is invalid.
    fn max_targets(&self) -> usize {
        limits::TARGETS
    }

    /// The strategies that a block can name. [`Strategy::Patch`] needs rules that are split into fields.
    fn strategies(&self) -> &[Strategy] {
        &[Strategy::Atomic, Strategy::Merge]
    }

    /// The rules of a block by key, or of `spec` where it has no block.
    ///
    /// A predicate of the whole block belongs into each of its rules. As a rule of its own it would be merged
    /// into other policies, and a route's `when: false` would switch off a Gateway's overrides.
    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>>;

    /// The predicates of a whole block, which are in its rules already.
    fn conditions(&self, _block: &Map<String, Value>) -> Vec<Value> {
        Vec::new()
    }

    /// Whether a key is a rule by itself. A policy with no such key is invalid, as it can never act.
    fn is_rule(&self, _key: &str) -> bool {
        true
    }

    /// What is wrong with a policy beyond what this crate checks.
    fn validate(&self, _policy: &Policy) -> Vec<Violation> {
        Vec::new()
    }

    /// What acts otherwise than the author of a `spec` may expect.
    fn warnings(&self, _spec: &Map<String, Value>) -> Vec<Violation> {
        Vec::new()
    }

    /// The output of an effective policy.
    fn render(&self, _scope: &Scope, effective: &EffectivePolicy) -> Result<Value, Violation> {
        Ok(effective.to_json())
    }
}

/// The rules that a block has as a map under a field.
pub fn rules_under(block: &Map<String, Value>, field: &str) -> Result<Rules, Vec<Violation>> {
    match block.get(field) {
        None | Some(Value::Null) => Ok(Rules::new()),
        Some(Value::Object(rules)) => {
            let rule = |(key, value): (&String, &Value)| (Arc::from(key.as_str()), Arc::new(value.clone()));
            Ok(rules.iter().map(rule).collect())
        }
        Some(_) => Err(vec![Violation::new(field, "has to be a map from names to rules")]),
    }
}
