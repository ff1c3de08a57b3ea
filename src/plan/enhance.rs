//! What is added to every object of a package: labels, annotations, namespace and owner (KUDO
//! `renderer/enhancer.go`, `renderer/consts.go`).

use serde_json::{Map, Value, json};

use crate::api::meta;
use crate::api::object::{Gvk, ObjectKey};
use crate::plan::errors::{TaskError, reason};
use crate::plan::render::Site;

/// Where pod templates are, by group and kind; a group of `*` stands for any.
const POD_TEMPLATES: [(&str, &str, &[&str]); 7] = [
    ("apps", "StatefulSet", &["spec", "template"]),
    ("apps", "Deployment", &["spec", "template"]),
    ("*", "ReplicaSet", &["spec", "template"]),
    ("*", "ReplicationController", &["spec", "template"]),
    ("*", "DaemonSet", &["spec", "template"]),
    ("batch", "Job", &["spec", "template"]),
    // KUDO writes a spec.template here as well, which the API server drops.
    ("batch", "CronJob", &["spec", "jobTemplate", "spec", "template"]),
];

/// An object as it is to be: with labels, annotations, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Its key.
    pub key: ObjectKey,
    /// The object, without [`meta::LAST_APPLIED_CONFIGURATION`].
    pub object: Value,
}

/// Makes a rendered object one of the Instance's.
pub fn enhance(site: &Site<'_>, mut object: Value, namespaced: bool) -> Result<Wanted, TaskError> {
    let fatal = |cause: String| TaskError::fatal(reason::ENHANCEMENT, cause);
    let gvk = Gvk::of(&object).ok_or_else(|| fatal("the object names no kind".to_owned()))?;
    labels(site, &gvk, &mut object)
        .map_err(|e| fatal(format!("fatal error: adding labels on parsed object: {e}")))?;
    annotations(site, &gvk, &mut object)
        .map_err(|e| fatal(format!("fatal error: adding annotations on parsed object {gvk}: {e}")))?;
    if namespaced {
        object["metadata"]["namespace"] = site.run.instance.namespace.clone().into();
        own(site, &mut object).map_err(|e| {
            fatal(format!("fatal error: setting controller reference on parsed object {gvk}: {e}"))
        })?;
    } else {
        let metadata = object["metadata"].as_object_mut();
        metadata.and_then(|metadata| metadata.remove("namespace"));
        let uid = [(meta::INSTANCE_UID, site.run.instance.uid.as_str())];
        add(&mut object, &["metadata", "labels"], &uid).map_err(fatal)?;
    }
    let key =
        ObjectKey::of(&object).ok_or_else(|| fatal("the object names no kind or no name".to_owned()))?;
    Ok(Wanted { key, object })
}

fn labels(site: &Site<'_>, gvk: &Gvk, object: &mut Value) -> Result<(), String> {
    let labels = [
        (meta::HERITAGE, meta::HERITAGE_VALUE),
        (meta::OPERATOR, site.run.package.operator()),
        (meta::INSTANCE, site.run.instance.name.as_str()),
    ];
    add(object, &["metadata", "labels"], &labels)?;
    for template in pod_templates(gvk) {
        add(object, &[template, &["metadata", "labels"]].concat(), &labels)?;
    }
    if (gvk.group.as_str(), gvk.kind.as_str()) == ("apps", "StatefulSet") {
        let claims = object.pointer_mut("/spec/volumeClaimTemplates").and_then(Value::as_array_mut);
        for claim in claims.into_iter().flatten().filter(|claim| claim.is_object()) {
            add(claim, &["metadata", "labels"], &labels)?;
        }
    }
    Ok(())
}

/// Plan, phase and step go on the object only: on a pod template they would restart the pods.
fn annotations(site: &Site<'_>, gvk: &Gvk, object: &mut Value) -> Result<(), String> {
    for template in pod_templates(gvk) {
        let version = [(meta::OPERATOR_VERSION, site.run.package.version())];
        add(object, &[template, &["metadata", "annotations"]].concat(), &version)?;
    }
    let annotations = [
        (meta::PLAN, site.run.plan),
        (meta::PHASE, site.phase),
        (meta::STEP, site.step),
        (meta::PLAN_UID, site.run.uid),
    ];
    add(object, &["metadata", "annotations"], &annotations)
}

fn pod_templates(gvk: &Gvk) -> impl Iterator<Item = &'static [&'static str]> {
    let matches = |(group, kind, _): &&(&str, &str, &[&str])| {
        (*group == "*" || *group == gvk.group) && *kind == gvk.kind
    };
    POD_TEMPLATES.iter().filter(matches).map(|(_, _, path)| *path).collect::<Vec<_>>().into_iter()
}

/// Sets entries of the map at a path, making what is missing on the way. A map of labels that
/// is none is left to the API server, which refuses it, as in KUDO.
fn add(object: &mut Value, path: &[&str], entries: &[(&str, &str)]) -> Result<(), String> {
    let mut at = object;
    for (i, name) in path.iter().enumerate() {
        let Value::Object(map) = at else {
            return Err(format!("value at .{} is not an object", path[..i].join(".")));
        };
        at = map.entry(*name).or_insert(Value::Null);
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
    }
    if let Value::Object(map) = at {
        map.extend(entries.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))));
    }
    Ok(())
}

/// Makes the Instance the controller of an object.
fn own(site: &Site<'_>, object: &mut Value) -> Result<(), String> {
    let instance = site.run.instance;
    let references = &mut object["metadata"]["ownerReferences"];
    if references.is_null() {
        *references = json!([]);
    }
    let Value::Array(references) = references else {
        return Err("metadata.ownerReferences is not a list".to_owned());
    };
    references.retain(|r| r["uid"] != instance.uid.as_str());
    if let Some(other) = references.iter().find(|r| r["controller"] == true) {
        return Err(format!("the template names another controller, {} {}", other["kind"], other["name"]));
    }
    references.push(json!({
        "apiVersion": meta::KUDO_API_VERSION,
        "kind": "Instance",
        "name": instance.name,
        "uid": instance.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    }));
    Ok(())
}
