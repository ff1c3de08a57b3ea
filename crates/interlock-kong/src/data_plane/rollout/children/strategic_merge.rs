//! A strategic merge of the user's pod template over the generated one.
//!
//! Objects are merged member by member, lists with keys element by element, other lists are replaced. The directives
//! are those of Kubernetes: `null`, `$patch: delete` and `$patch: replace`. Beyond a plain strategic merge, a volume
//! or a variable that the user lists is the user's as a whole, a probe or lifecycle hook has the one handler that the
//! user names, and an empty probe (`readinessProbe: {}`) is none.

use std::collections::{HashMap, HashSet};

use interlock_core::strategic_merge::directive::{DIRECTIVE, Directive};
use interlock_core::strategic_merge::list_key::ListKey;
use serde_json::{Map, Value};

use super::invalid::{FieldPlace, InvalidTemplate, TemplateProblem};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: [&str; 2] = ["postStart", "preStop"];
const HANDLERS: [&str; 5] = ["exec", "grpc", "httpGet", "sleep", "tcpSocket"];

type Object = Map<String, Value>;

/// The patch merged over the base.
pub(super) fn merge(base: Value, patch: &Value, place: &FieldPlace<'_>) -> Result<Value, InvalidTemplate> {
    over(Some(base), patch, place)
}

fn over(base: Option<Value>, patch: &Value, place: &FieldPlace<'_>) -> Result<Value, InvalidTemplate> {
    match (base, patch) {
        (None, Value::Object(patch)) => objects(Map::new(), patch, place).map(Value::Object),
        (None, Value::Array(patch)) => lists(Vec::new(), patch, place).map(Value::Array),
        (Some(Value::Object(base)), patch) => objects(base, place.object(patch)?, place).map(Value::Object),
        (Some(Value::Array(base)), patch) => lists(base, place.list(patch)?, place).map(Value::Array),
        (Some(Value::String(_)), Value::Object(_) | Value::Array(_)) => {
            Err(place.has(TemplateProblem::Type("a string")))
        }
        (Some(_), Value::Object(_) | Value::Array(_)) => {
            Err(place.has(TemplateProblem::Type("a number or true or false")))
        }
        (_, patch) => Ok(patch.clone()),
    }
}

fn objects(mut base: Object, patch: &Object, place: &FieldPlace<'_>) -> Result<Object, InvalidTemplate> {
    match directive(patch, place)? {
        Directive::Merge => {}
        Directive::Replace => base.clear(),
        Directive::Delete => return Ok(Map::new()),
    }
    for (name, value) in patch.iter().filter(|(name, _)| *name != DIRECTIVE) {
        let place = place.field(name);
        if name.starts_with('$') {
            return Err(place.has(TemplateProblem::Directive));
        }
        let mut found = base.remove(name);
        if is_removed(name, value, &place)? {
            continue;
        }
        if PROBES.contains(&name.as_str()) || HOOKS.contains(&name.as_str()) {
            keep_one_handler(&mut found, value);
        }
        base.insert(name.clone(), over(found, value, &place)?);
    }
    Ok(base)
}

fn is_removed(name: &str, value: &Value, place: &FieldPlace<'_>) -> Result<bool, InvalidTemplate> {
    let Some(object) = value.as_object() else { return Ok(value.is_null()) };
    let empty_probe = object.is_empty() && PROBES.contains(&name);
    Ok(empty_probe || directive(object, place)? == Directive::Delete)
}

/// Removes the handlers of a probe or hook beside those that the patch names.
fn keep_one_handler(base: &mut Option<Value>, patch: &Value) {
    let names = |handler: &str| patch.get(handler).is_some_and(|value| !value.is_null());
    let (Some(Value::Object(base)), true) = (base, HANDLERS.iter().any(|handler| names(handler))) else {
        return;
    };
    base.retain(|name, _| !HANDLERS.contains(&name.as_str()) || names(name));
}

fn lists(base: Vec<Value>, patch: &[Value], place: &FieldPlace<'_>) -> Result<Vec<Value>, InvalidTemplate> {
    let Some(key) = place.name().and_then(ListKey::of_pod_template) else {
        return patch.iter().enumerate().map(|(i, value)| over(None, value, &place.index(i))).collect();
    };
    let patch = KeyedPatch::read(patch, key, place)?;
    let mut kept: Vec<(String, Value)> = if patch.replaces { Vec::new() } else { keyed(base, key) };
    kept.retain(|(key, _)| !patch.deleted.contains(key));
    let mut base: HashMap<String, Value> = HashMap::new();
    let listed: HashSet<&str> = patch.listed.iter().map(|(key, _)| key.as_str()).collect();
    let mut rest = Vec::new();
    for (key, value) in kept {
        if listed.contains(key.as_str()) {
            base.insert(key, value);
        } else {
            rest.push(value);
        }
    }
    let mut merged = Vec::new();
    for (text, element) in &patch.listed {
        let found = base.remove(text).filter(|_| !is_whole(place, element));
        let found = found.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        let mut element = objects(found, element, &place.element(text))?;
        key.complete(&mut element);
        merged.push(Value::Object(element));
    }
    Ok(joined(merged, rest, place))
}

/// The user's elements in their order, and the generated ones that the user does not list. Generated variables are
/// first: the user's may refer to them.
fn joined(mut listed: Vec<Value>, mut rest: Vec<Value>, place: &FieldPlace<'_>) -> Vec<Value> {
    if place.name() == Some("ports") {
        // A pod cannot have two ports of one name.
        let names: HashSet<&str> = listed.iter().filter_map(|port| port.get("name")?.as_str()).collect();
        rest.retain(|port| port.get("name").and_then(Value::as_str).is_none_or(|name| !names.contains(name)));
    }
    if place.name() == Some("env") {
        rest.extend(listed);
        return rest;
    }
    listed.extend(rest);
    listed
}

/// Whether an element takes the place of a generated one as a whole: two sources would exclude each other.
fn is_whole(place: &FieldPlace<'_>, element: &Object) -> bool {
    match place.name() {
        Some("env") => true,
        Some("volumes") => element.iter().any(|(name, value)| name != "name" && !value.is_null()),
        _ => false,
    }
}

fn keyed(list: Vec<Value>, key: ListKey) -> Vec<(String, Value)> {
    list.into_iter().filter_map(|element| Some((key.value(&element)?, element))).collect()
}

/// The elements of a patch of a list with keys.
struct KeyedPatch<'p> {
    replaces: bool,
    deleted: HashSet<String>,
    listed: Vec<(String, &'p Object)>,
}

impl<'p> KeyedPatch<'p> {
    fn read(patch: &'p [Value], key: ListKey, place: &FieldPlace<'_>) -> Result<Self, InvalidTemplate> {
        let mut read = Self { replaces: false, deleted: HashSet::new(), listed: Vec::new() };
        for (i, element) in patch.iter().enumerate() {
            let place = place.index(i);
            let element = place.object(element)?;
            let directive = directive(element, &place)?;
            if directive == Directive::Replace && element.len() == 1 {
                read.replaces = true;
                continue;
            }
            if let Some(missing) = key.missing(element) {
                return Err(place.has(TemplateProblem::NoKey(missing)));
            }
            let Some(text) = key.of_element(element) else { continue };
            if directive == Directive::Delete {
                read.deleted.insert(text);
            } else {
                read.listed.push((text, element));
            }
        }
        read.listed = if place.name() == Some("env") {
            last_of_each(read.listed, place)?
        } else {
            once_each(read.listed, place)?
        };
        Ok(read)
    }
}

fn once_each<'p>(
    listed: Vec<(String, &'p Object)>,
    place: &FieldPlace<'_>,
) -> Result<Vec<(String, &'p Object)>, InvalidTemplate> {
    let mut seen = HashSet::new();
    match listed.iter().find(|(key, _)| !seen.insert(key.as_str())) {
        Some((key, _)) => Err(place.element(key).has(TemplateProblem::Twice)),
        None => Ok(listed),
    }
}

/// The variables that the container has: of a name that is listed twice the last one. An error where a variable between
/// them refers to the first one, as the API server takes each name once.
fn last_of_each<'p>(
    listed: Vec<(String, &'p Object)>,
    place: &FieldPlace<'_>,
) -> Result<Vec<(String, &'p Object)>, InvalidTemplate> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (i, (key, _)) in listed.iter().enumerate() {
        last.insert(key, i);
    }
    let mut replaced: HashSet<&str> = HashSet::new();
    for (i, (key, variable)) in listed.iter().enumerate() {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        let value = variable.get("value").and_then(Value::as_str).unwrap_or_default();
        if let Some(repeated) = references(value).find(|reference| replaced.contains(reference)) {
            return Err(place.element(&format!("name={repeated}")).has(TemplateProblem::Repeated));
        }
        if last[key.as_str()] == i {
            replaced.remove(name);
        } else {
            replaced.insert(name);
        }
    }
    let kept: Vec<bool> = listed.iter().enumerate().map(|(i, (key, _))| last[key.as_str()] == i).collect();
    Ok(listed.into_iter().zip(kept).filter_map(|(variable, kept)| kept.then_some(variable)).collect())
}

/// What may be names in `$(NAME)`.
fn references(value: &str) -> impl Iterator<Item = &str> {
    value.split("$(").skip(1).filter_map(|rest| rest.split_once(')')).map(|(name, _)| name)
}

fn directive(object: &Object, place: &FieldPlace<'_>) -> Result<Directive, InvalidTemplate> {
    Directive::of(object).ok_or_else(|| place.field(DIRECTIVE).has(TemplateProblem::Directive))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn merged(base: Value, patch: Value) -> Result<Value, String> {
        merge(base, &patch, &FieldPlace::root("t")).map_err(|error| error.to_string())
    }

    #[rstest]
    #[case::members(json!({"a": 1, "b": {"c": 1}}), json!({"b": {"d": 2}}), json!({"a": 1, "b": {"c": 1, "d": 2}}))]
    #[case::null_removes(json!({"a": 1, "b": 1}), json!({"a": null, "c": null, "d": {"e": null}}), json!({"b": 1, "d": {}}))]
    #[case::an_object_deleted(json!({"a": {"b": 1}, "c": 1}), json!({"a": {"$patch": "delete"}}), json!({"c": 1}))]
    #[case::an_object_replaced(json!({"a": {"b": 1}}), json!({"a": {"$patch": "replace", "c": 2}}), json!({"a": {"c": 2}}))]
    #[case::by_name_in_the_users_order(
        json!({"containers": [{"name": "proxy", "image": "a", "tty": true}]}),
        json!({"containers": [{"name": "sidecar", "image": "s"}, {"name": "proxy", "image": "b"}]}),
        json!({"containers": [{"name": "sidecar", "image": "s"}, {"name": "proxy", "image": "b", "tty": true}]})
    )]
    #[case::not_listed_stays(
        json!({"volumes": [{"name": "a", "secret": {}}]}),
        json!({"volumes": [{"name": "b", "emptyDir": {}}]}),
        json!({"volumes": [{"name": "b", "emptyDir": {}}, {"name": "a", "secret": {}}]})
    )]
    #[case::an_element_deleted(
        json!({"volumes": [{"name": "a"}, {"name": "b"}]}),
        json!({"volumes": [{"name": "a", "$patch": "delete"}]}),
        json!({"volumes": [{"name": "b"}]})
    )]
    #[case::a_list_replaced(
        json!({"volumes": [{"name": "a"}, {"name": "b"}]}),
        json!({"volumes": [{"name": "b"}, {"$patch": "replace"}]}),
        json!({"volumes": [{"name": "b"}]})
    )]
    #[case::a_volume_keeps_its_source(
        json!({"volumes": [{"name": "a", "secret": {"secretName": "s"}}]}),
        json!({"volumes": [{"name": "a"}]}),
        json!({"volumes": [{"name": "a", "secret": {"secretName": "s"}}]})
    )]
    #[case::a_volume_has_one_source(
        json!({"volumes": [{"name": "a", "secret": {"secretName": "s"}}]}),
        json!({"volumes": [{"name": "a", "emptyDir": {}}]}),
        json!({"volumes": [{"name": "a", "emptyDir": {}}]})
    )]
    #[case::generated_variables_first(
        json!({"env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}]}),
        json!({"env": [{"name": "Z", "value": "$(A)"}, {"name": "B", "valueFrom": {"fieldRef": {}}}]}),
        json!({"env": [{"name": "A", "value": "a"}, {"name": "Z", "value": "$(A)"}, {"name": "B", "valueFrom": {"fieldRef": {}}}]})
    )]
    #[case::a_generated_variable_deleted(
        json!({"env": [{"name": "A", "value": "a"}]}),
        json!({"env": [{"name": "A", "$patch": "delete"}]}),
        json!({"env": []})
    )]
    #[case::the_last_variable_of_a_name(
        json!({"env": []}),
        json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "$(B)"}]}),
        json!({"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "$(B)"}]})
    )]
    #[case::ports_by_number_and_protocol(
        json!({"ports": [{"name": "proxy", "containerPort": 8000, "protocol": "TCP"}]}),
        json!({"ports": [{"containerPort": 8000, "hostPort": 80}, {"containerPort": 8000, "protocol": "UDP"}]}),
        json!({"ports": [
            {"name": "proxy", "containerPort": 8000, "protocol": "TCP", "hostPort": 80},
            {"containerPort": 8000, "protocol": "UDP"},
        ]})
    )]
    #[case::a_name_of_another_port(
        json!({"ports": [{"name": "proxy", "containerPort": 8000, "protocol": "TCP"}]}),
        json!({"ports": [{"name": "proxy", "containerPort": 9000}]}),
        json!({"ports": [{"name": "proxy", "containerPort": 9000, "protocol": "TCP"}]})
    )]
    #[case::mounts_by_path(
        json!({"volumeMounts": [{"mountPath": "/a", "name": "a", "readOnly": true}]}),
        json!({"volumeMounts": [{"mountPath": "/a", "name": "b"}, {"mountPath": "/b", "name": "a"}]}),
        json!({"volumeMounts": [{"mountPath": "/a", "name": "b", "readOnly": true}, {"mountPath": "/b", "name": "a"}]})
    )]
    #[case::tolerations_are_replaced(
        json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": [{"key": "b"}]}), json!({"tolerations": [{"key": "b"}]})
    )]
    #[case::commands_are_replaced(json!({"command": ["a", "b"]}), json!({"command": ["c"]}), json!({"command": ["c"]}))]
    #[case::a_probe_is_tuned(
        json!({"readinessProbe": {"httpGet": {"path": "/status", "port": 8100}, "periodSeconds": 10}}),
        json!({"readinessProbe": {"httpGet": {"path": "/status/ready"}}}),
        json!({"readinessProbe": {"httpGet": {"path": "/status/ready", "port": 8100}, "periodSeconds": 10}})
    )]
    #[case::a_probe_has_one_handler(
        json!({"readinessProbe": {"httpGet": {"path": "/status"}, "periodSeconds": 10}}),
        json!({"readinessProbe": {"exec": {"command": ["true"]}}}),
        json!({"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 10}})
    )]
    #[case::no_probe(json!({"readinessProbe": {"httpGet": {}}}), json!({"readinessProbe": {}, "livenessProbe": {}}), json!({}))]
    #[case::a_hook_has_one_handler(
        json!({"lifecycle": {"preStop": {"exec": {"command": ["kong", "quit"]}}}}),
        json!({"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}),
        json!({"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}})
    )]
    #[case::null_in_a_list(json!({"args": ["a"]}), json!({"args": ["b", null]}), json!({"args": ["b", null]}))]
    fn is_merged(#[case] base: Value, #[case] patch: Value, #[case] expected: Value) {
        assert_eq!(merged(base, patch), Ok(expected));
    }

    #[rstest]
    #[case::a_list_for_an_object(json!({"spec": {}}), json!({"spec": []}), "t.spec must be an object")]
    #[case::a_string_for_a_list(json!({"env": []}), json!({"env": "x"}), "t.env must be a list")]
    #[case::an_object_for_a_string(json!({"image": "a"}), json!({"image": {}}), "t.image must be a string")]
    #[case::a_list_for_a_number(json!({"a": 1}), json!({"a": []}), "t.a must be a number or true or false")]
    #[case::an_element_that_is_none(json!({}), json!({"containers": [1]}), "t.containers[0] must be an object")]
    #[case::an_element_without_key(json!({}), json!({"containers": [{"image": "x"}]}), "t.containers[0] has no name: set it")]
    #[case::a_key_of_another_type(json!({}), json!({"env": [{"name": {}}]}), "t.env[0] has no name: set it")]
    #[case::two_of_a_name(
        json!({}), json!({"containers": [{"name": "proxy"}, {"name": "proxy"}]}),
        "t.containers[name=proxy] is listed twice: keep one of the two"
    )]
    #[case::two_ports(
        json!({}), json!({"ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}),
        "t.ports[containerPort=1,protocol=TCP] is listed twice: keep one of the two"
    )]
    #[case::a_variable_twice_with_a_reference_between(
        json!({}), json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x$(A)"}, {"name": "A", "value": "2"}]}),
        "t.env[name=A] is listed twice, and $(...) refers to it in between: name each variable once"
    )]
    #[case::a_variable_made_of_itself(
        json!({}), json!({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}),
        "t.env[name=A] is listed twice, and $(...) refers to it in between: name each variable once"
    )]
    #[case::an_unknown_directive(json!({}), json!({"a": {"$patch": "x"}}), "t.a.$patch is no directive: use \"$patch\" with \"delete\" or \"replace\"")]
    #[case::another_directive(
        json!({}), json!({"$setElementOrder/containers": []}),
        "t.$setElementOrder/containers is no directive: use \"$patch\" with \"delete\" or \"replace\""
    )]
    #[case::nested(
        json!({}), json!({"spec": {"containers": [{"name": "proxy", "volumeMounts": [{"name": "x"}]}]}}),
        "t.spec.containers[name=proxy].volumeMounts[0] has no mountPath: set it"
    )]
    fn is_refused(#[case] base: Value, #[case] patch: Value, #[case] expected: &str) {
        assert_eq!(merged(base, patch), Err(expected.to_owned()));
    }
}
