//! What each policy does under each ancestor, counted over the outputs, so that one output changes it alone.

use std::collections::BTreeMap;

use crate::effective::EffectivePolicy;
use crate::node::NodeKey;
use crate::policy::PolicyId;
use crate::state::AncestorState;

#[derive(Clone, Debug, Default)]
struct Tally {
    outputs: usize,
    live: usize,
    replaced: usize,
    replaced_by: BTreeMap<PolicyId, usize>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tallies(BTreeMap<PolicyId, BTreeMap<NodeKey, Tally>>);

impl Tallies {
    pub fn add(&mut self, ancestor: &NodeKey, effective: &EffectivePolicy) {
        for policy in &effective.policies {
            let ancestors = self.0.entry(policy.clone()).or_default();
            let tally = ancestors.entry(ancestor.clone()).or_default();
            tally.outputs += 1;
            tally.live += usize::from(is_live(effective, policy));
            tally.replaced += usize::from(is_replaced(effective, policy));
            for by in replaced_by(effective, policy) {
                *tally.replaced_by.entry(by.clone()).or_default() += 1;
            }
        }
    }

    /// Takes back what [`Self::add`] counted for the same output.
    pub fn remove(&mut self, ancestor: &NodeKey, effective: &EffectivePolicy) {
        for policy in &effective.policies {
            let Some(ancestors) = self.0.get_mut(policy) else { continue };
            let Some(tally) = ancestors.get_mut(ancestor) else { continue };
            tally.outputs -= 1;
            tally.live -= usize::from(is_live(effective, policy));
            tally.replaced -= usize::from(is_replaced(effective, policy));
            for by in replaced_by(effective, policy) {
                if let Some(count) = tally.replaced_by.get_mut(by) {
                    *count -= 1;
                }
            }
            tally.replaced_by.retain(|_, count| *count > 0);
            if tally.outputs == 0 {
                ancestors.remove(ancestor);
            }
            if ancestors.is_empty() {
                self.0.remove(policy);
            }
        }
    }

    pub fn states(&self, policy: &PolicyId) -> BTreeMap<NodeKey, AncestorState> {
        let state = |tally: &Tally| AncestorState {
            is_live: tally.live > 0,
            is_replaced: tally.replaced > 0,
            replaced_by: tally.replaced_by.keys().cloned().collect(),
        };
        let ancestors = self.0.get(policy).into_iter().flatten();
        ancestors.map(|(ancestor, tally)| (ancestor.clone(), state(tally))).collect()
    }
}

fn is_live(effective: &EffectivePolicy, policy: &PolicyId) -> bool {
    effective.rules.values().any(|rule| rule.source == *policy)
}

fn is_replaced(effective: &EffectivePolicy, policy: &PolicyId) -> bool {
    effective.replaced.iter().any(|replaced| replaced.policy == *policy)
}

fn replaced_by<'a>(effective: &'a EffectivePolicy, policy: &PolicyId) -> impl Iterator<Item = &'a PolicyId> {
    let replaced = effective.replaced.iter().filter(move |replaced| replaced.policy == *policy);
    replaced.flat_map(|replaced| &replaced.by)
}
