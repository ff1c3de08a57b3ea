//! What an event marked is computed anew, and compared with what was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::output::{Folds, Output};
use super::tally::Touched;
use super::work::{Journal, Work};
use super::{Index, OutputKey};
use crate::kind::{PolicyClass, Scope};
use crate::limits;
use crate::node::NodeKey;
use crate::policy::{Policy, PolicyId};
use crate::state::{PolicyState, TargetState};

impl Index {
    /// Computes what is marked.
    pub(super) fn recompute(&mut self, work: Work, journal: &mut Journal) {
        let Work { outputs, mut policies, routes, .. } = work;
        journal.cost.routes += routes;
        journal.cost.outputs += outputs.len();
        let mut folds = Folds::default();
        let new: Vec<(OutputKey, Option<Arc<Output>>)> = outputs
            .into_iter()
            .map(|key| {
                let output = self.output(&key, &mut folds);
                (key, output)
            })
            .collect();
        journal.cost.merges += folds.count();
        let mut touched = Touched::default();
        for (key, output) in new {
            self.put_output(key, output, &mut touched, journal);
        }
        for (id, ancestors) in touched.into_policies() {
            if !policies.contains(&id) && !self.refresh_state(&id, &ancestors, journal) {
                policies.insert(id);
            }
        }
        journal.cost.policies += policies.len();
        for id in policies {
            self.replace_state(id, journal);
        }
    }

    fn put_output(
        &mut self,
        key: OutputKey,
        new: Option<Arc<Output>>,
        touched: &mut Touched,
        journal: &mut Journal,
    ) {
        let old = self.outputs.get(&key);
        let is_same = match (old, &new) {
            (Some(old), Some(new)) => old.effective == new.effective,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return;
        }
        let ancestor = ancestor(&key.scope);
        let old = match new {
            Some(new) => {
                self.tallies.add(&ancestor, &new.parts, touched);
                self.outputs.insert(key.clone(), new)
            }
            None => self.outputs.remove(&key),
        };
        if let Some(old) = &old {
            self.tallies.remove(&ancestor, &old.parts, touched);
        }
        journal.outputs.insert(key, old);
    }

    /// Brings the ancestors of a state up to date. False where there is no state yet.
    fn refresh_state(
        &mut self,
        id: &PolicyId,
        ancestors: &BTreeMap<NodeKey, BTreeSet<PolicyId>>,
        journal: &mut Journal,
    ) -> bool {
        let Some(state) = self.states.get_mut(id) else { return false };
        let differs = ancestors
            .iter()
            .any(|(ancestor, by)| self.tallies.differs(id, ancestor, by, state.ancestors.get(ancestor)));
        if differs {
            journal.states.insert(id.clone(), journal.keeps_states.then(|| state.clone()));
            let state = Arc::make_mut(state);
            for (ancestor, by) in ancestors {
                self.tallies.refresh(id, ancestor, by, &mut state.ancestors);
            }
        }
        true
    }

    fn replace_state(&mut self, id: PolicyId, journal: &mut Journal) {
        let new = self.compute_state(&id);
        if self.states.get(&id).map(AsRef::as_ref) == new.as_ref() {
            return;
        }
        let old = match new {
            Some(new) => self.states.insert(id.clone(), Arc::new(new)),
            None => self.states.remove(&id),
        };
        journal.states.insert(id, old);
    }

    /// The effective policy of a path or a target; none where no policy is attached, or the path is not there.
    fn output<'a>(&'a self, key: &OutputKey, folds: &mut Folds<'a>) -> Option<Arc<Output>> {
        let kind = self.kinds.get(&key.kind)?;
        folds.of(kind.as_ref(), &self.policies_of(key)?)
    }

    /// The policies of a path or a target, from the root to the leaf; none where it is not there.
    pub(super) fn policies_of(&self, key: &OutputKey) -> Option<Vec<&Policy>> {
        Some(match &key.scope {
            Scope::Path(path) if self.paths.contains(path) => {
                path.nodes().flat_map(|node| self.attached(node, &key.kind)).collect()
            }
            Scope::Target(target) if self.is_target(target, &key.kind) => {
                let (valid, unreadable): (Vec<&Policy>, Vec<&Policy>) =
                    self.attached(target, &key.kind).partition(|policy| policy.block.is_some());
                let bounded = unreadable.into_iter().take(limits::POLICIES_PER_TARGET);
                valid.into_iter().take(1).chain(bounded).collect()
            }
            Scope::Path(_) | Scope::Target(_) => return None,
        })
    }

    fn compute_state(&self, id: &PolicyId) -> Option<PolicyState> {
        let policy = self.policies.get(id)?;
        let targets = policy.targets.iter().map(|target| (target.clone(), self.target_state(policy, target)));
        Some(PolicyState {
            id: id.clone(),
            generation: policy.generation,
            violations: policy.violations.clone(),
            has_last_valid: !policy.violations.is_empty() && policy.block.is_some(),
            targets: targets.collect(),
            ancestors: self.tallies.states(id),
        })
    }

    fn target_state(&self, policy: &Policy, target: &NodeKey) -> TargetState {
        let kind = &policy.id.kind;
        if !self.is_target(target, kind) {
            return TargetState::NotFound;
        }
        if policy.is_deleting {
            return TargetState::Attached;
        }
        let is_direct = self.class(kind) == PolicyClass::Direct;
        let counts = match is_direct {
            true => self.policies.is_among_first(limits::CONFLICTS_PER_TARGET, target, &policy.id),
            false => self.attached(target, kind).any(|other| other.id == policy.id),
        };
        if !counts {
            return TargetState::OverLimit;
        }
        let winner = self.winner(target, kind).filter(|_| is_direct);
        match winner.filter(|winner| winner.id != policy.id && policy.block.is_some()) {
            Some(winner) => TargetState::Conflicted(winner.id.clone()),
            None => TargetState::Attached,
        }
    }
}

/// The object whose status an output counts for.
fn ancestor(scope: &Scope) -> NodeKey {
    match scope {
        Scope::Path(path) => path.gateway.clone(),
        Scope::Target(target) => target.object(),
    }
}
