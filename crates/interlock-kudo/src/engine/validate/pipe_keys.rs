//! Keys of Pipe tasks: templates find the results of a task by its keys, so those of a plan must differ.

use std::collections::{BTreeMap, HashMap};

use crate::api::{Plan, Task};
use crate::engine::tasks;

/// Maximum of keys compared for one package, over all of its plans: many plans may name a task of
/// many keys, and an API request waits for the result. 1 M take some 50 ms.
pub(super) const MAX_COMPARED: usize = 1_000_000;

/// More keys than [`MAX_COMPARED`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// The keys of all Pipe tasks, as numbers: many plans may name the same tasks.
pub(super) struct Keys<'a> {
    /// Each key once, in order; its place is its number.
    names: Vec<&'a str>,
    /// Numbers of the keys of each Pipe task, by the task's name.
    of: BTreeMap<&'a str, Vec<usize>>,
    /// Number of keys that may still be compared.
    left: usize,
}

impl<'a> Keys<'a> {
    /// Of the tasks of a package, by name.
    pub(super) fn new(tasks: &BTreeMap<&'a str, &'a Task>) -> Self {
        let pipes: BTreeMap<&str, Vec<&str>> = tasks
            .iter()
            .map(|(name, task)| (*name, tasks::pipe_keys(task)))
            .filter(|(_, keys)| !keys.is_empty())
            .collect();
        let mut numbers: BTreeMap<&str, usize> = pipes.values().flatten().map(|key| (*key, 0)).collect();
        numbers.values_mut().enumerate().for_each(|(i, number)| *number = i);
        let number = |key: &&str| numbers.get(key).copied();
        let of = pipes.iter().map(|(name, keys)| (*name, keys.iter().filter_map(number).collect())).collect();
        Self { names: numbers.into_keys().collect(), of, left: MAX_COMPARED }
    }

    /// Keys that a plan uses twice, in order.
    ///
    /// # Errors
    /// [`TooMany`] where this plan and those before name more keys than are compared.
    pub(super) fn twice(&mut self, plan: &Plan) -> Result<Vec<&'a str>, TooMany> {
        let steps = plan.phases.iter().flatten().flat_map(|phase| phase.steps.iter().flatten());
        // Counts beyond two do not matter: each task is visited once.
        let mut named: BTreeMap<&str, bool> = BTreeMap::new();
        for task in steps.flat_map(|step| step.tasks.iter().flatten()) {
            if self.of.contains_key(task.as_str()) {
                named.entry(task).and_modify(|again| *again = true).or_default();
            }
        }
        let mut used: HashMap<usize, bool> = HashMap::new();
        for (task, again) in named {
            let keys = self.of.get(task).map(Vec::as_slice).unwrap_or_default();
            self.left = self.left.checked_sub(keys.len()).ok_or(TooMany)?;
            for key in keys {
                used.entry(*key).and_modify(|again| *again = true).or_insert(again);
            }
        }
        let mut twice: Vec<usize> =
            used.into_iter().filter_map(|(key, again)| again.then_some(key)).collect();
        twice.sort_unstable();
        Ok(twice.into_iter().filter_map(|key| self.names.get(key).copied()).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Task by task, in the order that the plan names them.
    fn plainly<'a>(tasks: &BTreeMap<&str, &'a Task>, plan: &Plan) -> Vec<&'a str> {
        let steps = plan.phases.iter().flatten().flat_map(|phase| phase.steps.iter().flatten());
        let named = steps.flat_map(|step| step.tasks.iter().flatten());
        let pipes = named.filter_map(|name| tasks.get(name.as_str()));
        let mut seen = BTreeSet::new();
        let twice: BTreeSet<&str> =
            pipes.flat_map(|task| tasks::pipe_keys(task)).filter(|key| !seen.insert(*key)).collect();
        twice.into_iter().collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn they_are_those_that_are_met_twice(
            tasks in prop::collection::btree_map("[a-d]", (any::<bool>(), prop::collection::vec("[k-o]", 0..4)), 0..5),
            steps in prop::collection::vec(prop::collection::vec("[a-e]", 0..4), 0..3),
        ) {
            let task = |(name, (pipe, keys)): (&String, &(bool, Vec<String>))| -> Task {
                let pipes: Vec<_> = keys.iter().map(|key| json!({"key": key})).collect();
                let kind = if *pipe { "Pipe" } else { "Dummy" };
                serde_json::from_value(json!({"name": name, "kind": kind, "spec": {"pipe": pipes}})).unwrap()
            };
            let all: Vec<Task> = tasks.iter().map(task).collect();
            let steps: Vec<_> = steps.iter().map(|tasks| json!({"name": "s", "tasks": tasks})).collect();
            let plan: Plan = serde_json::from_value(json!({"phases": [{"name": "p", "steps": steps}]})).unwrap();
            let by_name: BTreeMap<&str, &Task> = tasks.keys().map(String::as_str).zip(&all).collect();
            prop_assert_eq!(Keys::new(&by_name).twice(&plan), Ok(plainly(&by_name, &plan)));
        }
    }
}
