//! `RateLimitPolicy` (`kuadrant.io/v1`): limits by name.

use std::sync::Arc;

use gateway_policies::{ObjectKind, PolicyKind, Rules, TargetKind, Violation, rules_under};
use serde_json::{Map, Value};

use super::checks;
use super::predicates::with_block_predicates;
use crate::names::KUADRANT;

/// The kinds that Kuadrant's inherited policies can target.
pub(super) const TARGETS: [TargetKind; 3] = [
    TargetKind::with_sections(ObjectKind::Gateway),
    TargetKind::with_sections(ObjectKind::HttpRoute),
    TargetKind::with_sections(ObjectKind::GrpcRoute),
];

/// `limits` of a block by name, each with the predicates of the block. TokenRateLimitPolicies have the same form.
pub(super) struct RateLimitPolicy(pub(super) &'static str);

impl PolicyKind for RateLimitPolicy {
    fn name(&self) -> &str {
        self.0
    }

    fn group(&self) -> &str {
        KUADRANT
    }

    fn targets(&self) -> &[TargetKind] {
        &TARGETS
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        let mut rules = rules_under(block, "limits")?;
        for (name, limit) in &mut rules {
            if !limit.is_object() {
                return Err(vec![Violation::new(format!("limits.{name}"), "has to be an object with rates")]);
            }
            if !has_rates(limit) {
                let message = "has to be a list of rates, each with a limit, a number, and a window";
                return Err(vec![Violation::new(format!("limits.{name}.rates"), message)]);
            }
            *limit = Arc::new(with_block_predicates(block, limit));
        }
        Ok(rules)
    }

    /// The definition admits it, and Kuadrant ignores it.
    fn warnings(&self, spec: &Map<String, Value>) -> Vec<Violation> {
        let is_there = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
        let block = ["defaults", "overrides"].into_iter().find(|block| is_there(block));
        let ignored = block.filter(|_| is_there("when"));
        let message = |block| format!("is ignored beside {block}; move it to spec.{block}.when");
        let ignored = ignored.map(|block| Violation::new("spec.when", message(block)));
        ignored.into_iter().chain(checks::limits(spec).all()).collect()
    }
}

/// Whether the rates are as the definition has them; there may be none.
fn has_rates(limit: &Value) -> bool {
    let is_rate = |rate: &Value| rate["limit"].is_i64() && rate["window"].is_string();
    match limit.get("rates") {
        None | Some(Value::Null) => true,
        Some(Value::Array(rates)) => rates.iter().all(is_rate),
        Some(_) => false,
    }
}
