//! The field managers of a child (`metadata.managedFields`): which are those of Kong's operator, and whose its fields
//! become.
//!
//! A field that Kong's operator alone has would stay when a later apply leaves it out. So its entries become ours, which
//! changes no field, and theirs again when a DataPlane is handed back.

use interlock_core::api::meta;
use serde_json::{Map, Value, json};

use crate::api::labels;

/// Annotation of pod templates that `kubectl rollout restart` writes: the last writer owns it.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The annotations of an object, as a JSON pointer into fields.
const OF_OBJECT: &str = "/f:metadata/f:annotations";
/// Those of the pods of a Deployment.
const OF_PODS: &str = "/f:spec/f:template/f:metadata/f:annotations";

fn entries(found: &Value) -> impl Iterator<Item = &Value> {
    let all = found["metadata"]["managedFields"].as_array().into_iter().flatten();
    all.filter(|entry| entry["subresource"].is_null())
}

fn is_ours(entry: &Value) -> bool {
    entry["manager"] == meta::APPLY_MANAGER || entry["manager"] == meta::FIELD_MANAGER
}

fn is_one_of(entry: &Value, managers: &[String]) -> bool {
    entry["manager"].as_str().is_some_and(|manager| managers.iter().any(|one| one == manager))
}

/// The managers, other than Interlock, that gave a child the label by which Kong's operator finds it.
pub fn makers(found: &Value) -> impl Iterator<Item = &str> {
    let label = format!("f:{}", labels::MANAGED_BY);
    let makes = move |entry: &&Value| {
        !is_ours(entry) && !entry["fieldsV1"]["f:metadata"]["f:labels"][label.as_str()].is_null()
    };
    entries(found).filter(makes).filter_map(|entry| entry["manager"].as_str())
}

/// When one of these managers wrote a field of a child last that is not to stay its own.
pub fn last_write<'f>(found: &'f Value, managers: &[String]) -> Option<&'f str> {
    let theirs = entries(found).filter(|entry| is_one_of(entry, managers));
    let held = theirs.filter(|entry| {
        let (_, taken) = split(&entry["fieldsV1"]);
        !is_empty(&taken)
    });
    held.map(|entry| entry["time"].as_str().unwrap_or_default()).max()
}

/// The entries with those of these managers as ours, except for annotations that are theirs alone.
pub fn taken(found: &Value, managers: &[String]) -> Vec<Value> {
    let mut after = Entries::default();
    for entry in all(found) {
        let is_plain = entry["subresource"].is_null();
        if is_plain && is_one_of(entry, managers) {
            let (own, taken) = split(&entry["fieldsV1"]);
            if !is_empty(&own) {
                after.add(entry, &entry["manager"], &entry["operation"], own);
            }
            if !is_empty(&taken) {
                after.add(entry, &json!(meta::APPLY_MANAGER), &json!("Apply"), taken);
            }
        } else {
            after.keep(entry);
        }
    }
    after.0
}

/// The entries with ours as those of a manager.
pub fn given_back(found: &Value, manager: &str) -> Vec<Value> {
    let mut after = Entries::default();
    for entry in all(found) {
        if entry["subresource"].is_null() && is_ours(entry) {
            let mut fields = entry["fieldsV1"].clone();
            if let Some(annotations) = fields.pointer_mut(OF_OBJECT).and_then(Value::as_object_mut) {
                annotations.remove(&format!("f:{}", meta::APPLIED_HASH));
            }
            after.add(entry, &json!(manager), &json!("Update"), fields);
        } else {
            after.keep(entry);
        }
    }
    after.0
}

/// Whether an entry of a child is ours.
pub fn has_ours(found: &Value) -> bool {
    entries(found).any(is_ours)
}

fn all(found: &Value) -> impl Iterator<Item = &Value> {
    found["metadata"]["managedFields"].as_array().into_iter().flatten()
}

/// Entries, one for each manager, operation, version and subresource, as the API server has them.
#[derive(Default)]
struct Entries(Vec<Value>);

impl Entries {
    fn keep(&mut self, entry: &Value) {
        if !entry.is_object() {
            return;
        }
        let (manager, operation) = (&entry["manager"], &entry["operation"]);
        self.add(entry, manager, operation, entry["fieldsV1"].clone());
    }

    fn add(&mut self, from: &Value, manager: &Value, operation: &Value, fields: Value) {
        let mut added = from.clone();
        added["manager"] = manager.clone();
        added["operation"] = operation.clone();
        let is_same = |entry: &&mut Value| {
            ["manager", "operation", "apiVersion", "subresource"]
                .iter()
                .all(|part| entry[*part] == added[*part])
        };
        match self.0.iter_mut().find(is_same) {
            Some(entry) => join(&mut entry["fieldsV1"], fields),
            None => {
                added["fieldsV1"] = fields;
                self.0.push(added);
            }
        }
    }
}

/// Adds fields to fields.
fn join(into: &mut Value, fields: Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (name, below) in fields {
                join(into.entry(name).or_insert_with(|| json!({})), below);
            }
        }
        (into, fields) if into.is_null() => *into = fields,
        _ => {}
    }
}

/// The fields that stay those of Kong's operator, its own annotations and the time of a restart, and the others but
/// finalizers, which no apply states.
fn split(fields: &Value) -> (Value, Value) {
    let (prefix, restarted) = (format!("f:{}", labels::PREFIX), format!("f:{RESTARTED_AT}"));
    let (mut own, mut taken) = (json!({}), fields.clone());
    let kept = take(&mut taken, OF_OBJECT, |name| name.starts_with(&prefix));
    if !kept.is_empty() {
        own["f:metadata"] = json!({ "f:annotations": kept });
    }
    let kept = take(&mut taken, OF_PODS, |name| name == restarted);
    if !kept.is_empty() {
        own["f:spec"] = json!({"f:template": {"f:metadata": {"f:annotations": kept}}});
    }
    if let Some(metadata) = taken.get_mut("f:metadata").and_then(Value::as_object_mut) {
        metadata.remove("f:finalizers");
    }
    (own, taken)
}

/// Takes the members out whose name is meant.
fn take(fields: &mut Value, pointer: &str, is_meant: impl Fn(&str) -> bool) -> Map<String, Value> {
    let Some(members) = fields.pointer_mut(pointer).and_then(Value::as_object_mut) else {
        return Map::new();
    };
    let names: Vec<String> = members.keys().filter(|name| is_meant(name)).cloned().collect();
    names.into_iter().filter_map(|name| members.remove_entry(&name)).collect()
}

/// Whether there is no field.
fn is_empty(fields: &Value) -> bool {
    !has_fields(".", fields)
}

/// Whether a member of fields is one, or has some below it.
fn has_fields(name: &str, below: &Value) -> bool {
    match below.as_object() {
        Some(members) if !members.is_empty() => members.iter().any(|(name, below)| has_fields(name, below)),
        // A leaf is a field, unless all that it held was taken out; "." is the container itself.
        _ => !matches!(name, "." | "f:annotations" | "f:metadata"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child() -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "manager", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {
                "f:metadata": {
                    "f:annotations": {".": {}, "f:gateway-operator.konghq.com/spec-hash": {}, "f:team": {}},
                    "f:finalizers": {".": {}, "v:\"gateway-operator.konghq.com/wait-for-owner\"": {}},
                    "f:labels": {".": {}, "f:app": {}, "f:gateway-operator.konghq.com/managed-by": {}},
                },
                "f:spec": {"f:replicas": {}, "f:template": {"f:metadata": {
                    "f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}, "f:labels": {"f:app": {}},
                }}},
            }},
            {"manager": "manager", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "manager", "operation": "Update", "apiVersion": "apps/v1", "subresource": "status",
             "fieldsV1": {"f:status": {}}},
        ]}})
    }

    fn managers() -> Vec<String> {
        vec!["manager".to_owned()]
    }

    fn with(entries: Vec<Value>) -> Value {
        json!({"metadata": {"managedFields": entries}})
    }

    #[test]
    fn who_gave_it_the_label_made_it() {
        assert_eq!(makers(&child()).collect::<Vec<_>>(), ["manager"]);
        assert_eq!(makers(&with(taken(&child(), &managers()))).count(), 0, "it is ours");
        assert_eq!(last_write(&child(), &managers()), Some("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn its_fields_become_ours_but_for_its_annotations() {
        let after = with(taken(&child(), &managers()));
        assert_eq!(last_write(&after, &managers()), None, "{after:#}");
        let entry = |manager: &str, operation: &str| {
            let found = entries(&after)
                .find(|entry| entry["manager"] == manager && entry["operation"] == operation)
                .map(|entry| entry["fieldsV1"].clone());
            found.unwrap_or_else(|| panic!("{manager} {operation}: {after:#}"))
        };
        assert_eq!(
            entry("manager", "Update"),
            json!({
                "f:metadata": {"f:annotations": {"f:gateway-operator.konghq.com/spec-hash": {}}},
                "f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}},
            })
        );
        let ours = entry("interlock", "Apply");
        assert!(ours["f:metadata"]["f:finalizers"].is_null());
        for pointer in ["/f:spec/f:replicas", "/f:spec/f:paused", "/f:metadata/f:annotations/f:team"] {
            assert!(ours.pointer(pointer).is_some(), "{pointer}: {ours:#}");
        }
        assert_eq!(entry("kubectl", "Update"), json!({"f:spec": {"f:paused": {}}}));
        assert_eq!(all(&after).filter(|entry| entry["subresource"] == "status").count(), 1);
        assert_eq!(taken(&after, &managers()), taken(&after, &managers()), "once is enough");
    }

    #[test]
    fn what_is_given_back_is_theirs_alone() {
        let mut before = with(taken(&child(), &managers()));
        before["metadata"]["managedFields"][1]["fieldsV1"]["f:metadata"]["f:annotations"]["f:interlock.dev/applied-hash"] =
            json!({});
        assert!(has_ours(&before));
        let after = with(given_back(&before, "manager"));
        assert!(!has_ours(&after));
        assert_eq!(makers(&after).collect::<Vec<_>>(), ["manager"]);
        assert!(!after.to_string().contains("applied-hash"), "{after:#}");
        assert_eq!(entries(&after).filter(|entry| entry["manager"] == "manager").count(), 1, "{after:#}");
    }

    #[test]
    fn forged_entries_are_no_fields() {
        let forged =
            with(vec![json!(1), json!({"manager": "manager", "fieldsV1": [1]}), json!({"manager": 7})]);
        assert_eq!(last_write(&forged, &managers()), None);
        assert_eq!(makers(&forged).count(), 0);
        taken(&forged, &managers());
    }
}
