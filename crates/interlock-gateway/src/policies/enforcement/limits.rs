//! The limits of one effective policy: what Envoy asks, and what Limitador counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{EffectivePolicy, Index, NodeKey, PolicyId};
use serde_json::Value;

use super::left_out::LeftOut;
use super::names::digest;
use crate::policies::checks::milliseconds;
use crate::policies::dialect::{Use, Verdict, check, located};

/// Bytes of the limits of one rule of a route. Beyond it, those of the policies nearest to the route are left out.
pub(super) const BYTES_OF_RULE: usize = 64 << 10;
/// Rates of one limit.
const RATES: usize = 16;
/// Characters of an expression in a message.
const SHOWN: usize = 100;
/// Characters of a user's name in an identifier.
const NAME: usize = 40;

/// A limit, as it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestLimit {
    /// The key of its descriptor, which no user chooses.
    pub(super) id: String,
    /// Its name in the policy, as a word.
    pub(super) name: Arc<str>,
    /// Requests by the seconds that they are counted for.
    pub(super) rates: BTreeMap<u64, u64>,
    /// It counts a request for which all of these are true.
    pub(super) predicates: Vec<String>,
    /// It counts separately by each of these.
    pub(super) counters: Vec<String>,
    /// What it needs of authentication: names of `response.success.filters`.
    pub(super) identities: BTreeSet<String>,
    /// Its policy.
    pub(super) policy: PolicyId,
    /// Whether the policy is one of a route.
    pub(super) is_of_route: bool,
}

/// The limits of one effective policy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RuleLimits {
    /// Those that are carried out, by identifier.
    pub(super) limits: Vec<RequestLimit>,
    /// Those that are not.
    pub(super) left_out: Vec<LeftOut>,
}

/// Reads the rules of an effective RateLimitPolicy.
pub(super) fn limits_of(index: &Index, effective: &EffectivePolicy) -> RuleLimits {
    let mut found = RuleLimits::default();
    let mut bytes = 0;
    // From the root to the leaf: a route's own limits never push out those of its Gateway.
    for policy in &effective.policies {
        let is_of_route = is_of_route(index, policy);
        for (name, rule) in effective.rules.iter().filter(|(_, rule)| rule.source == *policy) {
            let why = match read(policy, is_of_route, name, &rule.value) {
                Ok(None) => continue,
                Ok(Some(limit)) => {
                    bytes += limit.size();
                    if bytes <= BYTES_OF_RULE {
                        found.limits.push(limit);
                        continue;
                    }
                    format!(
                        "the limits of one rule of a route have more than {} KiB; write fewer limits",
                        BYTES_OF_RULE >> 10
                    )
                }
                Err(why) => why,
            };
            found.left_out.push(LeftOut {
                policy: policy.clone(),
                rule: word(name).into(),
                why,
                gateway: None,
            });
        }
    }
    found.limits.sort_by(|one, other| one.id.cmp(&other.id));
    found
}

impl RuleLimits {
    /// The same on a Gateway where nothing counts.
    pub(super) fn left_out(&self, gateway: &NodeKey, why: &str) -> Self {
        let left_out = |own: &RequestLimit| LeftOut {
            policy: own.policy.clone(),
            rule: own.name.clone(),
            why: why.to_owned(),
            gateway: Some(gateway.clone()),
        };
        let left_out = self.limits.iter().map(left_out).chain(self.left_out.iter().cloned());
        Self { limits: Vec::new(), left_out: left_out.collect() }
    }

    /// Those of a path whose authentication finds out these names. A limit that needs another would never count.
    pub(super) fn with_identities(self: Arc<Self>, has: impl Fn(&str) -> bool) -> Arc<Self> {
        let lacks = |limit: &RequestLimit| limit.identities.iter().find(|name| !has(name)).cloned();
        if !self.limits.iter().any(|limit| lacks(limit).is_some()) {
            return self;
        }
        let mut found = Self { limits: Vec::new(), left_out: self.left_out.clone() };
        for limit in &self.limits {
            let Some(name) = lacks(limit) else {
                found.limits.push(limit.clone());
                continue;
            };
            let why = format!(
                "auth.{name} has no value where it counts; add response.success.filters.{name} to the AuthPolicy of its \
                 routes, and name an auth server in spec.policies.authServers of Interlock default"
            );
            let (policy, rule) = (limit.policy.clone(), limit.name.clone());
            found.left_out.push(LeftOut { policy, rule, why, gateway: None });
        }
        Arc::new(found)
    }
}

/// Whether a policy targets a route, or a rule of one.
pub(in crate::policies) fn is_of_route(index: &Index, policy: &PolicyId) -> bool {
    index.policy(policy).is_some_and(|own| own.targets.iter().any(|target| target.kind.is_route()))
}

/// A limit; none where it has no rate, which limits nothing.
fn read(
    policy: &PolicyId,
    is_of_route: bool,
    name: &Arc<str>,
    rule: &Value,
) -> Result<Option<RequestLimit>, String> {
    let mut rates: BTreeMap<u64, u64> = BTreeMap::new();
    for rate in rule["rates"].as_array().into_iter().flatten() {
        let window = rate["window"].as_str().unwrap_or_default();
        let seconds = milliseconds(window).map(|window| window / 1000).filter(|seconds| *seconds > 0);
        let Some(seconds) = seconds else {
            return Err(format!("its window {window:?} is shorter than a second; write 1s or more"));
        };
        // Limitador has one counter for a window: the stricter of two limits holds.
        let limit = u64::try_from(rate["limit"].as_i64().unwrap_or_default()).unwrap_or_default();
        rates.entry(seconds).and_modify(|own| *own = limit.min(*own)).or_insert(limit);
    }
    if rates.is_empty() {
        return Ok(None);
    }
    if rates.len() > RATES {
        return Err(format!("it has more than {RATES} rates; write fewer"));
    }
    let mut identities = BTreeSet::new();
    let predicates = expressions(rule, "when", "predicate", Use::Predicate, &mut identities)?;
    let counters = expressions(rule, "counters", "expression", Use::Counter, &mut identities)?;
    let (id, name, policy) = (identifier(policy, name), word(name).into(), policy.clone());
    Ok(Some(RequestLimit { id, name, rates, predicates, counters, identities, policy, is_of_route }))
}

fn expressions(
    rule: &Value,
    list: &str,
    member: &str,
    of: Use,
    identities: &mut BTreeSet<String>,
) -> Result<Vec<String>, String> {
    let each = rule[list].as_array().into_iter().flatten().enumerate().map(|(index, holder)| {
        let text = holder[member].as_str().unwrap_or_default();
        let located = located(text);
        match check(&located.text, of) {
            Verdict::Right => {
                identities.extend(located.names);
                Ok(located.text)
            }
            Verdict::Unsupported(why) | Verdict::Refused(why) => {
                let shown: String = text.chars().take(SHOWN).collect();
                Err(format!("{list}[{index}].{member} {shown:?} {why}"))
            }
        }
    });
    each.collect()
}

/// A user's name as a word: Limitador's parser of files refuses some characters, and with them all limits.
fn word(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    name.chars().take(NAME).map(plain).collect()
}

/// `limit.NAME__HASH`, as Kuadrant names them, with more of the hash: with 32 bits, the author of a route's policy can
/// find a name that has the identifier of a Gateway's limit, and switch that off.
fn identifier(policy: &PolicyId, name: &str) -> String {
    format!("limit.{}__{}", word(name), digest(&format!("{}/{}/{name}", policy.namespace, policy.name), 8))
}

impl RequestLimit {
    /// The key of the descriptor of a counter.
    pub(super) fn counter_key(&self, index: usize) -> String {
        format!("{}.{index}", self.id)
    }

    /// Bytes that it has in a filter and in the limits, about.
    pub(super) fn size(&self) -> usize {
        /// Of a descriptor without its expression.
        const DESCRIPTOR: usize = 240;
        let escaped = |text: &String| Value::from(text.as_str()).to_string().len() + 8;
        let texts = self.predicates.iter().chain(&self.counters).map(escaped);
        (DESCRIPTOR + self.id.len()) * (1 + self.counters.len())
            + texts.sum::<usize>()
            + 200 * self.rates.len()
    }

    /// Whether it counts a request, in CEL. A comment at the end of a predicate ends with its line.
    pub(super) fn condition(&self) -> String {
        if self.predicates.is_empty() {
            return "'1'".to_owned();
        }
        let all: Vec<String> = self.predicates.iter().map(|own| format!("({own}\n)")).collect();
        format!("({}) ? '1' : '0'", all.join(" && "))
    }
}
