//! The children that a DataPlane shall have: which, made from which spec, and what is written where one is missing
//! or different.

use interlock_core::api::canonical;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey, annotation, meta_str};
use interlock_core::api::ownership::{is_applied, is_of};
use interlock_core::api::stamp::SpecHash;
use interlock_core::effect::{Effect, HealCause, Severity};
use serde_json::{Value, json};

use super::children;
use super::children::{DataPlaneOwner, InvalidTemplate};
use super::drift;
use super::live_record::LiveSide;
use super::side::{Colour, SideState};
use super::view::DataPlaneView;
use crate::api::labels;
use crate::data_plane::rollout::drift::added;

/// What a child is to its DataPlane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChildRole {
    /// The Service by which the live pods are configured.
    LiveAdmin,
    /// The Service that the traffic comes through.
    LiveIngress,
    /// The Deployment of the pods that have the traffic.
    LiveDeployment,
    /// The HorizontalPodAutoscaler of the live pods.
    Autoscaler,
    /// The PodDisruptionBudget of the live pods.
    Budget,
    /// The Service by which the pods of the preview are configured.
    PreviewAdmin,
    /// The Service to try the preview by.
    PreviewIngress,
    /// The Deployment of the pods that wait for a promotion.
    PreviewDeployment,
}

impl ChildRole {
    /// All of them, in the order in which they are written: the live side first.
    pub const ALL: [Self; 8] = [
        Self::LiveAdmin,
        Self::LiveIngress,
        Self::LiveDeployment,
        Self::Autoscaler,
        Self::Budget,
        Self::PreviewAdmin,
        Self::PreviewIngress,
        Self::PreviewDeployment,
    ];

    /// Whether it belongs to the live side.
    pub fn is_live(self) -> bool {
        !matches!(self, Self::PreviewDeployment | Self::PreviewIngress | Self::PreviewAdmin)
    }

    /// Its key. The names of ingress Services may be fixed by a spec.
    pub fn key(self, owner: &DataPlaneOwner, colour: Colour, spec: &Value) -> ObjectKey {
        let name = &owner.name;
        let deployment = |colour| owner.identity(colour).name;
        let ingress = |state| {
            // The function that makes the Service reports an invalid name.
            let fixed = children::ingress_service_name(owner, spec, state);
            fixed.unwrap_or_else(|_| owner.ingress_name(state))
        };
        let (api_version, kind, name) = match self {
            Self::LiveDeployment => ("apps/v1", "Deployment", deployment(colour)),
            Self::PreviewDeployment => ("apps/v1", "Deployment", deployment(colour.other())),
            Self::LiveIngress => ("v1", "Service", ingress(SideState::Live)),
            Self::PreviewIngress => ("v1", "Service", ingress(SideState::Preview)),
            Self::LiveAdmin => ("v1", "Service", owner.admin_name(SideState::Live)),
            Self::PreviewAdmin => ("v1", "Service", owner.admin_name(SideState::Preview)),
            Self::Budget => ("policy/v1", "PodDisruptionBudget", name.clone()),
            Self::Autoscaler => ("autoscaling/v2", "HorizontalPodAutoscaler", name.clone()),
        };
        ObjectKey { gvk: Gvk::new(api_version, kind), namespace: Some(owner.namespace.clone()), name }
    }
}

/// Replicas of the live Deployment: `None` where an autoscaler has them. `reported` = how many there were.
pub fn live_replicas(spec: &Value, found: Option<&Value>, reported: i32) -> Option<i32> {
    let deployment = &spec["deployment"];
    let Some(scaling) = deployment["scaling"]["horizontal"].as_object() else {
        return Some(number(&deployment["replicas"]).unwrap_or(1));
    };
    let least = scaling.get("minReplicas").and_then(number).unwrap_or(1);
    match found {
        Some(found) if is_scaled_by_another(found) => None,
        // Until the autoscaler has them, the count of pods does not fall.
        Some(found) => Some(number(&found["spec"]["replicas"]).unwrap_or(least).max(least)),
        None => Some(least.max(reported)),
    }
}

/// Replicas of a preview that has pods: at least as many as are live.
pub fn preview_replicas(spec: &Value, live: Option<&Value>) -> i32 {
    let wanted = live_replicas(spec, None, 0).unwrap_or(1);
    live.and_then(|live| number(&live["spec"]["replicas"])).unwrap_or(0).max(wanted)
}

fn number(value: &Value) -> Option<i32> {
    i32::try_from(value.as_i64()?).ok()
}

/// Whether another field manager, such as an autoscaler, owns the replicas.
fn is_scaled_by_another(deployment: &Value) -> bool {
    let entries = deployment["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut others = entries.filter(|entry| !is_of_interlock(entry));
    others.any(|entry| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null())
}

/// The body of a child of the live side; `None` where the spec asks for none. `selector` = of the pods that its
/// Services have to select now, `reported` = how many pods there were.
pub fn live(
    owner: &DataPlaneOwner,
    child: ChildRole,
    live: &LiveSide,
    selector: &str,
    found: Option<&Value>,
    reported: i32,
) -> Result<Option<Value>, InvalidTemplate> {
    let spec = &live.spec;
    match child {
        ChildRole::LiveAdmin => Ok(Some(children::admin_service(owner, SideState::Live, selector))),
        ChildRole::LiveIngress => children::ingress_service(owner, spec, SideState::Live, selector).map(Some),
        ChildRole::LiveDeployment => {
            let replicas = live_replicas(spec, found, reported);
            deployment(owner, spec, live.colour, SideState::Live, replicas).map(Some)
        }
        ChildRole::Autoscaler => children::autoscaler(owner, spec, &owner.identity(live.colour).name),
        ChildRole::Budget => children::disruption_budget(owner, spec, &live.selector),
        ChildRole::PreviewAdmin | ChildRole::PreviewIngress | ChildRole::PreviewDeployment => Ok(None),
    }
}

/// The body of a child of the preview.
pub fn preview(
    owner: &DataPlaneOwner,
    child: ChildRole,
    colour: Colour,
    spec: &Value,
    replicas: i32,
) -> Result<Option<Value>, InvalidTemplate> {
    let selector = owner.selector(colour);
    match child {
        ChildRole::PreviewAdmin => Ok(Some(children::admin_service(owner, SideState::Preview, &selector))),
        ChildRole::PreviewIngress => {
            children::ingress_service(owner, spec, SideState::Preview, &selector).map(Some)
        }
        ChildRole::PreviewDeployment => {
            deployment(owner, spec, colour, SideState::Preview, Some(replicas)).map(Some)
        }
        _ => Ok(None),
    }
}

fn deployment(
    owner: &DataPlaneOwner,
    spec: &Value,
    colour: Colour,
    state: SideState,
    replicas: Option<i32>,
) -> Result<Value, InvalidTemplate> {
    let certificate = owner.certificate_name();
    children::deployment(owner, spec, &owner.identity(colour), state, replicas, Some(&certificate))
}

/// How a found child stands to the wanted one.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildState {
    /// It is as it shall be.
    AsWanted,
    /// It is being deleted: it is made again when it is gone.
    Terminating,
    /// The object of that name has another owner.
    Foreign,
    /// It is not there.
    Missing,
    /// It was made from another spec.
    Outdated,
    /// Another field manager changed this field.
    Edited(String),
    /// Another field manager added this variable of Kong, or this port.
    Extended(String),
}

/// Compares a child with its body.
pub fn state(of: &DataPlaneView<'_>, body: &Value, found: Option<&Value>) -> ChildState {
    let Some(found) = found else { return ChildState::Missing };
    if !is_ours(of, found) {
        return ChildState::Foreign;
    }
    if meta_str(found, "deletionTimestamp").is_some() {
        return ChildState::Terminating;
    }
    if let Some(added) = added::port(body, found) {
        return ChildState::Extended(added);
    }
    if annotation(found, meta::APPLIED_HASH) != Some(hash(body).short()) || !is_applied(found) {
        return ChildState::Outdated;
    }
    if let Some(added) = added::variable(body, found) {
        return ChildState::Extended(added);
    }
    match drift::differs(body, found) {
        // An admission plugin has it so: to apply it again would change nothing.
        Some(_) if drift::owns_all(found, body, meta::APPLY_MANAGER) => ChildState::AsWanted,
        Some(field) => ChildState::Edited(field),
        None => ChildState::AsWanted,
    }
}

/// Whether this process made an object for the DataPlane.
fn is_ours(of: &DataPlaneView<'_>, found: &Value) -> bool {
    is_of(of.uid, found)
}

fn is_of_interlock(entry: &Value) -> bool {
    entry["manager"] == meta::APPLY_MANAGER || entry["manager"] == meta::FIELD_MANAGER
}

fn hash(body: &Value) -> SpecHash {
    SpecHash::of(&canonical::canonical(&body.to_string()))
}

/// The write that makes a child as it shall be; `None` where there is nothing to write now.
pub fn apply(body: &Value, state: &ChildState, found: Option<&Value>) -> Option<Effect> {
    let mut object = body.clone();
    let annotations = &mut object["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[meta::APPLIED_HASH] = json!(hash(body).short());
    match state {
        ChildState::AsWanted | ChildState::Terminating | ChildState::Foreign => return None,
        ChildState::Missing => {}
        ChildState::Extended(_) => return added::removal(body, found?),
        ChildState::Outdated | ChildState::Edited(_) => {
            for condition in ["resourceVersion", "uid"] {
                object["metadata"][condition] = found?["metadata"][condition].clone();
            }
        }
    }
    Some(Effect::Apply { object, force: true })
}

/// Deletes a child that is not wanted any more, if it is ours.
pub fn delete(of: &DataPlaneView<'_>, key: ObjectKey, found: Option<&Value>) -> Option<Effect> {
    let found = found.filter(|found| is_ours(of, found))?;
    if meta_str(found, "deletionTimestamp").is_some() {
        return None;
    }
    Some(Effect::delete_of(key, found))
}

/// Marks the former side as the preview, and leaves its pods as they are.
pub fn set_aside(of: &DataPlaneView<'_>, key: ObjectKey, found: Option<&Value>) -> Option<Effect> {
    let label = labels::DEPLOYMENT_STATE;
    let found = found.filter(|found| is_ours(of, found))?;
    if found["metadata"]["labels"][label] == SideState::Preview.as_str() {
        return None;
    }
    Effect::patch_of(key, found, json!({"metadata": {"labels": {label: SideState::Preview.as_str()}}}))
}

/// Gives a Service that keeps the former side another version, before the live Deployment is made again: a process that
/// decided to give it to the live side while that had pods, and writes late, meets a conflict.
pub fn keep_with_former_side(key: ObjectKey, found: &Value) -> Option<Effect> {
    // A value that the Service cannot have yet: a patch that changes nothing gives no version.
    let version = meta_str(found, "resourceVersion")?;
    Effect::patch_of(key, found, json!({"metadata": {"annotations": {meta::FORMER_SIDE_KEPT: version}}}))
}

/// The Event about a child of the live side that was put right.
pub fn healed(
    of: &DataPlaneView<'_>,
    key: &ObjectKey,
    state: &ChildState,
    found: Option<&Value>,
) -> Option<Effect> {
    let child = format!("{} {}", key.gvk.kind, key.name);
    let (reason, message) = match state {
        ChildState::Missing => (
            meta::event::LIVE_CHILD_RECREATED,
            format!("{child} was gone and is made again from the last-applied spec{}", address_note(key)),
        ),
        ChildState::Edited(field) => {
            let who = found.and_then(last_editor).map(|who| format!(" by {who}")).unwrap_or_default();
            (meta::event::LIVE_CHILD_RESTORED, format!("{field} of {child} was changed{who} and is set back"))
        }
        ChildState::Extended(variable) => {
            let who = found.and_then(last_editor).map(|who| format!(" by {who}")).unwrap_or_default();
            (
                meta::event::LIVE_CHILD_RESTORED,
                format!("{child} was given {variable}{who}, which is taken away again"),
            )
        }
        ChildState::AsWanted | ChildState::Terminating | ChildState::Foreign | ChildState::Outdated => {
            return None;
        }
    };
    Some(of.event(Severity::Warning, reason, message))
}

fn address_note(key: &ObjectKey) -> &'static str {
    if key.gvk.kind == "Service" { "; its address may be another one" } else { "" }
}

/// The field manager that wrote an object last, other than Kubernetes and this process.
fn last_editor(object: &Value) -> Option<&str> {
    let entries = object["metadata"]["managedFields"].as_array()?.iter();
    let people = |entry: &&Value| {
        !is_of_interlock(entry)
            && entry["manager"] != "kube-controller-manager"
            && entry["subresource"] != "status"
    };
    let others = entries.filter(people);
    others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?["manager"].as_str()
}

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
