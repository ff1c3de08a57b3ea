//! The live object as a client-side apply leaves it: what was applied before and is not desired any more goes, what is
//! desired comes, and what others added stays (client-go `CreateThreeWayMergePatch`, and the API server's application
//! of that patch).
//!
//! Different from both, on purpose: null in the desired object is absence, as for KUDO, whose objects passed through
//! Go's structs; `$patch: delete` removes an object, and `$patch: replace` keeps all of the desired one; and where the
//! merge key does not tell elements apart, those of the API server do (`port` and `protocol`), where kubectl loses
//! elements. What has no key by either is replaced as a whole.
//!
//! The cost is linear in the size of the three objects.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::directive::{DIRECTIVE, Directive};
use super::element_order::{Keyed, interleave, places};
use super::list_key::ListKey;
use super::scalar_list;
use super::schema::{FieldType, ObjectType};

type Object = Map<String, Value>;

/// The merged object: `original` is what was applied last, `modified` what is desired, `current` what is live.
pub fn merge(original: Option<&Object>, modified: &Object, current: Object, of: ObjectType) -> Object {
    // What a directive removed was not applied.
    let original = original.map(plain);
    objects(original.as_ref(), modified, current, of, false)
}

/// A desired value as it is first written: without directives, and what they remove.
pub fn without_directives(wanted: &Value) -> Value {
    match wanted {
        Value::Object(object) => Value::Object(plain(object)),
        Value::Array(list) => list.iter().filter(|value| is_kept(value)).map(without_directives).collect(),
        scalar => scalar.clone(),
    }
}

fn plain(object: &Object) -> Object {
    let members =
        object.iter().filter(|(name, value)| *name != DIRECTIVE && !value.is_null() && is_kept(value));
    members.map(|(name, value)| (name.clone(), without_directives(value))).collect()
}

/// Whether a value is more than the order to remove an object, or to replace the list that it is in.
fn is_kept(value: &Value) -> bool {
    let only_replaces = |object: &Object| object.len() == 1 && is(object, Directive::Replace);
    value.as_object().is_none_or(|object| !is(object, Directive::Delete) && !only_replaces(object))
}

fn is(object: &Object, directive: Directive) -> bool {
    Directive::of(object) == Some(directive)
}

fn objects(
    original: Option<&Object>,
    modified: &Object,
    mut current: Object,
    of: ObjectType,
    retains_keys: bool,
) -> Object {
    if is(modified, Directive::Replace) {
        return plain(modified);
    }
    let is_wanted = |name: &str| modified.get(name).is_some_and(|value| !value.is_null());
    // An empty object names none of the members that exclude each other.
    if retains_keys && modified.keys().any(|name| is_wanted(name)) {
        current.retain(|name, _| is_wanted(name));
    }
    for (name, _) in
        original.into_iter().flatten().filter(|(name, value)| !value.is_null() && !is_wanted(name))
    {
        current.remove(name);
    }
    for (name, wanted) in modified.iter().filter(|(name, value)| *name != DIRECTIVE && !value.is_null()) {
        let before = original.and_then(|original| original.get(name));
        let found = current.remove(name);
        if let Some(merged) = values(before, wanted, found, of.field(name)) {
            current.insert(name.clone(), merged);
        }
    }
    current
}

fn values(before: Option<&Value>, wanted: &Value, found: Option<Value>, field: FieldType) -> Option<Value> {
    match (wanted, found) {
        (Value::Object(wanted), _) if is(wanted, Directive::Delete) => None,
        (Value::Object(wanted), Some(Value::Object(found))) if !field.replaces() => {
            let before = before.and_then(Value::as_object);
            Some(Value::Object(objects(before, wanted, found, field.of(), field.retains_keys())))
        }
        (Value::Array(wanted), Some(Value::Array(found))) if field.merges() => {
            let before = before.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Some(Value::Array(lists(before, wanted, found, field)))
        }
        _ => Some(without_directives(wanted)),
    }
}

fn lists(original: &[Value], modified: &[Value], current: Vec<Value>, field: FieldType) -> Vec<Value> {
    let whole = || modified.iter().filter(|value| is_kept(value)).map(without_directives).collect();
    if modified
        .iter()
        .any(|value| !is_kept(value) && !value.as_object().is_some_and(|o| is(o, Directive::Delete)))
    {
        return whole();
    }
    if field.keys().next().is_none() {
        return scalar_list::merge(original, modified, &current).unwrap_or_else(whole);
    }
    match field.keys().find(|key| tells_apart(*key, modified) && tells_apart(*key, &current)) {
        Some(key) => elements(original, modified, current, field, key),
        None => whole(),
    }
}

/// Whether each element has a key of its own.
fn tells_apart(key: ListKey, list: &[Value]) -> bool {
    let mut seen = HashSet::new();
    list.iter().all(|element| key.value(element).is_some_and(|text| seen.insert(text)))
}

fn elements(
    original: &[Value],
    modified: &[Value],
    current: Vec<Value>,
    field: FieldType,
    key: ListKey,
) -> Vec<Value> {
    let with_key = |element: &Value| key.value(element);
    let before: HashMap<String, &Value> = original.iter().filter_map(|e| Some((with_key(e)?, e))).collect();
    let (mut wanted, mut removed) = (Vec::new(), HashSet::new());
    for (text, element) in modified.iter().filter_map(|e| Some((with_key(e)?, e.as_object()?))) {
        if is(element, Directive::Delete) {
            removed.insert(text);
        } else {
            wanted.push((text, element));
        }
    }
    let listed: HashSet<&str> = wanted.iter().map(|(text, _)| text.as_str()).collect();
    removed.extend(before.keys().filter(|text| !listed.contains(text.as_str())).cloned());
    let length = current.len();
    let kept: Keyed<Value> = current.into_iter().filter_map(|e| Some((with_key(&e)?, e))).collect();
    let kept: Keyed<Value> = kept.into_iter().filter(|(text, _)| !removed.contains(text)).collect();
    let live = live_places(&kept, &wanted, length);
    let (found, others): (Keyed<Value>, Keyed<Value>) =
        kept.into_iter().partition(|(text, _)| listed.contains(text.as_str()));
    let mut found: HashMap<String, Value> = found.into_iter().collect();
    let merged = |(text, element): &(String, &Object)| {
        let before = before.get(text).and_then(|before| before.as_object());
        let merged = match found.remove(text) {
            Some(Value::Object(found)) => objects(before, element, found, field.of(), field.retains_keys()),
            _ => plain(element),
        };
        (text.clone(), Value::Object(merged))
    };
    let desired = wanted.iter().map(merged).collect();
    interleave(desired, others, &live).into_iter().map(|(_, element)| element).collect()
}

/// The places by which new elements and those of others are interleaved: client-go takes new ones to be in the place
/// of removed ones, at the end.
fn live_places(
    kept: &[(String, Value)],
    wanted: &[(String, &Object)],
    length: usize,
) -> HashMap<String, usize> {
    let is_kept: HashSet<&str> = kept.iter().map(|(text, _)| text.as_str()).collect();
    let added = wanted.iter().map(|(text, _)| text.as_str()).filter(|text| !is_kept.contains(text));
    places(kept.iter().map(|(text, _)| text.as_str()).chain(added).take(length))
}

#[cfg(test)]
mod tests;
