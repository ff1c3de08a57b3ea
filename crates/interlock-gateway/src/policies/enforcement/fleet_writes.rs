//! What carries out the policies of a fleet is written: its EnvoyPatchPolicies, and the limits of its Limitador.

use std::collections::BTreeSet;
use std::fmt::Display;

use interlock_core::api::interlock::{LimitStore, Limitador};
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, annotation, meta_str};
use interlock_core::effect::Effect;
use interlock_core::reconcile::{Needs, View};
use serde_json::{Value, json};

use super::fleet::Fleet;
use super::names::{LIMITS, LIMITS_FILE, Patched, RENDERED, STANDBY};
use super::patches::MOST;
use super::rendering::StoredLimits;
use super::state::Wanted;
use super::writes::{applied, apply, has, metadata_of, owned, refused, surplus};
use crate::names as groups;

/// The version of Envoy Gateway's kinds.
const ENVOY_GATEWAY_VERSION: &str = "gateway.envoyproxy.io/v1alpha1";
/// The version of the kind Limitador.
const LIMITADOR_VERSION: &str = "limitador.kuadrant.io/v1alpha1";

/// Writes for a fleet.
pub(super) struct FleetWrites {
    pub(super) effects: Vec<Effect>,
    /// The first of each that the API server refuses, and why.
    pub(super) refused: Vec<(Patched, Option<String>)>,
}

/// What makes the outputs of the fleet of the object under review those that are wanted. `namespaces` may have its
/// EnvoyPatchPolicies.
pub(super) fn fleet_writes(
    view: &View<'_>,
    namespaces: &BTreeSet<String>,
    wanted: Option<&Wanted>,
) -> Result<FleetWrites, Needs> {
    let mut found = FleetWrites { effects: Vec::new(), refused: Vec::new() };
    for patched in Patched::ALL {
        let mut writes = patches(view, namespaces, wanted, patched)?;
        if let Some(Wanted { stored: Some((limitador, stored)), .. }) =
            wanted.filter(|_| patched == Patched::Limits)
        {
            writes.extend(limits(view, limitador, stored)?);
        }
        found.refused.push((patched, refused(view, &writes)));
        found.effects.extend(writes);
    }
    Ok(found)
}

/// What makes EnvoyPatchPolicies those that are wanted; nothing where those that are there stay.
fn patches(
    view: &View<'_>,
    namespaces: &BTreeSet<String>,
    wanted: Option<&Wanted>,
    patched: Patched,
) -> Result<Vec<Effect>, Needs> {
    let object = view.object();
    let mut all = Vec::new();
    if let Some(Wanted { rendered, .. }) = wanted {
        if rendered.is_kept(patched) {
            return Ok(Vec::new());
        }
        let fleet = &rendered.fleet;
        let patches = rendered.patches(patched).iter().flatten().enumerate();
        all.extend(patches.map(|(n, own)| patch(object, fleet, (patched, n), &n, own)));
        let standby = rendered.standby.iter().filter(|_| patched == Patched::Guards);
        all.extend(standby.map(|own| patch(object, fleet, (patched, MOST), &STANDBY, own)));
    }
    let uid = meta_str(object, "uid").unwrap_or_default();
    let mut present = Vec::new();
    for namespace in namespaces {
        let list = owned(ENVOY_GATEWAY_VERSION, "EnvoyPatchPolicy", namespace, patched.label(), uid);
        present.extend(view.list(&list)?.iter().cloned());
    }
    let mut effects = applied(view, &all, &present)?;
    effects.extend(surplus(&all, &present, |name| Patched::of_name(name) == Some(patched)));
    Ok(effects)
}

/// An EnvoyPatchPolicy, and where it stands among those of its kind.
fn patch(
    object: &Value,
    fleet: &Fleet,
    (patched, position): (Patched, usize),
    name: &dyn Display,
    (operations, hash): &(Vec<Value>, String),
) -> Value {
    json!({
        "apiVersion": ENVOY_GATEWAY_VERSION,
        "kind": "EnvoyPatchPolicy",
        "metadata": metadata_of(object, fleet.patch(patched, name), patched.label(), hash),
        "spec": {
            "targetRef": {"group": groups::GATEWAY_API, "kind": object["kind"], "name": object["metadata"]["name"]},
            "type": "JSONPatch",
            "priority": patched.priority() + i32::try_from(position).unwrap_or(i32::MAX / 2),
            "jsonPatches": operations,
        },
    })
}

/// The limits of a Limitador, where they differ from those that it has.
pub(super) fn limits(
    view: &View<'_>,
    limitador: &Limitador,
    stored: &StoredLimits,
) -> Result<Option<Effect>, Needs> {
    let (gvk, field, name) = match &limitador.store {
        LimitStore::ConfigMap(name) => (Gvk::new("v1", "ConfigMap"), ["data", LIMITS_FILE], name),
        LimitStore::Limitador(name) => (Gvk::new(LIMITADOR_VERSION, "Limitador"), ["spec", "limits"], name),
    };
    let NamespacedName { namespace, name } = name.clone();
    let key = ObjectKey { gvk, namespace: Some(namespace), name };
    let present = view.get(&key)?.map(AsRef::as_ref);
    let is_labelled = matches!(limitador.store, LimitStore::ConfigMap(_));
    let is_written = |own: &Value| {
        annotation(own, RENDERED) == Some(&stored.hash)
            && has(&own[field[0]][field[1]], &stored.content)
            && (!is_labelled || own["metadata"]["labels"][LIMITS] == "true")
    };
    match present {
        Some(own) if is_written(own) => return Ok(None),
        // Without limits, nothing is made.
        None if stored.is_empty || !is_labelled => return Ok(None),
        _ => {}
    }
    let mut object = json!({
        "apiVersion": key.gvk.api_version(), "kind": key.gvk.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "annotations": {RENDERED: stored.hash}},
        field[0]: {field[1]: stored.content},
    });
    if is_labelled {
        object["metadata"]["labels"] = json!({LIMITS: "true"});
    }
    Ok(Some(apply(object, present)))
}
