//! A kind of policies of which nothing is known but its targets, and which of its policies act together.

use std::sync::Arc;

use gateway_policies::{PolicyClass, PolicyKind, Rules, TargetKind, Violation, rules_under};
use serde_json::{Map, Value};

use crate::names::ENVOY_GATEWAY;

/// Which policies of a kind act on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precedence {
    /// All of them, merged with defaults and overrides (GEP-713, inherited policies).
    Inherited,
    /// The one with the most specific target; of two on one target the older. With `mergeType`, a route's policy
    /// merges with the nearest one of a listener or a Gateway (Envoy Gateway).
    MostSpecific,
    /// One for each target, the oldest (GEP-713, direct policies).
    OnePerTarget,
    /// Every one (Istio).
    All,
}

/// Where the fields of a policy stand that is not merged with others, once its targets are read.
pub(super) const FIELDS: &str = "fields";

/// Targets of one policy, which a selector can have many of.
pub(super) const MAX_TARGETS: usize = 4096;

/// Fields of `spec` and of a block that are no rules.
pub(super) const NO_RULES: [&str; 7] =
    ["targetRef", "targetRefs", "targetSelectors", "selector", "strategy", "mergeType", "priority"];

/// The rules are the fields of `spec`, or of a block, each whole.
pub(super) struct GenericKind {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) group: String,
    pub(super) precedence: Precedence,
    pub(super) targets: Vec<TargetKind>,
}

impl PolicyKind for GenericKind {
    fn name(&self) -> &str {
        &self.name
    }

    fn kubernetes_kind(&self) -> &str {
        &self.kind
    }

    fn group(&self) -> &str {
        &self.group
    }

    fn class(&self) -> PolicyClass {
        match self.precedence {
            Precedence::Inherited => PolicyClass::Inherited,
            Precedence::MostSpecific | Precedence::OnePerTarget | Precedence::All => PolicyClass::Direct,
        }
    }

    fn targets(&self) -> &[TargetKind] {
        &self.targets
    }

    /// Envoy Gateway knows rules by their names.
    fn has_positions(&self) -> bool {
        self.group != ENVOY_GATEWAY
    }

    fn max_targets(&self) -> usize {
        MAX_TARGETS
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        if self.precedence != Precedence::Inherited {
            return rules_under(block, FIELDS);
        }
        let is_rule = |field: &str| !NO_RULES.contains(&field) && field != "defaults" && field != "overrides";
        let fields = block.iter().filter(|(field, value)| is_rule(field) && !value.is_null());
        Ok(fields.map(|(field, value)| (Arc::from(field.as_str()), Arc::new(value.clone()))).collect())
    }
}
