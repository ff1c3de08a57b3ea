//! What an event would change. The event is applied and taken back, and both notes of what they replaced are the
//! difference; so it costs what the event costs, twice, however large the index is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::work::{Journal, Work};
use super::{Change, Cost, Event, Index, OutputKey, paths};
use crate::attach::{RouteLinks, store_object};
use crate::effective::EffectivePolicy;
use crate::kind::{PolicyClass, Scope};
use crate::limits;
use crate::node::NodeKey;
use crate::path::Path;
use crate::policy::PolicyId;
use crate::state::PolicyState;

/// Something before and after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement<T> {
    /// Before; none where it was absent.
    pub before: Option<T>,
    /// After; none where it would be absent.
    pub after: Option<T>,
}

/// What an event would change. Everything that is not listed would stay as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Outputs that would appear, change or vanish.
    pub outputs: BTreeMap<OutputKey, Replacement<Arc<EffectivePolicy>>>,
    /// Routes whose links would change.
    pub routes: BTreeMap<NodeKey, Replacement<RouteLinks>>,
    /// Policies whose state would change.
    pub policies: BTreeMap<PolicyId, Replacement<Arc<PolicyState>>>,
    /// Paths that stay and lose their last rule, by inherited kind.
    pub opened: BTreeMap<Arc<str>, BTreeSet<Arc<Path>>>,
    /// Paths that would appear without a rule, by inherited kind.
    pub uncovered: BTreeMap<Arc<str>, BTreeSet<Arc<Path>>>,
    /// The outputs that each policy of [`Self::policies`] would have a part in.
    pub reach: BTreeMap<PolicyId, usize>,
    /// What the event would cost.
    pub cost: Cost,
}

/// An event that touches more than [`limits::DIFFERENCE`] or [`limits::MERGED_RULES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the change touches more than {limit} {of}, so what it would change is not foreseen")]
pub struct OverBudget {
    /// The limit.
    pub limit: usize,
    /// What it is of.
    pub of: &'static str,
}

const PATHS: &str = "routes and paths";
const RULES: &str = "rules of policies";

impl Index {
    /// What an event would change. The index is the same afterwards.
    ///
    /// A version that cannot be decoded changes nothing: the last one stays in force.
    pub fn difference(&mut self, event: Event) -> Result<Difference, OverBudget> {
        self.difference_within(event, limits::DIFFERENCE)
    }

    /// The same with a budget of one's own.
    pub fn difference_within(&mut self, event: Event, budget: usize) -> Result<Difference, OverBudget> {
        let Ok(change) = self.change(event) else { return Ok(Difference::default()) };
        if self.reach_of(&change) > budget {
            return Err(OverBudget { limit: budget, of: PATHS });
        }
        let mut work = Work { budget, ..Work::default() };
        let mut before = Journal { keeps_states: true, ..Journal::default() };
        let Some(inverse) = self.carry_out(change, &mut work, &mut before) else {
            return Ok(Difference::default());
        };
        if work.is_over_budget() {
            self.take_back(inverse, before.links.keys());
            return Err(OverBudget { limit: budget, of: PATHS });
        }
        if self.rules_of(&work) > limits::MERGED_RULES {
            self.take_back(inverse, before.links.keys());
            return Err(OverBudget { limit: limits::MERGED_RULES, of: RULES });
        }
        self.recompute(work, &mut before);
        let reach = before.states.keys().map(|id| (id.clone(), self.tallies.outputs(id))).collect();
        let after = self.take_back(inverse, before.links.keys());
        let mut difference = Difference { reach, cost: before.cost, ..compare(before, after) };
        self.find_bare_paths(&mut difference);
        Ok(difference)
    }

    /// The paths through the targets of a policy, before and after. Those of an object are counted on the way.
    fn reach_of(&self, change: &Change) -> usize {
        let Change::Policy(id, new) = change else { return 0 };
        let targets = self.policies.get(id).into_iter().chain(new).flat_map(|policy| &policy.targets);
        let targets: BTreeSet<&NodeKey> = targets.collect();
        targets.into_iter().map(|target| self.paths.count_through(target)).sum()
    }

    /// The rules that are merged for what is marked; no more than are over the limit are counted.
    fn rules_of(&self, work: &Work) -> usize {
        let mut known = BTreeSet::new();
        let mut rules = 0;
        for key in &work.outputs {
            let policies = self.policies_of(key).unwrap_or_default();
            let own = policies.iter().flat_map(|policy| &policy.block).map(|block| block.rules.len());
            let own: usize = own.sum();
            if known.insert(policies.iter().map(|policy| &policy.id).collect::<Vec<_>>()) {
                rules += own;
            }
            if rules > limits::MERGED_RULES {
                break;
            }
        }
        rules
    }

    /// Carries out the inverse of a change. Of its routes only those are linked anew whose links it had changed.
    fn take_back<'a>(&mut self, inverse: Change, routes: impl Iterator<Item = &'a NodeKey>) -> Journal {
        let mut work = Work::default();
        let mut journal = Journal { keeps_states: true, ..Journal::default() };
        match inverse {
            Change::Object(key, old) => {
                store_object(&mut self.store, &key, old);
                for route in routes {
                    self.link(route, &mut work, &mut journal);
                }
                self.mark_policies_of(&key, &mut work);
            }
            Change::Policy(id, old) => {
                self.policy_changed(&id, old, &mut work);
            }
        }
        self.recompute(work, &mut journal);
        journal
    }

    /// Finds the paths of after on which no rule of an inherited kind acts, where it was otherwise before.
    fn find_bare_paths(&self, difference: &mut Difference) {
        let of = |route: &NodeKey, links: &Option<RouteLinks>| {
            links.as_ref().map(|links| paths::paths(route, links)).unwrap_or_default()
        };
        let linked: BTreeMap<&NodeKey, (paths::PathSet, paths::PathSet)> = difference
            .routes
            .iter()
            .map(|(route, links)| (route, (of(route, &links.before), of(route, &links.after))))
            .collect();
        let mut bare = BTreeMap::<bool, BTreeMap<Arc<str>, BTreeSet<Arc<Path>>>>::new();
        let mut note = |is_new: bool, kind: &Arc<str>, path: &Arc<Path>| {
            bare.entry(is_new).or_default().entry(kind.clone()).or_default().insert(path.clone());
        };
        let acts = |effective: &Option<Arc<EffectivePolicy>>| {
            effective.as_ref().is_some_and(|effective| !effective.rules.is_empty())
        };
        for (key, output) in &difference.outputs {
            let Scope::Path(path) = &key.scope else { continue };
            let stays = linked.get(&path.route).is_none_or(|(_, after)| after.contains(path));
            if stays && acts(&output.before) && !acts(&output.after) {
                note(false, &key.kind, path);
            }
        }
        let inherited = self.kinds.iter().filter(|(_, kind)| kind.class() == PolicyClass::Inherited);
        for (kind, _) in inherited {
            for path in linked.values().flat_map(|(before, after)| after.difference(before)) {
                let output = difference.outputs.get(&super::inherited_key(kind, path));
                if !output.is_some_and(|output| acts(&output.after)) {
                    note(true, kind, path);
                }
            }
        }
        difference.opened = bare.remove(&false).unwrap_or_default();
        difference.uncovered = bare.remove(&true).unwrap_or_default();
    }
}

/// What two journals note as before and after. They have the same keys.
fn compare(before: Journal, after: Journal) -> Difference {
    fn zip<K: Ord, T, U>(
        before: BTreeMap<K, Option<T>>,
        mut after: BTreeMap<K, Option<T>>,
        of: impl Fn(T) -> U,
    ) -> BTreeMap<K, Replacement<U>> {
        let pair = |(key, before): (K, Option<T>)| {
            let after = after.remove(&key).flatten().map(&of);
            (key, Replacement { before: before.map(&of), after })
        };
        before.into_iter().map(pair).collect()
    }
    Difference {
        outputs: zip(before.outputs, after.outputs, |output| output.effective.clone()),
        routes: zip(before.links, after.links, |links| links),
        policies: zip(before.states, after.states, |state| state),
        ..Difference::default()
    }
}
