//! The three-way merge of an object: last applied, desired and live state.
//!
//! The result is a JSON merge patch (RFC 7396) for every kind. It removes fields that were applied
//! before and are not desired any more, and keeps additions of others (KUDO `task_apply.go:
//! patchResource`, which sends its patch on every pass). Built-in kinds are merged strategically:
//! additions of others to a list whose elements have a key stay, too. Inside the lists of other
//! kinds they stay as long as nothing of ours in that list changes.

use interlock_core::api::map::{NotAMap, map_at};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, annotation};
use interlock_core::strategic_merge::schema::ObjectType;
use interlock_core::strategic_merge::three_way;
use serde_json::{Map, Value, json};
use thiserror::Error;

/// Why no patch can be computed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// The annotation was overwritten; the text is KUDO's.
    #[error("failed to get original configuration LastAppliedConfigAnnotation is invalid JSON")]
    Invalid,
    /// The desired object has no place for the annotation.
    #[error(transparent)]
    NotAMap(#[from] NotAMap),
}

/// The text of [`meta::LAST_APPLIED_CONFIGURATION`] for a desired object.
pub fn configuration(wanted: &Value) -> String {
    wanted.to_string()
}

/// The desired object as it is first written: with its own text as annotation.
pub fn annotated(wanted: &Value) -> Result<Value, NotAMap> {
    let object = match built_in(wanted) {
        Some(_) => &three_way::without_directives(wanted),
        None => wanted,
    };
    with_configuration(object, configuration(wanted))
}

/// How the fields of an object of a built-in kind are merged.
fn built_in(object: &Value) -> Option<ObjectType> {
    ObjectType::of_kind(&Gvk::of(object)?)
}

fn with_configuration(wanted: &Value, text: String) -> Result<Value, NotAMap> {
    let mut object = wanted.clone();
    let annotations = map_at(&mut object, &["metadata", "annotations"])?;
    annotations.insert(meta::LAST_APPLIED_CONFIGURATION.to_owned(), Value::String(text));
    Ok(object)
}

/// The patch from the live object to the desired one; `None` when it was applied already.
///
/// An object that carries exactly our text was applied: the API server's defaults or others made
/// the differences, and patching them would never end.
pub fn patch(wanted: &Value, current: &Value, owner: &str) -> Result<Option<Value>, MergeError> {
    let text = configuration(wanted);
    let applied = annotation(current, meta::LAST_APPLIED_CONFIGURATION);
    if applied == Some(text.as_str()) {
        return Ok(None);
    }
    let original = original(applied)?;
    let mut modified = with_configuration(wanted, text)?;
    let owners = map_at(&mut modified, &["metadata"])?.remove(OWNERS).unwrap_or_default();
    let mut patch = match (modified.as_object(), current.as_object()) {
        (Some(modified), Some(current)) => match built_in(wanted) {
            Some(of) => {
                let merged = three_way::merge(original.as_object(), modified, current.clone(), of);
                change(current, &merged)
            }
            None => difference(original.as_object(), modified, current),
        },
        _ => Map::new(),
    };
    if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove(OWNERS);
        if let Some(owners) = join_owners(current, owners, owner) {
            metadata.insert(OWNERS.to_owned(), owners);
        }
    }
    Ok(Some(Value::Object(patch)))
}

const OWNERS: &str = "ownerReferences";

/// Owner references are a set by uid: ours is added or removed as desired; others are kept.
fn join_owners(current: &Value, wanted: Value, owner: &str) -> Option<Value> {
    let uid = |reference: &Value| reference.get("uid").and_then(Value::as_str).map(str::to_owned);
    let is_ours = |reference: &Value| uid(reference).as_deref() == Some(owner);
    let mut references = current["metadata"][OWNERS].as_array().cloned().unwrap_or_default();
    let wanted = wanted.as_array().map_or(&[][..], Vec::as_slice);
    let (is, should_be) = (references.iter().any(is_ours), wanted.iter().any(is_ours));
    if is == should_be {
        return None;
    }
    references.retain(|reference| !is_ours(reference));
    for reference in wanted {
        if !references.iter().any(|r| uid(r) == uid(reference)) {
            references.push(reference.clone());
        }
    }
    Some(Value::Array(references))
}

fn original(applied: Option<&str>) -> Result<Value, MergeError> {
    match applied {
        None | Some("") => Ok(json!({})),
        Some(text) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(untyped(Value::Object(map))),
            _ => Err(MergeError::Invalid),
        },
    }
}

/// KUDO wrote built-in kinds as Go's structs marshal them: with an empty map for each struct that
/// the template did not name, `status` among them. These maps were never desired, and are not
/// removed. Such a text has `creationTimestamp: null`.
fn untyped(mut original: Value) -> Value {
    if original["metadata"].get("creationTimestamp").is_some_and(Value::is_null) {
        drop_empty(&mut original);
    }
    original
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(drop_empty);
            map.retain(|_, value| value.as_object().is_none_or(|inner| !inner.is_empty()));
        }
        Value::Array(list) => list.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

type Object = Map<String, Value>;

/// The JSON merge patch from one object to another.
fn change(current: &Object, merged: &Object) -> Object {
    let gone =
        current.keys().filter(|name| !merged.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let mut patch: Object = gone.collect();
    for (name, wanted) in merged {
        match (current.get(name), wanted) {
            (Some(Value::Object(found)), Value::Object(wanted)) => {
                let inner = change(found, wanted);
                if !inner.is_empty() {
                    patch.insert(name.clone(), Value::Object(inner));
                }
            }
            (Some(found), wanted) if found == wanted => {}
            _ => drop(patch.insert(name.clone(), wanted.clone())),
        }
    }
    patch
}

/// The fields of an object that must change; null counts as absent, as for the API server.
fn difference(original: Option<&Object>, modified: &Object, current: &Object) -> Object {
    let mut patch = Map::new();
    for (key, wanted) in modified.iter().filter(|(_, v)| !v.is_null()) {
        let before = original.and_then(|o| o.get(key));
        match (wanted, current.get(key)) {
            (Value::Object(wanted), Some(Value::Object(found))) => {
                let inner = difference(before.and_then(Value::as_object), wanted, found);
                if !inner.is_empty() {
                    patch.insert(key.clone(), Value::Object(inner));
                }
            }
            (_, Some(found)) if same(before, wanted, found) => {}
            _ => {
                patch.insert(key.clone(), wanted.clone());
            }
        }
    }
    for (key, _) in original.into_iter().flatten().filter(|(_, v)| !v.is_null()) {
        if modified.get(key).is_none_or(Value::is_null) && current.get(key).is_some_and(|v| !v.is_null()) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    patch
}

/// Whether a value already is as desired. A list is if each of its elements is: then additions by
/// others or by defaults stay.
fn same(original: Option<&Value>, modified: &Value, current: &Value) -> bool {
    match (modified, current) {
        (Value::Object(modified), Value::Object(current)) => {
            difference(original.and_then(Value::as_object), modified, current).is_empty()
        }
        (Value::Array(modified), Value::Array(current)) => {
            let before = |i: usize| original.and_then(Value::as_array).and_then(|list| list.get(i));
            modified.len() == current.len()
                && modified.iter().zip(current).enumerate().all(|(i, (m, c))| same(before(i), m, c))
        }
        (modified, current) => modified == current,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The live object, with the last-applied state in our annotation.
    fn live(applied: &Value, mut object: Value) -> Value {
        object["metadata"]["annotations"][meta::LAST_APPLIED_CONFIGURATION] = applied.to_string().into();
        object
    }

    #[rstest]
    #[case::nothing_but_the_annotation(json!({"a": 1}), json!({"a": 1}), json!({"a": 1, "b": 2}), json!({}))]
    #[case::changed(json!({"a": 1}), json!({"a": 2}), json!({"a": 1}), json!({"a": 2}))]
    #[case::drifted_and_wanted(json!({"a": 1}), json!({"a": 1}), json!({"a": 3}), json!({"a": 1}))]
    #[case::added(json!({}), json!({"a": {"b": 1}}), json!({"a": {"c": 2}}), json!({"a": {"b": 1}}))]
    #[case::removed(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 2}}), json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": null}}))]
    #[case::removed_and_gone(json!({"a": 1}), json!({}), json!({}), json!({}))]
    #[case::whole_map_removed(json!({"a": {"b": 1}}), json!({}), json!({"a": {"b": 1, "c": 2}}), json!({"a": null}))]
    #[case::added_by_others_stays(json!({}), json!({}), json!({"x": 1}), json!({}))]
    #[case::null_is_absent(json!({"a": null}), json!({"a": null}), json!({"a": 5}), json!({}))]
    #[case::null_removes_what_was_applied(json!({"a": 5}), json!({"a": null}), json!({"a": 5}), json!({"a": null}))]
    #[case::defaults_in_a_list(json!({"l": [{"n": 1}]}), json!({"l": [{"n": 1}]}), json!({"l": [{"n": 1, "d": 0}]}), json!({}))]
    #[case::change_in_a_list(json!({"l": [{"n": 1}]}), json!({"l": [{"n": 2}]}), json!({"l": [{"n": 1, "d": 0}]}), json!({"l": [{"n": 2}]}))]
    #[case::field_removed_in_a_list(json!({"l": [{"n": 1, "m": 2}]}), json!({"l": [{"n": 1}]}), json!({"l": [{"n": 1, "m": 2}]}), json!({"l": [{"n": 1}]}))]
    #[case::longer_list(json!({"l": [1]}), json!({"l": [1, 2]}), json!({"l": [1]}), json!({"l": [1, 2]}))]
    #[case::map_over_scalar(json!({"a": 1}), json!({"a": {"b": 1}}), json!({"a": 1}), json!({"a": {"b": 1}}))]
    fn three_ways(
        #[case] original: Value,
        #[case] wanted: Value,
        #[case] current: Value,
        #[case] patch: Value,
    ) {
        let object = |run: &str, spec: &Value| json!({"metadata": {"name": "x", "annotations": {"run": run}}, "spec": spec});
        let wanted = object("2", &wanted);
        let current = live(&object("1", &original), object("1", &current));
        let mut got = super::patch(&wanted, &current, "uid-1").unwrap().unwrap();
        assert_eq!(
            got.as_object_mut().unwrap().remove("metadata").unwrap(),
            json!({"annotations": {"run": "2", meta::LAST_APPLIED_CONFIGURATION: configuration(&wanted)}})
        );
        assert_eq!(got, if patch == json!({}) { json!({}) } else { json!({"spec": patch}) });
    }

    #[rstest]
    #[case::built_in("v1", "Pod", json!([{"name": "a", "image": "2"}, {"name": "x", "image": "1"}]))]
    #[case::custom("example.com/v1", "Pod", json!([{"name": "a", "image": "2"}]))]
    fn lists_of_built_in_kinds_are_merged_by_their_keys(
        #[case] api_version: &str,
        #[case] kind: &str,
        #[case] containers: Value,
    ) {
        let pod = |containers: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": {"containers": containers}});
        let applied = pod(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]));
        let current = pod(json!([
            {"name": "a", "image": "1"}, {"name": "x", "image": "1"}, {"name": "b", "image": "1"},
        ]));
        let wanted = pod(json!([{"name": "a", "image": "2"}]));
        let patch = super::patch(&wanted, &live(&applied, current), "uid-1").unwrap().unwrap();
        assert_eq!(patch["spec"], json!({"containers": containers}));
    }

    #[test]
    fn an_applied_object_is_not_written_again() {
        let wanted = json!({"metadata": {"name": "x"}, "spec": {"cpu": "1000m"}});
        let mut current = annotated(&wanted).unwrap();
        current["spec"]["cpu"] = "1".into();
        assert_eq!(patch(&wanted, &current, "uid-1"), Ok(None));
    }

    #[rstest]
    #[case::as_a_struct(json!({"metadata": {"name": "x", "creationTimestamp": null}, "spec": {"strategy": {}}, "status": {}}), json!({}))]
    #[case::as_it_was_rendered(json!({"metadata": {"name": "x"}, "spec": {"strategy": {}}}), json!({"spec": {"strategy": null}}))]
    fn what_only_a_struct_named_is_not_removed(#[case] original: Value, #[case] expected: Value) {
        let current = json!({"metadata": {"name": "x"}, "spec": {"strategy": {"type": "Recreate"}}, "status": {"a": 1}});
        let wanted = json!({"metadata": {"name": "x"}, "spec": {}});
        let mut got = super::patch(&wanted, &live(&original, current), "uid-1").unwrap().unwrap();
        got.as_object_mut().unwrap().remove("metadata");
        assert_eq!(got, expected);
    }

    #[rstest]
    #[case::no_annotations(json!({"metadata": {"name": "x"}}), None)]
    #[case::empty_annotations(json!({"metadata": {"name": "x", "annotations": {}}}), None)]
    #[case::annotations_of_others(json!({"metadata": {"name": "x", "annotations": {"a": "b"}}}), None)]
    #[case::not_json(json!({"metadata": {"name": "x", "annotations": {"kudo.dev/last-applied-configuration": "{"}}}), Some(MergeError::Invalid))]
    #[case::not_a_map(json!({"metadata": {"name": "x", "annotations": {"kudo.dev/last-applied-configuration": "1"}}}), Some(MergeError::Invalid))]
    #[case::empty(json!({"metadata": {"name": "x", "annotations": {"kudo.dev/last-applied-configuration": ""}}}), None)]
    #[case::kudo_ends_it_with_a_newline(json!({"metadata": {"name": "x", "annotations": {"kudo.dev/last-applied-configuration": "{}\n"}}}), None)]
    fn what_was_applied(#[case] current: Value, #[case] error: Option<MergeError>) {
        let wanted = json!({"metadata": {"name": "x"}});
        assert_eq!(patch(&wanted, &current, "uid-1").err(), error);
    }

    #[test]
    fn annotations_that_are_no_map_are_an_error() {
        let wanted = json!({"metadata": {"name": "x", "annotations": "x"}});
        let error = annotated(&wanted).unwrap_err();
        assert_eq!(patch(&wanted, &json!({}), "uid-1"), Err(MergeError::NotAMap(error)));
    }

    #[rstest]
    #[case::none_yet(json!(null), Some(json!([{"uid": "uid-1"}])))]
    #[case::ours_is_there(json!([{"uid": "uid-1", "controller": true}, {"uid": "other"}]), None)]
    #[case::others_are_kept(json!([{"uid": "other"}]), Some(json!([{"uid": "other"}, {"uid": "uid-1"}])))]
    fn owners_are_a_set(#[case] found: Value, #[case] expected: Option<Value>) {
        let wanted = json!([{"uid": "uid-1"}]);
        owners(&found, &wanted, expected.as_ref());
    }

    #[rstest]
    #[case::none(json!(null), None)]
    #[case::ours_goes(json!([{"uid": "uid-1", "controller": true}, {"uid": "other"}]), Some(json!([{"uid": "other"}])))]
    #[case::others_stay(json!([{"uid": "other"}]), None)]
    fn an_owner_that_is_not_wanted_goes(#[case] found: Value, #[case] expected: Option<Value>) {
        owners(&found, &Value::Null, expected.as_ref());
    }

    #[track_caller]
    fn owners(found: &Value, wanted: &Value, expected: Option<&Value>) {
        let wanted = json!({"metadata": {"name": "x", "ownerReferences": wanted}});
        let current = json!({"metadata": {"name": "x", "ownerReferences": found}});
        let patch = patch(&wanted, &current, "uid-1").unwrap().unwrap();
        assert_eq!(patch["metadata"].get("ownerReferences"), expected);
    }
}
