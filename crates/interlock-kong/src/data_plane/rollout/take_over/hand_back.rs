//! A DataPlane that is handed back: its children as Kong's operator finds them, with its labels, owner and selectors,
//! and without ours.

use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, annotation, meta_str};
use interlock_core::effect::Effect;
use serde_json::{Value, json};

use super::field_managers;
use crate::data_plane::rollout::kept::{KeptChildren, forget};
use crate::data_plane::rollout::report::RolloutPhase;
use crate::data_plane::rollout::view::DataPlaneView;

/// Field manager that children are given back to where none of Kong's operator was found.
const UNKNOWN: &str = "before-first-apply";

/// Whether the status says that nothing is staged and no promotion goes on, as Kong's operator has to find it. `staged`
/// tells whether the spec differs from the live one.
pub fn is_at_rest(of: &DataPlaneView<'_>, staged: bool) -> bool {
    if !of.is_blue_green() {
        return true;
    }
    let rolled_out = of.rolled_out().filter(|found| found.observed_generation == Some(of.generation));
    !staged && rolled_out.is_some_and(|found| found.reason == RolloutPhase::Idle.reason())
}

/// The writes by which the children become Kong's operator's, and then those that forget what was kept.
pub fn hand_back<'c>(
    of: &DataPlaneView<'_>,
    kept: &KeptChildren,
    record: &Value,
    children: impl Iterator<Item = &'c Value>,
) -> Vec<Effect> {
    let manager = kept.managers.first().map_or(UNKNOWN, String::as_str);
    let children: Vec<Effect> = children.filter_map(|child| given_back(child, manager)).collect();
    if !children.is_empty() {
        return children;
    }
    // The history goes on where Interlock takes it over again.
    let patch = json!({"metadata": {"annotations": {meta::LIVE_REVISION: null}}});
    let resource_version = of.resource_version.to_owned();
    let recorded = annotation(of.object, meta::LIVE_REVISION).map(|_| Effect::Patch {
        key: of.key.clone(),
        resource_version,
        patch,
    });
    recorded.into_iter().chain(forget(of, record)).collect()
}

fn given_back(found: &Value, manager: &str) -> Option<Effect> {
    if annotation(found, meta::APPLIED_HASH).is_none() && !field_managers::has_ours(found) {
        return None;
    }
    Some(Effect::Patch {
        key: ObjectKey::of(found)?,
        resource_version: meta_str(found, "resourceVersion")?.to_owned(),
        patch: json!({"metadata": {
            "annotations": {meta::APPLIED_HASH: null, meta::FORMER_SIDE_KEPT: null},
            "managedFields": field_managers::given_back(found, manager),
        }}),
    })
}
