//! `AuthPolicy` (`kuadrant.io/v1`): rules of Authorino by phase and name.

use std::sync::Arc;

use gateway_policies::{PolicyKind, Rules, TargetKind, Violation};
use serde_json::{Map, Value};

use super::predicates::with_block_predicates;
use super::rate_limit::TARGETS;
use crate::names::KUADRANT;

/// Where rules stand by name: the key before the name, and the way to the map.
const NAMED: [(&str, &[&str]); 7] = [
    (PATTERNS, &["patterns"]),
    ("authentication", &["rules", "authentication"]),
    ("metadata", &["rules", "metadata"]),
    ("authorization", &["rules", "authorization"]),
    ("callbacks", &["rules", "callbacks"]),
    ("response.success.headers", &["rules", "response", "success", "headers"]),
    ("response.success.filters", &["rules", "response", "success", "filters"]),
];

/// Rules that exist once.
const SINGLE: [(&str, &[&str]); 2] = [
    ("response.unauthenticated", &["rules", "response", "unauthenticated"]),
    ("response.unauthorized", &["rules", "response", "unauthorized"]),
];

/// Named patterns, which rules refer to: they guard nothing by themselves.
const PATTERNS: &str = "patterns";

/// `rules` of a block by phase and name, and its `patterns`, as Kuadrant merges them.
pub(super) struct AuthPolicy;

impl PolicyKind for AuthPolicy {
    fn name(&self) -> &str {
        "AuthPolicy"
    }

    fn group(&self) -> &str {
        KUADRANT
    }

    fn targets(&self) -> &[TargetKind] {
        &TARGETS
    }

    fn rules(&self, block: &Map<String, Value>) -> Result<Rules, Vec<Violation>> {
        let mut rules = Rules::new();
        let mut violations = Vec::new();
        for (prefix, way) in NAMED {
            let Some(found) = follow(block, way, &mut violations) else { continue };
            let Some(named) = found.as_object() else {
                violations.push(Violation::new(way.join("."), "has to be a map from names to rules"));
                continue;
            };
            for (name, rule) in named {
                let rule = if prefix == PATTERNS { rule.clone() } else { with_block_predicates(block, rule) };
                rules.insert(Arc::from(format!("{prefix}.{name}")), Arc::new(rule));
            }
        }
        for (key, way) in SINGLE {
            if let Some(found) = follow(block, way, &mut violations) {
                rules.insert(Arc::from(key), Arc::new(found.clone()));
            }
        }
        violations.sort();
        violations.dedup();
        if violations.is_empty() { Ok(rules) } else { Err(violations) }
    }

    fn conditions(&self, block: &Map<String, Value>) -> Vec<Value> {
        block.get("when").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    fn is_rule(&self, key: &str) -> bool {
        key.split('.').next() != Some(PATTERNS)
    }
}

/// The rules of a block with their keys, and their fields in the block.
pub(super) fn entries(block: &Map<String, Value>) -> impl Iterator<Item = (String, String, &Value)> {
    let at = move |way: &[&str]| follow(block, way, &mut Vec::new());
    let named = NAMED.into_iter().filter_map(move |(prefix, way)| Some((prefix, way, at(way)?.as_object()?)));
    let named = named.flat_map(|(prefix, way, rules)| {
        let field = way.join(".");
        rules.iter().map(move |(name, rule)| (format!("{prefix}.{name}"), format!("{field}.{name}"), rule))
    });
    let single =
        SINGLE.into_iter().filter_map(move |(key, way)| Some((key.to_owned(), way.join("."), at(way)?)));
    named.chain(single)
}

/// What stands at the end of a way; none where a part of it is absent or null.
fn follow<'a>(
    block: &'a Map<String, Value>,
    way: &[&str],
    violations: &mut Vec<Violation>,
) -> Option<&'a Value> {
    let mut at = block;
    let (last, before) = way.split_last()?;
    for (depth, field) in before.iter().enumerate() {
        match at.get(*field)? {
            Value::Null => return None,
            Value::Object(inner) => at = inner,
            _ => {
                violations.push(Violation::new(way[..=depth].join("."), "has to be an object"));
                return None;
            }
        }
    }
    at.get(*last).filter(|value| !value.is_null())
}
