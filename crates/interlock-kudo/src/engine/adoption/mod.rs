//! Ownership of objects that exist already: whether a task may write one, and whether it is deleted
//! with the Instance.
//!
//! Owner references mark the objects that an Instance made, or KUDO's annotation and label where
//! references are impossible or lost. All others are foreign. The write is conditional on the
//! version that the decision has read, so an object recreated under the same name is decided anew.

use interlock_core::api::interlock::Adoption;
use interlock_core::api::map::{NotAMap, map_at};
use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, annotation, meta_str};
use serde_json::Value;

use super::run::InstanceId;
use super::sharing;
use crate::api::HeldObject;

/// Ownership of an existing object, relative to an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The Instance made it, or took it over: it is deleted with the Instance.
    Owned,
    /// Others made it, but tasks write it: it gets no owner reference and is not deleted.
    Adopted,
    /// Another Instance made this cluster-scoped object, but tasks write it.
    Shared,
    /// Tasks neither write nor delete it.
    Foreign(ForeignOwner),
}

/// Owner of a foreign object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignOwner {
    /// No Instance made it.
    Unmanaged,
    /// This Instance of the same namespace.
    Instance(String),
    /// This controller, as `KIND NAME`.
    Controller(String),
}

/// Ownership of an existing object.
pub fn ownership(current: &Value, instance: &InstanceId, adoption: Adoption) -> Ownership {
    match meta_str(current, "namespace") {
        Some(_) => namespaced(current, instance, adoption),
        None => cluster_scoped(current, instance, adoption),
    }
}

fn namespaced(current: &Value, instance: &InstanceId, adoption: Adoption) -> Ownership {
    let handed_over = annotation(current, meta::ADOPT) == Some(instance.name.as_str());
    let adopter = annotation(current, meta::ADOPTED_BY);
    if adopter == Some(instance.uid.as_str()) && !handed_over {
        return Ownership::Adopted;
    }
    match owner(current, instance) {
        Some(Reference::Ours) => return Ownership::Owned,
        Some(Reference::Of(owner @ ForeignOwner::Controller(_))) => {
            return if adoption == Adoption::Allow { Ownership::Adopted } else { Ownership::Foreign(owner) };
        }
        Some(Reference::Of(owner)) => return Ownership::Foreign(owner),
        None if handed_over => return Ownership::Owned,
        None => {}
    }
    let made = annotation(current, meta::LAST_APPLIED_CONFIGURATION).is_some();
    let label = current["metadata"]["labels"][meta::INSTANCE].as_str();
    match label.filter(|name| made && *name != instance.name) {
        Some(other) => Ownership::Foreign(ForeignOwner::Instance(other.to_owned())),
        None if made && adopter.is_none() => Ownership::Owned,
        None if adoption == Adoption::Allow => Ownership::Adopted,
        None => Ownership::Foreign(ForeignOwner::Unmanaged),
    }
}

/// The owner according to the owner references.
enum Reference {
    Ours,
    Of(ForeignOwner),
}

/// The owner reference that counts: ours, else that of another Instance, else that of a controller.
fn owner(current: &Value, instance: &InstanceId) -> Option<Reference> {
    let references = || current["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let text = |reference: &Value, field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    if references().any(|r| r["uid"] == instance.uid.as_str()) {
        return Some(Reference::Ours);
    }
    // One of the same name is a former one: the garbage collector deletes its objects.
    if let Some(other) = references().find(|r| is_instance(r)) {
        let former = other["name"] == instance.name.as_str();
        let owner = || Reference::Of(ForeignOwner::Instance(text(other, "name")));
        return Some(if former { Reference::Ours } else { owner() });
    }
    let controller = references().find(|r| r["controller"] == true)?;
    let name = format!("{} {}", text(controller, "kind"), text(controller, "name"));
    Some(Reference::Of(ForeignOwner::Controller(name)))
}

fn is_instance(reference: &Value) -> bool {
    let api_version = reference["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map(|(group, _)| group);
    reference["kind"] == "Instance" && group == Some(meta::KUDO_GROUP)
}

/// Whether an object belongs to another Instance that had the name of this one.
pub fn is_of_former(instance: &InstanceId, current: &Value) -> bool {
    let owners = current["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|r| {
        r["controller"] == true
            && r["kind"] == "Instance"
            && r["apiVersion"].as_str().is_some_and(|v| v.starts_with(meta::KUDO_GROUP))
            && r["name"] == instance.name.as_str()
            && r["uid"] != instance.uid.as_str()
    })
}

/// CustomResourceDefinitions, roles and namespaces are shared: Instances write them as KUDO does,
/// also those that none of them made, as long as they have no annotations.
fn cluster_scoped(current: &Value, instance: &InstanceId, adoption: Adoption) -> Ownership {
    let creator = sharing::creator(current);
    let handed_over = annotation(current, meta::ADOPT)
        .and_then(|to| to.split_once('/'))
        .is_some_and(|to| to == (&instance.namespace, &instance.name));
    if creator == Some(instance.uid.as_str()) || handed_over {
        return Ownership::Owned;
    }
    if creator.is_some() {
        return Ownership::Shared;
    }
    if annotation(current, meta::ADOPTED_BY).is_some() {
        return Ownership::Adopted;
    }
    if annotation(current, meta::LAST_APPLIED_CONFIGURATION).is_some() {
        // KUDO does not record the namespace of the Instance.
        let ours = current["metadata"]["labels"][meta::INSTANCE] == instance.name.as_str();
        let unshared = annotation(current, meta::SHARED_BY).is_none();
        return if ours && unshared { Ownership::Owned } else { Ownership::Shared };
    }
    let annotations = current["metadata"]["annotations"].as_object();
    if adoption == Adoption::Allow || annotations.is_none_or(serde_json::Map::is_empty) {
        Ownership::Adopted
    } else {
        Ownership::Foreign(ForeignOwner::Unmanaged)
    }
}

/// The desired object as it is written onto the existing one, which is not foreign.
///
/// # Errors
/// The metadata, annotations or labels of the desired object are not a map.
pub fn with_ownership(
    wanted: &Value,
    current: &Value,
    ownership: &Ownership,
    instance: &InstanceId,
) -> Result<Value, NotAMap> {
    let mut wanted = wanted.clone();
    let uid = instance.uid.as_str();
    let namespaced = meta_str(current, "namespace").is_some();
    match ownership {
        Ownership::Owned if namespaced => {}
        Ownership::Owned => sharing::write(&mut wanted, &sharing::with_creator(current, uid))?,
        Ownership::Shared => sharing::write(&mut wanted, &sharing::with_user(current, uid))?,
        Ownership::Adopted | Ownership::Foreign(_) => {
            map_at(&mut wanted, &["metadata"])?.remove("ownerReferences");
            map_at(&mut wanted, &["metadata", "labels"])?.remove(meta::INSTANCE_UID);
            let first = annotation(current, meta::ADOPTED_BY).filter(|_| !namespaced).unwrap_or(uid);
            map_at(&mut wanted, &["metadata", "annotations"])?
                .insert(meta::ADOPTED_BY.to_owned(), first.into());
        }
    }
    Ok(wanted)
}

/// Removes metadata about ownership from a rendered object: only the object's owner may set it.
pub fn strip(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata") else { return };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations
            .retain(|key, _| ![meta::ADOPT, meta::ADOPTED_BY, meta::SHARED_BY].contains(&key.as_str()));
    }
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        labels.remove(meta::INSTANCE_UID);
    }
}

/// An object as status and requests name it; `None` for a cluster-scoped one, which only its owner hands over.
pub fn held(key: &ObjectKey, current: &Value) -> Option<HeldObject> {
    key.namespace.as_ref()?;
    let uid = meta_str(current, "uid").unwrap_or_default().to_owned();
    Some(HeldObject { group: key.gvk.group.clone(), kind: key.gvk.kind.clone(), name: key.name.clone(), uid })
}

/// Why an object is not written, and the remedy.
pub fn not_adopted(key: &ObjectKey, owner: &ForeignOwner, instance: &InstanceId) -> String {
    let InstanceId { namespace, name, .. } = instance;
    let adopt = match key.namespace {
        Some(_) => format!("{}: {name}", meta::ADOPT),
        None => format!("{}: {namespace}/{name}", meta::ADOPT),
    };
    let allow = format!(
        "set adoption: Allow for namespace {namespace} in spec.instances.existingObjects of the Interlock object (it \
         is then updated and never deleted)"
    );
    let again = format!("then run `interlock plan retry {name} -n {namespace} --reason WHY`");
    match owner {
        ForeignOwner::Unmanaged if key.namespace.is_some() => format!(
            "{key} exists, and no Instance made it: `interlock plan adopt {name} -n {namespace} --reason WHY` takes it over (it is \
             then deleted with the Instance); or annotate it {adopt} to hand it over likewise, or {allow}; {again}"
        ),
        ForeignOwner::Unmanaged => format!(
            "{key} exists, and no Instance made it: annotate it {adopt} to hand it over (it is then deleted with the \
             Instance), or {allow}; {again}"
        ),
        ForeignOwner::Instance(other) => format!(
            "{key} exists, and is of Instance {other}: give one of the two another name; where Instance {other} is \
             gone, annotate the object {adopt}; {again}"
        ),
        ForeignOwner::Controller(controller) => format!(
            "{key} exists, and is controlled by {controller}: give it another name in the package, or {allow}; {again}"
        ),
    }
}

#[cfg(test)]
mod tests;
