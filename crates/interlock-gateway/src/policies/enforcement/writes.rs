//! Objects that Interlock writes, and those that are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::reconcile::{Needs, ObjectList, View};
use interlock_core::rejection::Rejection;
use serde_json::{Value, json};

use super::names::RENDERED;

/// The label of objects that Interlock makes.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "interlock");

/// The objects of a kind that are of the Gateway or GatewayClass of that uid, by the label.
pub(super) fn owned(version: &str, kind: &str, namespace: &str, label: &str, uid: &str) -> ObjectList {
    ObjectList {
        gvk: Gvk::new(version, kind),
        namespace: namespace.to_owned(),
        labels: BTreeMap::from([(label.to_owned(), uid.to_owned())]),
    }
}

/// The metadata of an object that goes with the one that it is made for.
pub(super) fn metadata_of(
    object: &Value,
    NamespacedName { namespace, name }: NamespacedName,
    label: &str,
    hash: &str,
) -> Value {
    let metadata = &object["metadata"];
    json!({
        "name": name,
        "namespace": namespace,
        "labels": {MANAGED_BY.0: MANAGED_BY.1, label: metadata["uid"]},
        "annotations": {RENDERED: hash},
        "ownerReferences": [{
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "name": metadata["name"], "uid": metadata["uid"],
        }],
    })
}

/// The first of these writes that the API server refuses, and why.
pub(super) fn refused(view: &View<'_>, effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| named_refusal(view, effect)).map(|(_, why)| why)
}

/// The object of a write that the API server refuses, and why.
pub(super) fn named_refusal(view: &View<'_>, effect: &Effect) -> Option<(NamespacedName, String)> {
    let (key, refused) = view.refused_write(effect)?;
    let name = NamespacedName::new(key.namespace.as_deref().unwrap_or_default(), &key.name);
    let rejection = Rejection::of(&refused.failure);
    let why = format!("{} {name}, which cannot be written ({})", key.gvk.kind, rejection.message);
    Some((name, why))
}

/// What writes the wanted objects that are not there, or not so. One may be there without our label.
pub(super) fn applied(
    view: &View<'_>,
    wanted: &[Value],
    present: &[Arc<Value>],
) -> Result<Vec<Effect>, Needs> {
    let mut effects = Vec::new();
    for object in wanted {
        let Some(key) = ObjectKey::of(object) else { continue };
        let own = present.iter().find(|own| ObjectKey::of(own).as_ref() == Some(&key));
        let own = match own {
            Some(own) => Some(own),
            None => view.get(&key)?,
        };
        if !own.is_some_and(|own| has(own, object)) {
            effects.push(apply(object.clone(), own.map(AsRef::as_ref)));
        }
    }
    Ok(effects)
}

/// The deletion of present objects that are not wanted, and have a name of ours.
pub(super) fn surplus(
    wanted: &[Value],
    present: &[Arc<Value>],
    is_ours: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Effect> {
    let key = |object: &Value| ObjectKey::of(object);
    let is_ours = move |own: &&Arc<Value>| meta_str(own, "name").is_some_and(&is_ours);
    let is_there = |own: &&Arc<Value>| own["metadata"]["deletionTimestamp"].is_null();
    let surplus = present.iter().filter(is_ours).filter(is_there);
    let surplus = surplus.filter(move |own| !wanted.iter().any(|object| key(object) == key(own)));
    surplus.filter_map(move |own| Some(Effect::delete_of(key(own)?, own)))
}

pub(super) fn apply(mut object: Value, present: Option<&Value>) -> Effect {
    if let Some(present) = present {
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = present["metadata"][field].clone();
        }
    }
    Effect::Apply { object, force: true }
}

/// Whether a list has all members that are wanted, beside others.
fn has_members(present: &Value, wanted: &Value) -> bool {
    let present = present.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut wanted = wanted.as_array().into_iter().flatten();
    wanted.all(|own| present.iter().any(|other| has(other, own)))
}

/// Whether an object has all that is wanted of it. Lists are whole; what the API server adds to their members is not
/// looked at.
pub(super) fn has(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            present.get(name).is_some_and(|own| match name.as_str() {
                "ownerReferences" => has_members(own, wanted),
                _ => has(own, wanted),
            })
        }),
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len() && present.iter().zip(wanted).all(|(own, wanted)| has(own, wanted))
        }
        _ => present == wanted,
    }
}
