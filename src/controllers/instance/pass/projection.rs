//! Projection: the state if all writes succeed, which shows how far a run can get with one proof.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::effect::Effect;
use interlock_core::reconcile::{Facts, Lookup, Needs};
use interlock_kudo::engine::lookup::Observed;
use serde_json::Value;

/// The observed state plus the expected answers of planned writes.
pub(super) struct Projection(Observed);

impl From<&Observed> for Projection {
    fn from(observed: &Observed) -> Self {
        Self(observed.clone())
    }
}

impl Projection {
    /// Hands the state to another thread, until [`Self::take_back`].
    pub(super) fn lend(&mut self) -> Observed {
        std::mem::take(&mut self.0)
    }

    /// Takes the state back.
    pub(super) fn take_back(&mut self, observed: Observed) {
        self.0 = observed;
    }

    /// Adds the results of lookups.
    pub(super) fn see(&mut self, observed: &Facts, needs: &Needs) {
        let facts = &mut self.0.facts;
        copy(&mut facts.kinds, &observed.kinds, &needs.kinds);
        copy(&mut facts.digests, &observed.digests, &needs.digests);
        copy(&mut facts.pod_failures, &observed.pod_failures, &needs.pod_failures);
        copy(&mut facts.files, &observed.files, &needs.files);
        for keys in [&needs.objects, &needs.certainly] {
            keys.iter().for_each(|key| drop(facts.failures.remove(key)));
            copy(&mut facts.objects, &observed.objects, keys);
            copy(&mut facts.failures, &observed.failures, keys);
        }
        if needs.inventory {
            facts.inventory.clone_from(&observed.inventory);
        }
    }

    /// Adds the expected answer of a write.
    pub(super) fn write(&mut self, write: Effect) {
        let Some(key) = write.key() else { return };
        let seen = match write {
            Effect::Create { object } => Some(Arc::new(object)),
            Effect::Patch { patch, .. } => self.0.facts.get(&key).ok().flatten().map(|current| {
                let mut object = Value::clone(current);
                json_patch::merge(&mut object, &patch);
                Arc::new(object)
            }),
            Effect::Delete { .. } => None,
            // The engine wants none of these: a run ends at what they would answer.
            Effect::Apply { .. } | Effect::Status { .. } | Effect::Event { .. } | Effect::Healed { .. } => {
                return;
            }
        };
        self.0.facts.objects.insert(key, seen.map_or(Lookup::Absent, Lookup::Found));
    }
}

/// Copies what there is of these keys.
fn copy<K: Ord + Clone, V: Clone>(to: &mut BTreeMap<K, V>, from: &BTreeMap<K, V>, keys: &BTreeSet<K>) {
    to.extend(keys.iter().filter_map(|key| Some((key.clone(), from.get(key)?.clone()))));
}
