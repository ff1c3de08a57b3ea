//! What tells two states of the exploration apart.

use std::hash::{DefaultHasher, Hash, Hasher};

use interlock_core::api::meta;
use interlock_core::effect::Effect;
use serde_json::Value;

use super::events::State;

/// What decides whether two states are the same: versions and times left out.
pub fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&state.budget, &state.harmed).hash(&mut hasher);
    for (key, object) in &state.world.objects {
        (&key.gvk.kind, &key.name).hash(&mut hasher);
        hash_lasting(object, &object["metadata"]["generation"], &mut hasher);
    }
    for (key, shown) in &state.world.unseen {
        (&key.gvk.kind, &key.name, shown.is_some()).hash(&mut hasher);
        let shown = shown.as_deref().unwrap_or(&Value::Null);
        hash_lasting(shown, &shown["metadata"]["generation"], &mut hasher);
    }
    // Of what was decided, it matters whether the version still holds, and not which one it is.
    let pending = state.pending.iter().flatten();
    let generation = &state.world.get()["metadata"]["generation"];
    pending
        .take_while(|effect| state.world.holds(effect))
        .for_each(|effect| hash_effect(effect, generation, &mut hasher));
    state.pending.is_some().hash(&mut hasher);
    hasher.finish()
}

fn hash_effect(effect: &Effect, generation: &Value, hasher: &mut DefaultHasher) {
    match effect {
        Effect::Apply { object, .. } | Effect::Create { object } => hash_lasting(object, generation, hasher),
        Effect::Patch { key, patch, .. } => {
            (&key.gvk.kind, &key.name).hash(hasher);
            hash_lasting(patch, generation, hasher);
        }
        Effect::Status { status, .. } => hash_lasting(status, generation, hasher),
        Effect::Delete { key, .. } => (&key.gvk.kind, &key.name).hash(hasher),
        Effect::Event { .. } | Effect::Healed { .. } => {}
    }
}

/// Members that do not distinguish states: versions, times, and who wrote.
const PASSING: [&str; 6] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "lastTransitionTime",
    meta::LIVE_SINCE,
    meta::FORMER_SIDE_KEPT,
];

/// Of a generation that was observed, it matters whether it is the current one.
fn hash_lasting(value: &Value, generation: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                name.hash(hasher);
                match name.as_str() {
                    "observedGeneration" => (member == generation).hash(hasher),
                    _ => hash_lasting(member, generation, hasher),
                }
            }
            0_u8.hash(hasher);
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_lasting(item, generation, hasher));
        }
        scalar => scalar.hash(hasher),
    }
}
