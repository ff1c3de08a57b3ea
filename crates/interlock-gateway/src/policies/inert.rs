//! Rules that are in force and can never act, as limits with a window below a second: the API server takes them where no
//! webhook is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::checks;
use super::dialect::Verdict;
use super::expressions::ExpressionFinding;
use super::rules::ids::POLICY_COUNTER;

/// Why a rule can never act, or a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inert {
    /// Each field, and what is wrong with it.
    pub why: Vec<String>,
    /// Whether no part of the rule acts.
    pub is_whole: bool,
}

/// The rules of a policy that can never act, by key; none stands for all of them.
#[derive(Debug, Default)]
pub(super) struct InertRules(BTreeMap<Option<String>, Arc<Inert>>);

/// Fields of a rule that are listed.
const LISTED: usize = 8;

impl InertRules {
    /// Those of the block in use.
    pub(super) fn of(spec: &Value, expressions: Vec<ExpressionFinding>) -> Self {
        let block = ["defaults", "overrides"].into_iter().find(|block| !spec[*block].is_null());
        let (field, holder) =
            block.map_or(("spec.".to_owned(), spec), |block| (format!("spec.{block}."), &spec[block]));
        let mut found = Self::default();
        let mut limits = spec.as_object().map(checks::limits).unwrap_or_default().refused;
        limits.retain(|own| own.field.starts_with(&field));
        let known: BTreeSet<String> = limits.iter().map(|own| own.field.clone()).collect();
        for own in limits {
            let is_whole = own.rule == POLICY_COUNTER || checks::never_counts(&holder["limits"][&own.limit]);
            let why = format!("{}: {}: {}", own.field, own.value, own.sentence);
            found.add(Some(own.limit), why, is_whole);
        }
        let is_new = |own: &ExpressionFinding| {
            matches!(own.verdict, Verdict::Refused(_))
                && own.field.starts_with(&field)
                && !known.contains(&own.field)
        };
        for own in expressions.into_iter().filter(is_new) {
            found.add(own.rule.clone(), own.to_string(), true);
        }
        found
    }

    fn add(&mut self, rule: Option<String>, why: String, is_whole: bool) {
        let own = Arc::make_mut(self.0.entry(rule).or_default());
        own.is_whole |= is_whole;
        if own.why.len() < LISTED {
            own.why.push(why);
        }
    }

    /// Of a rule, or of all.
    pub(super) fn get(&self, rule: &str) -> Option<&Arc<Inert>> {
        [None, Some(rule.to_owned())].iter().find_map(|key| self.0.get(key))
    }
}
