//! Properties over generated topologies: the index equals a naive implementation that shares no code with it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod difference;
mod generate;
mod kinds;
mod naive;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{Index, Scope};
use generate::{Dice, Step};
use proptest::prelude::*;
use serde_json::Value;

/// How many topologies a property sees.
const TOPOLOGIES: u32 = 10_000;

/// How many damaged objects, eight at a time.
const DAMAGED: u32 = 2_000;

const CONTROLLER: &str = "example.org/ours";

fn index() -> Index {
    Index::new(kinds::all()).with_controllers([CONTROLLER.to_owned()])
}

fn identity(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("{}/{}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The objects after a history, and the index that saw it.
fn carry_out(seeds: &[u64]) -> (BTreeMap<String, Value>, Index) {
    let (mut world, mut index) = (BTreeMap::new(), index());
    for seed in seeds {
        let mut dice = Dice::new(*seed);
        let step = generate::step(&mut dice, &world);
        if seed.is_multiple_of(8) {
            difference::foretells(&mut index, &step, seed);
        }
        let before = snapshot::outputs(&index);
        let changes = match &step {
            Step::Apply(object) => {
                world.insert(identity(object), object.clone());
                index.observe(object).unwrap()
            }
            Step::Delete(object) => {
                world.remove(&identity(object));
                index.forget(object).unwrap()
            }
        };
        let after = snapshot::outputs(&index);
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
        let differing: BTreeSet<_> =
            keys.into_iter().filter(|key| before.get(key) != after.get(key)).collect();
        assert_eq!(
            changes.outputs, differing,
            "an event names exactly the outputs that it changed: {step:?}"
        );
    }
    (world, index)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: TOPOLOGIES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn incremental_equals_naive(seeds in prop::collection::vec(any::<u64>(), 1..32), order: u64) {
        let (world, index) = carry_out(&seeds);
        let objects: Vec<&Value> = world.values().collect();
        let expected = naive::compute(&objects, CONTROLLER);
        let found = snapshot::snapshot(&index);
        prop_assert_eq!(&found, &expected, "objects: {}", serde_json::to_string_pretty(&world).unwrap());

        // The order of events does not matter.
        let mut shuffled = objects;
        Dice::new(order).shuffle(&mut shuffled);
        let mut other = self::index();
        for object in shuffled {
            other.observe(object).unwrap();
        }
        prop_assert_eq!(&snapshot::snapshot(&other), &found);

        sources_are_policies_of_the_path(&index);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: DAMAGED, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_panic_on_any_spec(seed: u64, junk in generate::json()) {
        let mut index = index();
        let mut dice = Dice::new(seed);
        for _ in 0..8 {
            let mut object = generate::object(&mut dice);
            generate::damage(&mut dice, &mut object, &junk);
            // An object that cannot be identified is an error; one that does not decode is listed.
            let _ = index.observe(&object);
        }
        snapshot::snapshot(&index);
    }
}

/// An output's policies are exactly those of its path, and each rule of them acts or is replaced.
fn sources_are_policies_of_the_path(index: &Index) {
    for (key, effective) in index.outputs() {
        let Scope::Path(path) = &key.scope else { continue };
        let nodes: BTreeSet<_> = path.nodes().cloned().collect();
        let on_path: BTreeSet<_> = index
            .policies()
            .filter(|policy| !policy.is_deleting)
            .filter(|policy| {
                policy.id.kind == key.kind && policy.targets.iter().any(|own| nodes.contains(own))
            })
            .map(|policy| policy.id.clone())
            .collect();
        assert_eq!(effective.policies.iter().cloned().collect::<BTreeSet<_>>(), on_path);
        for policy in index.policies().filter(|policy| on_path.contains(&policy.id)) {
            let Some(block) = &policy.block else { continue };
            let lost: BTreeSet<_> = effective
                .replaced
                .iter()
                .filter(|own| own.policy == policy.id)
                .map(|own| &own.rule)
                .collect();
            let live: BTreeSet<_> = effective
                .rules
                .iter()
                .filter(|(_, rule)| rule.source == policy.id)
                .map(|(name, _)| name)
                .collect();
            assert!(live.is_disjoint(&lost));
            assert_eq!(live.union(&lost).copied().collect::<BTreeSet<_>>(), block.rules.keys().collect());
        }
    }
}
