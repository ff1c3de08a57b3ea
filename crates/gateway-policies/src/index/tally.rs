//! What each policy does under each ancestor, counted over the outputs, so that one output changes it alone.

use std::collections::{BTreeMap, BTreeSet};

use super::output::Part;
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

/// What can differ in the states after some outputs did: by policy and ancestor, who began or ceased to replace it.
#[derive(Default)]
pub(super) struct Touched(BTreeMap<PolicyId, BTreeMap<NodeKey, BTreeSet<PolicyId>>>);

impl Touched {
    fn note(&mut self, ancestor: &NodeKey, part: &Part) {
        let ancestors = self.0.entry(part.policy.clone()).or_default();
        ancestors.entry(ancestor.clone()).or_default().extend(part.replaced_by.iter().cloned());
    }

    pub fn into_policies(self) -> impl Iterator<Item = (PolicyId, BTreeMap<NodeKey, BTreeSet<PolicyId>>)> {
        self.0.into_iter()
    }
}

impl Tallies {
    pub fn add(&mut self, ancestor: &NodeKey, parts: &[Part], touched: &mut Touched) {
        for part in parts {
            touched.note(ancestor, part);
            let ancestors = self.0.entry(part.policy.clone()).or_default();
            let tally = ancestors.entry(ancestor.clone()).or_default();
            tally.outputs += 1;
            tally.live += usize::from(part.is_live);
            tally.replaced += usize::from(part.is_replaced);
            for by in &part.replaced_by {
                *tally.replaced_by.entry(by.clone()).or_default() += 1;
            }
        }
    }

    /// Takes back what [`Self::add`] counted for the same output.
    pub fn remove(&mut self, ancestor: &NodeKey, parts: &[Part], touched: &mut Touched) {
        for part in parts {
            touched.note(ancestor, part);
            let Some(ancestors) = self.0.get_mut(&part.policy) else { continue };
            let Some(tally) = ancestors.get_mut(ancestor) else { continue };
            tally.outputs -= 1;
            tally.live -= usize::from(part.is_live);
            tally.replaced -= usize::from(part.is_replaced);
            for by in &part.replaced_by {
                let Some(count) = tally.replaced_by.get_mut(by) else { continue };
                *count -= 1;
                if *count == 0 {
                    tally.replaced_by.remove(by);
                }
            }
            if tally.outputs == 0 {
                ancestors.remove(ancestor);
            }
            if ancestors.is_empty() {
                self.0.remove(&part.policy);
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

    /// Whether a state is not that of the outputs any more. Of those who replace the policy only `by` are looked at:
    /// they can be thousands, of which an output changes a few.
    pub fn differs(
        &self,
        policy: &PolicyId,
        ancestor: &NodeKey,
        by: &BTreeSet<PolicyId>,
        state: Option<&AncestorState>,
    ) -> bool {
        match (self.get(policy, ancestor), state) {
            (None, None) => false,
            (Some(tally), Some(state)) => {
                state.is_live != (tally.live > 0)
                    || state.is_replaced != (tally.replaced > 0)
                    || by
                        .iter()
                        .any(|by| state.replaced_by.contains(by) != tally.replaced_by.contains_key(by))
            }
            (Some(_), None) | (None, Some(_)) => true,
        }
    }

    /// Brings a state up to date.
    pub fn refresh(
        &self,
        policy: &PolicyId,
        ancestor: &NodeKey,
        by: &BTreeSet<PolicyId>,
        states: &mut BTreeMap<NodeKey, AncestorState>,
    ) {
        let Some(tally) = self.get(policy, ancestor) else {
            states.remove(ancestor);
            return;
        };
        let state = states.entry(ancestor.clone()).or_default();
        state.is_live = tally.live > 0;
        state.is_replaced = tally.replaced > 0;
        for by in by {
            if tally.replaced_by.contains_key(by) {
                state.replaced_by.insert(by.clone());
            } else {
                state.replaced_by.remove(by);
            }
        }
    }

    /// The outputs that a policy has a part in.
    pub fn outputs(&self, policy: &PolicyId) -> usize {
        self.0.get(policy).into_iter().flatten().map(|(_, tally)| tally.outputs).sum()
    }

    fn get(&self, policy: &PolicyId, ancestor: &NodeKey) -> Option<&Tally> {
        self.0.get(policy)?.get(ancestor)
    }
}
