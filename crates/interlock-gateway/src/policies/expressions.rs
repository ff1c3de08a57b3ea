//! Where policies have expressions.

use std::fmt;

use serde_json::{Map, Value};

use super::auth;
use super::dialect::{Use, Verdict, check, located};

/// Expressions of a policy that are checked.
const MAX_EXPRESSIONS: usize = 2_000;
/// Bytes of these expressions together.
const MAX_BYTES: usize = 128 << 10;

/// An expression that is not right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionFinding {
    /// Its field, such as `spec.limits.a.when[0].predicate`.
    pub field: String,
    /// [`Verdict::Unsupported`] or [`Verdict::Refused`].
    pub verdict: Verdict,
    /// The key of the rule that it is of; none of the condition of a whole block.
    pub rule: Option<String>,
    /// What evaluates it.
    of: Use,
}

impl ExpressionFinding {
    /// Whether it changes how the policy acts today. What only Envoy's own CEL lacks acts where Kuadrant carries
    /// the policy out, in its own filter.
    pub fn is_said(&self) -> bool {
        matches!(self.verdict, Verdict::Refused(_)) || !self.of.is_of_proxy()
    }
}

impl fmt::Display for ExpressionFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Right => f.write_str(&self.field),
            Verdict::Unsupported(text) | Verdict::Refused(text) => write!(f, "{}: {text}", self.field),
        }
    }
}

/// The expressions of the spec of a RateLimitPolicy or an AuthPolicy that are not right, in the order of their
/// fields. Other kinds have none.
pub fn expressions(kind: &str, spec: &Value) -> Vec<ExpressionFinding> {
    let mut found = Findings { list: Vec::new(), rule: None, count: 0, bytes: 0 };
    let blocks = ["", "defaults", "overrides"].into_iter().filter_map(|block| match block {
        "" => Some(("spec".to_owned(), spec.as_object()?)),
        block => Some((format!("spec.{block}"), spec.get(block)?.as_object()?)),
    });
    for (field, block) in blocks {
        match kind {
            "RateLimitPolicy" => found.limits(&field, block),
            "AuthPolicy" => found.authentication(&field, block),
            _ => {}
        }
    }
    found.list
}

struct Findings {
    list: Vec<ExpressionFinding>,
    /// The rule that is looked at.
    rule: Option<String>,
    count: usize,
    bytes: usize,
}

impl Findings {
    fn limits(&mut self, field: &str, block: &Map<String, Value>) {
        self.each(&format!("{field}.when"), block.get("when"), "predicate", Use::Predicate);
        for (name, limit) in block.get("limits").and_then(Value::as_object).into_iter().flatten() {
            self.rule = Some(name.clone());
            let field = format!("{field}.limits.{name}");
            self.each(&format!("{field}.when"), limit.get("when"), "predicate", Use::Predicate);
            self.each(&format!("{field}.counters"), limit.get("counters"), "expression", Use::Counter);
        }
        self.rule = None;
    }

    fn authentication(&mut self, field: &str, block: &Map<String, Value>) {
        self.each(&format!("{field}.when"), block.get("when"), "predicate", Use::AuthPredicate);
        for (key, part, value) in auth::entries(block) {
            self.rule = Some(key);
            self.below(&format!("{field}.{part}"), value);
        }
        self.rule = None;
    }

    /// The members of a list by one of their fields.
    fn each(&mut self, field: &str, list: Option<&Value>, member: &str, of: Use) {
        for (index, holder) in list.and_then(Value::as_array).into_iter().flatten().enumerate() {
            if let Some(text) = holder.get(member).and_then(Value::as_str) {
                self.add(|| format!("{field}[{index}].{member}"), text, of);
            }
        }
    }

    /// The definition has some hundred places for expressions, all under three names of fields. Values are the
    /// user's, and labels have names of the user's.
    fn below(&mut self, field: &str, value: &Value) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(&format!("{field}[{index}]"), item);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("value" | "values" | "matchLabels" | "extraParams", _) => {}
                        ("predicate", Value::String(text)) => {
                            self.add(|| format!("{field}.{name}"), text, Use::AuthPredicate);
                        }
                        ("expression" | "urlExpression", Value::String(text)) => {
                            self.add(|| format!("{field}.{name}"), text, Use::AuthValue);
                        }
                        _ => self.below(&format!("{field}.{name}"), member),
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, field: impl FnOnce() -> String, text: &str, of: Use) {
        let was_within = self.count <= MAX_EXPRESSIONS && self.bytes <= MAX_BYTES;
        self.count += 1;
        self.bytes = self.bytes.saturating_add(text.len());
        let verdict = if self.count <= MAX_EXPRESSIONS && self.bytes <= MAX_BYTES {
            match of.is_of_proxy() {
                true => check(&located(text).text, of),
                false => check(text, of),
            }
        } else if was_within {
            Verdict::Unsupported(format!(
                "is beyond what is checked of one policy, {MAX_EXPRESSIONS} expressions of {} KiB together; split the policy",
                MAX_BYTES >> 10
            ))
        } else {
            return;
        };
        if verdict != Verdict::Right {
            self.list.push(ExpressionFinding { field: field(), verdict, rule: self.rule.clone(), of });
        }
    }
}
