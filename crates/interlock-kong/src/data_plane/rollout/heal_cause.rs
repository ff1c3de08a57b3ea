//! Why a child of the live side was put right, as metrics count it.

use interlock_core::api::object::ObjectKey;
use interlock_core::effect::{Effect, HealCause};

use super::wanted::ChildState;

/// What to count once a child of the live side, found in this state, is written; `None` where it is not put right
/// but brought to another spec.
pub fn counted(key: &ObjectKey, state: &ChildState) -> Option<Effect> {
    let cause = match state {
        ChildState::Missing => HealCause::Deleted,
        ChildState::Edited(_) => HealCause::Edited,
        ChildState::Extended(_) => HealCause::Added,
        ChildState::AsWanted | ChildState::Terminating | ChildState::Foreign | ChildState::Outdated => {
            return None;
        }
    };
    Some(Effect::Healed { kind: key.gvk.kind.clone(), cause })
}
