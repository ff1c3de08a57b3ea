//! What holds in every state of a rollout, and in those at rest.

use serde_json::Value;

use super::events::{CHILDREN, State};
use super::scenarios::{BLUE, GREEN, INGRESS};
use super::world::{World, is_terminating, selected};
use crate::api::labels;

/// The Secret that the pods mount.
pub const CERTIFICATE: &str = "dataplane-edge-certificate";

/// The harm that a change did to the live side, which every state guards.
pub fn check(before: &State, after: &State) -> Result<(), &'static str> {
    let stamp = after.world.stamp();
    let Some(committed) = stamp["selector"].as_str() else { return Ok(()) };
    // What a person has just broken is not the controller's doing.
    let by_hand = after.harmed.is_some();
    match deployment(&after.world, committed) {
        Some(_) if by_hand => {}
        Some(live) if image(live) != recorded_image(&stamp) => {
            return Err("the live Deployment is not made from the recorded spec");
        }
        Some(live) if live["spec"]["replicas"] == 0 => return Err("the live Deployment has no pods"),
        None if !by_hand && deployment(&before.world, committed).is_some() => {
            return Err("the live Deployment was deleted by the controller");
        }
        _ => {}
    }
    dying(before, after, committed)?;
    let harmed = [before, after].map(|state| state.harmed.as_deref());
    if !harmed.into_iter().flatten().any(|name| [BLUE, GREEN].contains(&name)) {
        rolled(&before.world, &after.world, committed)?;
    }
    if by_hand {
        return Ok(());
    }
    let is_there = after.world.child("Service", INGRESS).is_some();
    if is_there && has_traffic(&before.world) && !has_traffic(&after.world) {
        return Err("the live Service selects nothing");
    }
    // Whatever leads to one side is given to the other only when that is committed.
    let moved = POINTERS.iter().any(|pointer| {
        let (from, to) = (pointer(&before.world), pointer(&after.world));
        from.is_some() && to.is_some() && from != to && to.as_deref() != Some(committed)
    });
    match moved {
        true => Err("a child of the live side is given to the side that is not committed"),
        false => Ok(()),
    }
}

/// Whatever a person deletes: neither the commit nor the traffic is given to a Deployment that is being deleted. One that
/// decided before the deletion, and writes late, is not bound to it.
fn dying(before: &State, after: &State, committed: &str) -> Result<(), &'static str> {
    let dies = |side: &str| deployment(&after.world, side).is_some_and(is_terminating);
    if before.pending.is_some() {
        return Ok(());
    }
    if before.world.stamp()["selector"] != committed && dies(committed) {
        return Err("the commit is given to a Deployment that is being deleted");
    }
    let to = |world: &World| world.child("Service", INGRESS).map(|found| selected(found).to_owned());
    match (to(&before.world), to(&after.world)) {
        (Some(from), Some(to)) if from != to && dies(&to) && has_traffic(&before.world) => {
            Err("the traffic is given to a Deployment that is being deleted")
        }
        _ => Ok(()),
    }
}

/// Whatever else a person does: the pods of the live side are replaced only for another spec.
fn rolled(before: &World, after: &World, committed: &str) -> Result<(), &'static str> {
    let template = |world| deployment(world, committed).map(|live| live["spec"]["template"].clone());
    let (former, now) = (template(before), template(after));
    let same = before.stamp() == after.stamp();
    match same && former.is_some() && now.is_some() && former != now {
        true => Err("the live pods are replaced though their spec is the same"),
        false => Ok(()),
    }
}

/// What points at one side: the Services of the live side, its disruption budget and its autoscaler. Each as the
/// selector of that side.
const POINTERS: [fn(&World) -> Option<String>; 4] = [
    |world| world.child("Service", INGRESS).map(|found| selected(found).to_owned()),
    |world| world.child("Service", "dataplane-admin-edge").map(|found| selected(found).to_owned()),
    |world| {
        let labels = &world.child("PodDisruptionBudget", "edge")?["spec"]["selector"]["matchLabels"];
        labels[labels::SELECTOR].as_str().map(str::to_owned)
    },
    |world| {
        let target = &world.child("HorizontalPodAutoscaler", "edge")?["spec"]["scaleTargetRef"]["name"];
        let deployment = world.child("Deployment", target.as_str()?)?;
        deployment["spec"]["selector"]["matchLabels"][labels::SELECTOR].as_str().map(str::to_owned)
    },
];

/// Whether a child that a person deleted or edited is as it shall be again.
pub fn is_right(world: &World, name: &str) -> bool {
    let stamp = world.stamp();
    let committed = stamp["selector"].as_str().unwrap_or_default();
    if [BLUE, GREEN].contains(&name) {
        let Some(found) = world.child("Deployment", name) else { return false };
        let is_live = selector(found) == committed;
        let is_as_recorded = image(found) == recorded_image(&stamp) && found["spec"]["replicas"] != 0;
        return !is_terminating(found) && (!is_live || is_as_recorded);
    }
    if name == CERTIFICATE {
        return world.child("Secret", CERTIFICATE).is_some();
    }
    let is_live = !name.ends_with("-preview");
    match CHILDREN.iter().find_map(|(kind, child)| world.child(kind, name).filter(|_| *child == name)) {
        Some(service) => !is_live || selected(service) == committed,
        None => false,
    }
}

/// Whether every child is there, and the live side is the committed one. A preview that waits for a promotion has
/// pods, and one with nothing staged has none.
pub fn is_whole(world: &World) -> bool {
    let preview = [BLUE, GREEN].into_iter().find_map(|name| {
        let found = world.child("Deployment", name)?;
        (selector(found) != world.stamp()["selector"].as_str()?).then_some(found)
    });
    let waits = world.rolled_out() == "AwaitingPromotion";
    CHILDREN.iter().all(|(_, name)| is_right(world, name))
        && (!world.has_authority || is_right(world, CERTIFICATE))
        && has_traffic(world)
        && preview.is_some_and(|preview| (preview["spec"]["replicas"] != 0) == waits)
}

fn deployment<'w>(world: &'w World, side: &str) -> Option<&'w Value> {
    [BLUE, GREEN]
        .iter()
        .find_map(|name| world.child("Deployment", name).filter(|found| selector(found) == side))
}

fn selector(deployment: &Value) -> &str {
    deployment["spec"]["selector"]["matchLabels"][labels::SELECTOR].as_str().unwrap_or_default()
}

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

fn recorded_image(stamp: &Value) -> &Value {
    &stamp["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["image"]
}

/// Whether the live Service selects pods.
fn has_traffic(world: &World) -> bool {
    let Some(service) = world.child("Service", INGRESS) else { return false };
    deployment(world, selected(service))
        .is_some_and(|found| found["status"]["availableReplicas"].as_i64().unwrap_or(0) > 0)
}
