//! The effective policy of a path: which rules act, from which policies, and what they replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::limits;
use crate::policy::{Block, Policy, PolicyId, Role, Strategy};

/// A rule that acts.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveRule {
    /// The rule as its kind read it.
    pub value: Arc<Value>,
    /// The policy that it comes from.
    pub source: PolicyId,
    /// Another policy, of which the rule has fields too.
    pub with: Option<PolicyId>,
}

impl EffectiveRule {
    /// A rule of one policy.
    pub fn of(source: &PolicyId, value: Arc<Value>) -> Self {
        Self { value, source: source.clone(), with: None }
    }
}

/// A rule that does not act, because of other policies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replaced {
    /// The policy of the rule.
    pub policy: PolicyId,
    /// The key of the rule.
    pub rule: Arc<str>,
    /// The source of the rule with the same key, and else all sources of the effective policy (Kuadrant,
    /// `overridden` in its policy conditions).
    pub by: Arc<[PolicyId]>,
}

/// The policies of one kind on one path, merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectivePolicy {
    /// The rules that act, by key.
    pub rules: BTreeMap<Arc<str>, EffectiveRule>,
    /// The policies on the path, each once, from the root to the leaf and the older one first.
    pub policies: Vec<PolicyId>,
    /// The rules that do not act, by policy and key.
    pub replaced: Vec<Replaced>,
    /// Policies on the path that were never valid. A guard that fails closed must refuse requests here.
    pub unreadable: Vec<PolicyId>,
}

type EffectiveRules = BTreeMap<Arc<str>, EffectiveRule>;

impl EffectivePolicy {
    /// The policies that at least one rule, or a part of one, comes from, sorted.
    pub fn sources(&self) -> BTreeSet<&PolicyId> {
        self.rules.values().flat_map(|rule| std::iter::once(&rule.source).chain(&rule.with)).collect()
    }

    /// Rules with their sources, and the rules that were replaced, as JSON.
    pub fn to_json(&self) -> Value {
        let rules = self.rules.iter().map(|(key, rule)| {
            let mut value = json!({"source": rule.source.qualified_name(), "rule": *rule.value});
            if let Some(with) = &rule.with {
                value["with"] = with.qualified_name().into();
            }
            (key.to_string(), value)
        });
        let replaced = self.replaced.iter().map(|own| {
            let by: Vec<String> = own.by.iter().map(PolicyId::qualified_name).collect();
            json!({"policy": own.policy.qualified_name(), "rule": *own.rule, "by": by})
        });
        let names = |ids: &[PolicyId]| -> Vec<String> { ids.iter().map(PolicyId::qualified_name).collect() };
        json!({
            "rules": rules.collect::<serde_json::Map<_, _>>(),
            "policies": names(&self.policies),
            "replaced": replaced.collect::<Vec<_>>(),
            "unreadable": names(&self.unreadable),
        })
    }
}

/// Merges policies that are sorted from the root to the leaf, and on one node the older one first.
///
/// The fold runs from the leaf up, and the upper policy decides how (Kuadrant). The provisional flow chart of
/// GEP-713 runs the other way, and lets a lower policy escape an override. `is_rule` says which keys count as
/// rules: lower policies without any do not replace atomic defaults.
pub fn fold(policies: &[&Policy], is_rule: &dyn Fn(&str) -> bool) -> EffectivePolicy {
    let mut rules = EffectiveRules::new();
    let mut is_leaf = true;
    for policy in policies.iter().rev() {
        let Some(block) = &policy.block else { continue };
        let own = block.rules.iter();
        let own = own.map(|(key, value)| (key.clone(), EffectiveRule::of(&policy.id, value.clone())));
        rules = if is_leaf { own.collect() } else { merge(block, own.collect(), rules, is_rule) };
        is_leaf = false;
    }
    finish(policies, rules)
}

/// One policy over the rules of those below it.
fn merge(
    block: &Block,
    upper: EffectiveRules,
    lower: EffectiveRules,
    is_rule: &dyn Fn(&str) -> bool,
) -> EffectiveRules {
    let (first, second) = match (block.role, block.strategy) {
        (Role::Overrides, Strategy::Atomic) => return upper,
        (Role::Defaults, Strategy::Atomic) => {
            return if lower.keys().any(|key| is_rule(key)) { lower } else { upper };
        }
        (Role::Defaults, Strategy::Merge) => (lower, upper),
        (Role::Overrides, Strategy::Merge) => (upper, lower),
        (Role::Defaults, Strategy::Patch) => return patch(lower, upper),
        (Role::Overrides, Strategy::Patch) => return patch(upper, lower),
    };
    let mut merged = first;
    for (key, rule) in second {
        merged.entry(key).or_insert(rule);
    }
    merged
}

/// The fields of a policy applied onto those of another one.
fn patch(patch: EffectiveRules, target: EffectiveRules) -> EffectiveRules {
    let mut left: EffectiveRules = target.into_iter().filter(|(key, _)| !is_patched(&patch, key)).collect();
    left.extend(patch);
    left
}

/// Whether a patch replaces a field: it has the field, a part of it, or what it is a part of. An empty object replaces
/// no parts.
fn is_patched(patch: &EffectiveRules, key: &str) -> bool {
    let parts = format!("{key}/");
    let has_part = || {
        patch.range(Arc::<str>::from(parts.as_str())..).next().is_some_and(|(own, _)| own.starts_with(&parts))
    };
    let replaces = |whole: &str| {
        patch.get(whole).is_some_and(|rule| rule.value.as_object().is_none_or(|object| !object.is_empty()))
    };
    let mut wholes = key.match_indices('/').map(|(end, _)| &key[..end]);
    patch.contains_key(key) || wholes.any(replaces) || has_part()
}

/// Says of each policy which of its rules act.
fn finish(policies: &[&Policy], rules: EffectiveRules) -> EffectivePolicy {
    let mut effective = EffectivePolicy { rules, ..EffectivePolicy::default() };
    let alone = effective.sources().into_iter().map(|source| (source.clone(), Arc::from([source.clone()])));
    let alone: BTreeMap<PolicyId, Arc<[PolicyId]>> = alone.collect();
    let sources: Arc<[PolicyId]> = alone.keys().cloned().collect();
    let mut known = BTreeSet::new();
    for policy in policies.iter().filter(|policy| known.insert(&policy.id)) {
        effective.policies.push(policy.id.clone());
        let Some(block) = &policy.block else {
            effective.unreadable.push(policy.id.clone());
            continue;
        };
        let replaced = block.rules.keys().filter_map(|key| {
            let by = match effective.rules.get(key) {
                Some(rule) if rule.source == policy.id => return None,
                Some(rule) => alone.get(&rule.source).unwrap_or(&sources),
                None => &sources,
            };
            Some(Replaced { policy: policy.id.clone(), rule: key.clone(), by: by.clone() })
        });
        let replaced: Vec<Replaced> = replaced.take(limits::REPLACED_RULES).collect();
        effective.replaced.extend(replaced);
    }
    effective.replaced.sort();
    effective.unreadable.sort();
    effective
}
