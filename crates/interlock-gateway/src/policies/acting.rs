//! The policies of a path, kind by kind: which rules act, and what they replaced.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_policies::{
    BackendState, EffectivePolicy, EffectiveRule, Level, NodeKey, ObjectKind, Path, Policy, Replaced,
};

use super::generic::Precedence;
use super::merge::merge_below;
use super::survey::PolicySurvey;

/// The kind of Envoy Gateway that guards routes, and its only field that connections have: addresses.
const SECURITY: &str = "SecurityPolicy";
const OF_CONNECTIONS: &str = "authorization";

impl PolicySurvey {
    /// What acts on a path, by the name of the kind. Kinds without a policy on the path are left out.
    pub fn acting(&self, path: &Arc<Path>) -> BTreeMap<String, EffectivePolicy> {
        let kinds = self.kinds.names().map(|(name, ..)| name);
        let acting = kinds.filter_map(|kind| Some((kind.to_owned(), self.acting_of(kind, path)?)));
        acting.collect()
    }

    /// The same of one kind.
    pub fn acting_of(&self, kind: &str, path: &Arc<Path>) -> Option<EffectivePolicy> {
        // Kuadrant's limits and authentication are of HTTP requests.
        let has_requests = matches!(path.route.kind, ObjectKind::HttpRoute | ObjectKind::GrpcRoute);
        if self.kinds.is_of_requests(kind) && !has_requests {
            return None;
        }
        let mut effective = match self.kinds.precedence(kind)? {
            Precedence::Inherited => {
                return self.index.effective(kind, path).map(|own| EffectivePolicy::clone(own));
            }
            Precedence::MostSpecific => self.most_specific(kind, path),
            Precedence::OnePerTarget => {
                let mut nodes: Vec<NodeKey> = path.nodes().cloned().collect();
                nodes.extend(self.backends(kind, path));
                self.side_by_side(kind, nodes.iter(), 1)
            }
            Precedence::All => self.side_by_side(kind, path.nodes(), usize::MAX),
        };
        let attached = path.nodes().flat_map(|node| self.attached(node)).filter(|id| &*id.kind == kind);
        let unreadable = attached.filter(|id| self.index.policy(id).is_some_and(|own| own.block.is_none()));
        effective.unreadable = unreadable.cloned().collect();
        if kind == SECURITY && !has_requests {
            let acts = |rule: &str| rule == OF_CONNECTIONS && path.route.kind != ObjectKind::UdpRoute;
            effective.rules.retain(|rule, _| acts(rule));
            effective.replaced.retain(|own| acts(&own.rule));
        }
        let is_there = !effective.policies.is_empty() || !effective.unreadable.is_empty();
        is_there.then_some(effective)
    }

    /// One policy for the whole path. The others are replaced, but for the one that it merges with.
    fn most_specific(&self, kind: &str, path: &Path) -> EffectivePolicy {
        let mut effective = EffectivePolicy::default();
        let mut merges = None;
        let nodes: Vec<&NodeKey> = path.nodes().collect();
        for node in nodes.into_iter().rev() {
            let Some(policy) = self.valid(node, kind).next() else { continue };
            // A policy of a Gateway and of its listener does not replace itself.
            if effective.policies.contains(&policy.id) {
                continue;
            }
            let is_of_route = matches!(node.level(), Level::Route | Level::Rule);
            let actor = effective.policies.first().cloned();
            effective.policies.push(policy.id.clone());
            match actor {
                None => {
                    merges = self.policies.get(&policy.id).and_then(|own| own.merges).filter(|_| is_of_route);
                    effective.rules.extend(rules(policy));
                }
                Some(actor) => {
                    if let Some(merge) = merges.take_if(|_| !is_of_route) {
                        merge_below(&mut effective, policy, merge);
                        continue;
                    }
                    let replaced = rules(policy).map(|(rule, _)| Replaced {
                        policy: policy.id.clone(),
                        rule,
                        by: Arc::from([actor.clone()]),
                    });
                    effective.replaced.extend(replaced);
                }
            }
        }
        effective.policies.reverse();
        effective.replaced.sort();
        effective
    }

    /// The first policies of each node, whole, by their names.
    pub(super) fn side_by_side<'a>(
        &self,
        kind: &str,
        nodes: impl Iterator<Item = &'a NodeKey>,
        of_each: usize,
    ) -> EffectivePolicy {
        let mut effective = EffectivePolicy::default();
        for node in nodes {
            for policy in self.valid(node, kind).take(of_each) {
                let key: Arc<str> = policy.id.qualified_name().into();
                if effective.rules.contains_key(&key) {
                    continue;
                }
                let whole = self.policies.get(&policy.id).and_then(|own| own.whole.clone());
                let value = whole.unwrap_or_default();
                effective.rules.insert(key, EffectiveRule::of(&policy.id, value));
                effective.policies.push(policy.id.clone());
            }
        }
        effective
    }

    /// The Services of a rule, or their ports where a policy targets the port.
    fn backends(&self, kind: &str, path: &Path) -> Vec<NodeKey> {
        let links = self.index.links(&path.route).into_iter().flat_map(|links| &links.backends);
        let resolved = links.filter(|link| link.rule == path.rule && link.state == BackendState::Resolved);
        let nodes = resolved.filter_map(|link| link.node.as_ref());
        let most_specific = |node: &NodeKey| {
            if self.valid(node, kind).next().is_some() { node.clone() } else { node.object() }
        };
        nodes.map(most_specific).collect()
    }
}

fn rules(policy: &Policy) -> impl Iterator<Item = (Arc<str>, EffectiveRule)> {
    let rules = policy.block.iter().flat_map(|block| &block.rules);
    rules.map(|(key, value)| (key.clone(), EffectiveRule::of(&policy.id, value.clone())))
}
