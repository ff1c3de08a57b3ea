//! What tells two states of the exploration apart.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::explored::State;
use crate::api::meta;
use crate::effect::Effect;

/// What decides whether two states are the same: versions and times left out.
pub fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&state.budget, &state.harmed).hash(&mut hasher);
    for (key, object) in &state.world.objects {
        (&key.gvk.kind, &key.name).hash(&mut hasher);
        hash_lasting(object, &mut hasher);
    }
    // Of what was decided, it matters whether the version still holds, and not which one it is.
    let pending = state.pending.iter().flatten();
    pending
        .take_while(|effect| state.world.holds(effect))
        .for_each(|effect| hash_effect(effect, &mut hasher));
    state.pending.is_some().hash(&mut hasher);
    hasher.finish()
}

fn hash_effect(effect: &Effect, hasher: &mut DefaultHasher) {
    match effect {
        Effect::Apply { object, .. } | Effect::Create { object } => hash_lasting(object, hasher),
        Effect::Patch { key, patch, .. } => {
            (&key.gvk.kind, &key.name).hash(hasher);
            hash_lasting(patch, hasher);
        }
        Effect::Status { status, .. } => hash_lasting(status, hasher),
        Effect::Delete { key, .. } => (&key.gvk.kind, &key.name).hash(hasher),
        Effect::Event { .. } | Effect::Healed { .. } => {}
    }
}

/// Members that a state is told apart by neither when they change nor for how long they stand.
const PASSING: [&str; 7] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "observedGeneration",
    "lastTransitionTime",
    meta::LIVE_SINCE,
    meta::FORMER_SIDE_KEPT,
];

fn hash_lasting(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                name.hash(hasher);
                hash_lasting(member, hasher);
            }
            0_u8.hash(hasher);
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_lasting(item, hasher));
        }
        scalar => scalar.hash(hasher),
    }
}
