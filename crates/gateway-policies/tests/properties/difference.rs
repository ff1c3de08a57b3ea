//! What an event would change is what it changes, and asking changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use gateway_policies::{
    EffectivePolicy, Index, NodeKey, OutputKey, Path, PolicyId, PolicyState, Replacement, RouteLinks,
};

use crate::generate::Step;
use crate::snapshot;

/// Everything that an index knows.
#[derive(Debug, PartialEq)]
struct All {
    outputs: BTreeMap<OutputKey, EffectivePolicy>,
    routes: BTreeMap<NodeKey, RouteLinks>,
    states: BTreeMap<PolicyId, PolicyState>,
    paths: BTreeSet<Arc<Path>>,
    faults: usize,
}

impl All {
    fn of(index: &Index) -> Self {
        let states = index.policies().map(|own| (own.id.clone(), index.state(&own.id).unwrap().clone()));
        Self {
            outputs: snapshot::outputs(index),
            routes: index.routes().map(|(route, links)| (route.clone(), links.clone())).collect(),
            states: states.collect(),
            paths: index.paths().cloned().collect(),
            faults: index.faults().len(),
        }
    }

    /// The paths on which a rule of the inherited kind acts.
    fn guarded(&self) -> BTreeSet<&Arc<Path>> {
        let acts = |path: &&Arc<Path>| {
            let scope = gateway_policies::Scope::Path((*path).clone());
            let output = self.outputs.get(&OutputKey { kind: "LimitPolicy".into(), scope });
            output.is_some_and(|output| !output.rules.is_empty())
        };
        self.paths.iter().filter(acts).collect()
    }
}

fn differing<K: Ord + Clone, T: PartialEq + Clone>(
    before: &BTreeMap<K, T>,
    after: &BTreeMap<K, T>,
) -> BTreeMap<K, (Option<T>, Option<T>)> {
    let keys: BTreeSet<&K> = before.keys().chain(after.keys()).collect();
    let differs = keys.into_iter().filter(|key| before.get(key) != after.get(key));
    differs.map(|key| (key.clone(), (before.get(key).cloned(), after.get(key).cloned()))).collect()
}

fn pairs<K: Ord + Clone, S, T>(
    found: &BTreeMap<K, Replacement<S>>,
    of: impl Fn(&S) -> T,
) -> BTreeMap<K, (Option<T>, Option<T>)> {
    let pair = |(key, own): (&K, &Replacement<S>)| {
        (key.clone(), (own.before.as_ref().map(&of), own.after.as_ref().map(&of)))
    };
    found.iter().map(pair).collect()
}

pub fn foretells(index: &mut Index, step: &Step, seed: &u64) {
    let event = match step {
        Step::Apply(object) => index.event(object).unwrap(),
        Step::Delete(object) => index.deletion(object).unwrap(),
    };
    let before = All::of(index);
    // Whether or not it is over a budget.
    let _ = index.difference_within(event.clone(), usize::try_from(seed % 7).unwrap());
    assert_eq!(All::of(index), before, "a difference over its budget leaves the index as it was: {step:?}");
    let difference = index.difference(event.clone()).unwrap();
    assert_eq!(All::of(index), before, "a difference leaves the index as it was: {step:?}");
    let mut changed = index.clone();
    changed.apply(event);
    let after = All::of(&changed);
    let outputs = pairs(&difference.outputs, |own| own.as_ref().clone());
    same(&outputs, &differing(&before.outputs, &after.outputs), step);
    same(&pairs(&difference.routes, Clone::clone), &differing(&before.routes, &after.routes), step);
    let states = pairs(&difference.policies, |own| own.as_ref().clone());
    same(&states, &differing(&before.states, &after.states), step);
    let bare = |path: &&Arc<Path>| !after.guarded().contains(path);
    let opened: BTreeSet<&Arc<Path>> =
        before.guarded().into_iter().filter(|path| after.paths.contains(*path)).filter(bare).collect();
    let uncovered: BTreeSet<&Arc<Path>> = after.paths.difference(&before.paths).filter(bare).collect();
    same(&difference.opened.get("LimitPolicy").into_iter().flatten().collect(), &opened, step);
    same(&difference.uncovered.get("LimitPolicy").into_iter().flatten().collect(), &uncovered, step);
    let findings = difference.findings();
    let texts: BTreeSet<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), findings.len(), "no sentence is said twice: {step:?}");
}

fn same<T: PartialEq + Debug>(found: &T, expected: &T, step: &Step) {
    assert_eq!(found, expected, "a difference is what the event changes: {step:?}");
}
