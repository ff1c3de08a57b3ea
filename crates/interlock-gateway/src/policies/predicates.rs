//! The predicates of a whole block.

use serde_json::{Map, Value};

/// The rule with the predicates of its block before its own.
///
/// Kuadrant merges them as one more rule, so that a route's `when: false` switches off the limits of a Gateway.
/// Here they stay with the rules of the policy that wrote them.
pub(super) fn with_block_predicates(block: &Map<String, Value>, rule: &Value) -> Value {
    let of = |holder: Option<&Value>| holder.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut when = of(block.get("when"));
    if when.is_empty() {
        return rule.clone();
    }
    let mut rule = rule.clone();
    if let Some(fields) = rule.as_object_mut() {
        when.extend(of(fields.get("when")));
        fields.insert("when".to_owned(), when.into());
    }
    rule
}
