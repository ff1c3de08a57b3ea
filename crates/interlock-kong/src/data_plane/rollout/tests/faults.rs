//! Rules of self-healing and of the commit (`rollout` module, design section 6.2), switched off one at a time: what a
//! controller without the rule would read or write.

use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::{Effect, Propagation};
use serde_json::{Value, json};

use super::invariants::CERTIFICATE;
use super::scenarios::{BLUE, GREEN, INGRESS};
use super::world::{World, data_plane, is_terminating, selected};
use crate::api::labels;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::side::Colour;

/// A rule that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The live side is healed from the written spec, and not from the last-applied one.
    HealsFromWrittenSpec,
    /// The traffic is given to the new side before the commit.
    TrafficBeforeCommit,
    /// The live Service follows the commit even where the live side has no pods.
    TrafficWithoutPods,
    /// A decision on pods that are gone since is carried out.
    NoFence,
    /// Writes do not name the version that they were decided on.
    UnconditionalWrites,
    /// The former side stops with the commit, and not after the grace period.
    FormerSideStops,
    /// The older of two live Deployments wins, and not the committed one.
    OlderSideWins,
    /// A Deployment that is being deleted is taken for one that stays.
    AdoptsTerminating,
    /// The certificate is made again under another name, which the pod templates follow.
    CertificateUnderAnotherName,
    /// The autoscaler follows the preview.
    AutoscalerOfPreview,
    /// The disruption budget follows the preview.
    BudgetOfPreview,
    /// A child that was deleted is not made again.
    LeavesDeleted,
    /// A child that was edited by hand is left as it is. Only for a rollout with nothing to carry out.
    LeavesEdited,
}

impl Fault {
    /// The object that such a controller decides on.
    pub fn read(self, object: &Value) -> Value {
        let mut object = object.clone();
        let Some(text) = object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str() else {
            return object;
        };
        if self == Self::HealsFromWrittenSpec {
            let mut stamp: Value = serde_json::from_str(text).unwrap();
            stamp["spec"] = live_spec::after(None, &object["spec"]);
            stamp["hash"] = json!(SpecHash::of(&stamp["spec"].to_string()));
            object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
        }
        object
    }

    /// What it sees of a child.
    pub fn found(self, object: &Arc<Value>) -> Arc<Value> {
        let mut object = Arc::clone(object);
        if self == Self::AdoptsTerminating && is_terminating(&object) {
            let seen = Arc::make_mut(&mut object);
            seen["metadata"]["deletionTimestamp"] = Value::Null;
        }
        object
    }

    /// What it writes, of what the real one decided.
    pub fn written(self, world: &World, mut effects: Vec<Effect>) -> Vec<Effect> {
        let stamp = world.stamp();
        let committed = stamp["selector"].as_str().unwrap_or_default().to_owned();
        let [live, other] = sides(&committed);
        let makes = |colour: Colour| {
            let name = format!("dataplane-edge-{}", colour.as_str());
            move |effect: &Effect| match effect {
                Effect::Apply { object, .. } => {
                    object["kind"] == "Deployment" && meta_str(object, "name") == Some(&name)
                }
                _ => false,
            }
        };
        match self {
            Self::HealsFromWrittenSpec | Self::UnconditionalWrites | Self::AdoptsTerminating => {}
            Self::CertificateUnderAnotherName => {
                if world.child("Secret", OTHER_NAME).is_some() {
                    effects.retain_mut(|effect| secret(effect).is_none());
                }
                if effects.iter_mut().filter_map(secret).any(rename) {
                    let volume = json!({"name": "cluster-certificate", "secret": {"secretName": OTHER_NAME}});
                    let patch = json!({"spec": {"template": {"spec": {"volumes": [volume]}}}});
                    let pods = [BLUE, GREEN].map(|name| patched(world, "Deployment", name, patch.clone()));
                    effects.extend(pods.into_iter().flatten());
                }
            }
            Self::LeavesDeleted => leave(&mut effects, |version| version.is_none()),
            Self::LeavesEdited => leave(&mut effects, |version| version.is_some()),
            Self::TrafficBeforeCommit => {
                if let Some(at) = effects.iter().position(|effect| commits(effect, &committed)) {
                    effects.splice(at..at, traffic(world, other));
                }
            }
            Self::TrafficWithoutPods => {
                effects.retain(|effect| !is_fence(effect));
                if let Some(at) = effects.iter().position(makes(live)) {
                    effects.splice(at..at, traffic(world, live));
                }
            }
            Self::NoFence => effects.retain(|effect| !is_fence(effect)),
            Self::FormerSideStops => {
                for patch in effects.iter_mut().filter_map(set_aside) {
                    patch["spec"] = json!({"replicas": 0});
                }
            }
            Self::OlderSideWins => {
                if effects.iter_mut().any(|effect| set_aside(effect).is_some()) {
                    effects.extend(deletion(world, live));
                }
            }
            Self::AutoscalerOfPreview => {
                let name = format!("dataplane-edge-{}", other.as_str());
                let patch = json!({"spec": {"scaleTargetRef": {"name": name}}});
                if effects.iter().any(makes(other)) {
                    effects.extend(patched(world, "HorizontalPodAutoscaler", "edge", patch));
                }
            }
            Self::BudgetOfPreview => {
                let labels = json!({labels::SELECTOR: other.selector("u-1")});
                let patch = json!({"spec": {"selector": {"matchLabels": labels}}});
                if effects.iter().any(makes(other)) {
                    effects.extend(patched(world, "PodDisruptionBudget", "edge", patch));
                }
            }
        }
        effects
    }
}

/// Takes out what would be applied on an object of such a version, `None` where there is none, and the Events about it.
fn leave(effects: &mut Vec<Effect>, is_left: impl Fn(Option<&str>) -> bool) {
    effects.retain(|effect| match effect {
        Effect::Apply { object, .. } => !is_left(meta_str(object, "resourceVersion")),
        Effect::Create { object } => object["kind"] != "Secret" || !is_left(None),
        Effect::Event { .. } | Effect::Healed { .. } => false,
        _ => true,
    });
}

/// The name that a certificate is given which was made again.
const OTHER_NAME: &str = "dataplane-edge-certificate-2";

fn secret(effect: &mut Effect) -> Option<&mut Value> {
    match effect {
        Effect::Create { object } if meta_str(object, "name") == Some(CERTIFICATE) => Some(object),
        _ => None,
    }
}

fn rename(secret: &mut Value) -> bool {
    secret["metadata"]["name"] = json!(OTHER_NAME);
    true
}

/// The committed side and the other.
fn sides(committed: &str) -> [Colour; 2] {
    match committed == Colour::Green.selector("u-1") {
        true => [Colour::Green, Colour::Blue],
        false => [Colour::Blue, Colour::Green],
    }
}

fn commits(effect: &Effect, committed: &str) -> bool {
    let Effect::Patch { key, patch, .. } = effect else { return false };
    let stamp = &patch["metadata"]["annotations"][meta::LAST_APPLIED_SPEC];
    *key == data_plane() && stamp.as_str().is_some_and(|stamp| !stamp.contains(committed))
}

fn is_fence(effect: &Effect) -> bool {
    matches!(effect, Effect::Patch { patch, .. }
        if !patch["metadata"]["annotations"][meta::FORMER_SIDE_KEPT].is_null())
}

fn set_aside(effect: &mut Effect) -> Option<&mut Value> {
    let Effect::Patch { key, patch, .. } = effect else { return None };
    let is_label = patch["metadata"]["labels"][labels::DEPLOYMENT_STATE].is_string();
    (key.gvk.kind == "Deployment" && is_label).then_some(patch)
}

fn traffic(world: &World, to: Colour) -> Option<Effect> {
    let selector = to.selector("u-1");
    let service = world.child("Service", INGRESS).filter(|service| selected(service) != selector)?;
    let patch = json!({"spec": {"selector": {labels::SELECTOR: selector}}});
    patched(world, "Service", meta_str(service, "name")?, patch)
}

fn deletion(world: &World, colour: Colour) -> Option<Effect> {
    let found = world.child("Deployment", &format!("dataplane-edge-{}", colour.as_str()))?;
    let resource_version = meta_str(found, "resourceVersion")?.to_owned();
    let key = ObjectKey::of(found)?;
    Some(Effect::Delete { key, uid: String::new(), resource_version, propagation: Propagation::Background })
}

fn patched(world: &World, kind: &str, name: &str, patch: Value) -> Option<Effect> {
    let found = world.child(kind, name)?;
    let resource_version = meta_str(found, "resourceVersion")?.to_owned();
    Some(Effect::Patch { key: ObjectKey::of(found)?, resource_version, patch })
}
