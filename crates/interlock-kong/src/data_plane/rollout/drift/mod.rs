//! What tells whether a child is as it should be: the fields of an apply body against the object that is there.
//!
//! Only what the body states counts. What the API server defaults and what others add beside it is no difference, so a
//! webhook of others that adds to a child is not fought.

pub mod added;
mod managed_fields;
mod quantity;

pub use managed_fields::owns_all;

use std::collections::HashMap;

use interlock_core::strategic_merge::list_key::ListKey;
use quantity::Quantity;
use serde_json::{Map, Value};

/// Fields that hold a map of quantities.
const QUANTITY_MAPS: [&str; 4] = ["capacity", "limits", "overhead", "requests"];
/// Fields that hold a quantity, with the field that holds their object where the name says too little.
const QUANTITIES: [(&str, Option<&str>); 5] = [
    ("averageValue", None),
    ("divisor", None),
    ("sizeLimit", None),
    ("storage", None),
    ("value", Some("target")),
];
/// Maps whose entries are kept also where they are empty.
const FREE_MAPS: [&str; 6] = ["annotations", "data", "labels", "matchLabels", "nodeSelector", "selector"];
/// Fields for whose zero the API server takes a default.
const DEFAULTED: [&str; 16] = [
    "apiVersion",
    "dnsPolicy",
    "failureThreshold",
    "hostPort",
    "imagePullPolicy",
    "nodePort",
    "periodSeconds",
    "protocol",
    "restartPolicy",
    "schedulerName",
    "scheme",
    "successThreshold",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "timeoutSeconds",
    "type",
];
/// Fields whose zero the API server drops.
const DROPPED: [&str; 10] = [
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "initialDelaySeconds",
    "minReadySeconds",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
];
/// The one source of a volume that says all by being there.
const EMPTY_DIR: &str = "emptyDir";
/// Lists with keys whose order counts: variables refer to earlier ones, and init containers run one after the other.
const ORDERED: [&str; 2] = ["env", "initContainers"];

/// A path from the difference upwards, as it is found.
type Upwards = Vec<String>;

/// Path of the first field of `wanted` that `found` does not state the same; `None` where there is none.
///
/// `wanted` is a body of server-side apply. Its objects and its lists with keys are compared by subset, other lists as
/// a whole, quantities by what they are worth.
pub fn differs(wanted: &Value, found: &Value) -> Option<String> {
    let mut path = difference(Field { name: "", above: "" }, wanted, Some(found))?;
    path.reverse();
    Some(path.concat().trim_start_matches('.').to_owned())
}

/// The name of a field, and that of the field whose object it is in.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a str,
    above: &'a str,
}

impl Field<'_> {
    fn is_quantity(self) -> bool {
        QUANTITY_MAPS.contains(&self.above)
            || QUANTITIES
                .iter()
                .any(|(name, above)| *name == self.name && above.is_none_or(|above| above == self.above))
    }

    fn is_entry(self) -> bool {
        FREE_MAPS.contains(&self.above)
    }

    /// Whether the API server takes a default for a value.
    fn is_defaulted(self, value: &Value) -> bool {
        !self.is_entry() && DEFAULTED.contains(&self.name) && is_zero(value)
    }

    /// Whether the API server stores nothing for a value.
    fn is_dropped(self, value: &Value) -> bool {
        if self.is_entry() {
            return value.is_null();
        }
        is_empty(value) && self.name != EMPTY_DIR || DROPPED.contains(&self.name) && is_zero(value)
    }

    /// As it stands in a path.
    fn segment(self) -> String {
        let quoted = self.is_entry() && self.name.contains(['.', '/']);
        if quoted { format!("[{}]", self.name) } else { format!(".{}", self.name) }
    }
}

fn difference(field: Field<'_>, wanted: &Value, found: Option<&Value>) -> Option<Upwards> {
    let found = found.filter(|found| !found.is_null());
    if field.is_defaulted(wanted) {
        return None;
    }
    let Some(found) = found else {
        return (!field.is_dropped(wanted)).then(Vec::new);
    };
    match (wanted, found) {
        (Value::Null, _) => None,
        (Value::Object(wanted), Value::Object(found)) => objects(field.name, wanted, found),
        (Value::Array(wanted), Value::Array(found)) => lists(field.name, wanted, found),
        _ => (!is_same(field, wanted, found)).then(Vec::new),
    }
}

fn objects(above: &str, wanted: &Map<String, Value>, found: &Map<String, Value>) -> Option<Upwards> {
    wanted.iter().find_map(|(name, value)| {
        let field = Field { name, above };
        Some(extended(difference(field, value, found.get(name))?, field.segment()))
    })
}

fn extended(mut path: Upwards, segment: String) -> Upwards {
    path.push(segment);
    path
}

fn lists(field: &str, wanted: &[Value], found: &[Value]) -> Option<Upwards> {
    if let Some(key) = ListKey::of(field, wanted) {
        return keyed(field, key, wanted, found);
    }
    if wanted.len() != found.len() {
        return Some(Vec::new());
    }
    wanted.iter().zip(found).enumerate().find_map(|(i, (wanted, found))| {
        let path = difference(Field { name: "", above: field }, wanted, Some(found))?;
        Some(extended(path, format!("[{i}]")))
    })
}

fn keyed(field: &str, key: ListKey, wanted: &[Value], found: &[Value]) -> Option<Upwards> {
    let found: HashMap<String, (usize, &Value)> = found
        .iter()
        .enumerate()
        .filter_map(|(i, element)| Some((key.value(element)?, (i, element))))
        .collect();
    let mut last = None;
    for wanted in wanted {
        let Some(text) = key.value(wanted) else { continue };
        let element = found.get(&text);
        let path = match (element, wanted, element.map(|(_, element)| element)) {
            (Some(_), Value::Object(wanted), Some(Value::Object(found))) => objects("", wanted, found),
            _ => Some(Vec::new()),
        };
        if let Some(path) = path {
            return Some(extended(path, format!("[{text}]")));
        }
        let position = element.map(|(i, _)| *i);
        if ORDERED.contains(&field) && position < last {
            return Some(Vec::new());
        }
        last = position;
    }
    None
}

fn is_same(field: Field<'_>, wanted: &Value, found: &Value) -> bool {
    if wanted == found {
        return true;
    }
    match (scalar(wanted), scalar(found)) {
        (Some(wanted), Some(found)) if field.is_quantity() => {
            match (Quantity::parse(&wanted), Quantity::parse(&found)) {
                (Some(wanted), Some(found)) => wanted == found,
                _ => wanted == found,
            }
        }
        // A number that the API server keeps as text, or the other way round.
        (Some(text), Some(found_text)) if !field.is_entry() => text == found_text,
        _ => false,
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        value => is_empty(value),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::the_same(json!({"a": 1, "b": {"c": [1, "x"]}}), json!({"a": 1, "b": {"c": [1, "x"]}}), None)]
    #[case::a_value(json!({"spec": {"type": "ClusterIP"}}), json!({"spec": {"type": "NodePort"}}), Some("spec.type"))]
    #[case::gone(json!({"spec": {"a": {"b": 1}}}), json!({"spec": {}}), Some("spec.a"))]
    #[case::null_is_gone(json!({"spec": {"a": 1}}), json!({"spec": {"a": null}}), Some("spec.a"))]
    #[case::another_type(json!({"a": {"b": 1}}), json!({"a": [1]}), Some("a"))]
    #[case::added_by_others(json!({"metadata": {"labels": {"a": "b"}}}), json!({"metadata": {"labels": {"a": "b", "c": "d"}, "uid": "u"}, "status": {}}), None)]
    #[case::a_label_of_many_parts(
        json!({"metadata": {"labels": {"kong.com/selector": "a"}}}), json!({"metadata": {"labels": {"kong.com/selector": "b"}}}),
        Some("metadata.labels[kong.com/selector]")
    )]
    #[case::an_empty_label_is_one(json!({"labels": {"a": ""}}), json!({"labels": {}}), Some("labels.a"))]
    #[case::a_label_is_no_number(json!({"labels": {"a": "1"}}), json!({"labels": {"a": 1}}), Some("labels.a"))]
    #[case::a_label_named_as_a_field(json!({"labels": {"type": ""}}), json!({"labels": {"type": "x"}}), Some("labels.type"))]
    #[case::empty_is_dropped(json!({"a": {}, "b": [], "c": "", "d": null, "e": {"f": {}}}), json!({}), None)]
    #[case::empty_is_not_full(json!({"args": []}), json!({"args": ["x"]}), Some("args"))]
    #[case::an_object_of_others(json!({"securityContext": {}}), json!({"securityContext": {"fsGroup": 1}}), None)]
    #[case::false_is_dropped(json!({"hostNetwork": false, "initialDelaySeconds": 0}), json!({}), None)]
    #[case::false_is_not_true(json!({"hostNetwork": false}), json!({"hostNetwork": true}), Some("hostNetwork"))]
    #[case::false_that_is_kept(json!({"automountServiceAccountToken": false}), json!({}), Some("automountServiceAccountToken"))]
    #[case::zero_is_defaulted(json!({"timeoutSeconds": 0, "protocol": "", "nodePort": 0}), json!({"timeoutSeconds": 1, "protocol": "TCP", "nodePort": 30080}), None)]
    #[case::zero_replicas(json!({"replicas": 0}), json!({"replicas": 3}), Some("replicas"))]
    #[case::integers_or_strings(json!({"a": 8000, "b": "25%"}), json!({"a": "8000", "b": "25%"}), None)]
    #[case::names_of_ports(json!({"targetPort": "proxy"}), json!({"targetPort": 8000}), Some("targetPort"))]
    #[case::no_object(json!({"a": 1}), json!(null), Some(""))]
    fn members(#[case] wanted: Value, #[case] found: Value, #[case] path: Option<&str>) {
        assert_eq!(differs(&wanted, &found).as_deref(), path);
    }

    #[rstest]
    #[case::limits(json!({"resources": {"limits": {"cpu": "1000m", "memory": "2048Mi"}}}), json!({"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}), None)]
    #[case::a_number(json!({"requests": {"cpu": 2}}), json!({"requests": {"cpu": "2"}}), None)]
    #[case::changed(json!({"limits": {"memory": "2000Mi"}}), json!({"limits": {"memory": "2Gi"}}), Some("limits.memory"))]
    #[case::size_limit(json!({"emptyDir": {"sizeLimit": "1024Mi"}}), json!({"emptyDir": {"sizeLimit": "1Gi"}}), None)]
    #[case::a_metric(json!({"target": {"type": "Value", "value": "1000m"}}), json!({"target": {"type": "Value", "value": "1"}}), None)]
    #[case::a_variable_is_text(json!({"env": [{"name": "A", "value": "1000m"}]}), json!({"env": [{"name": "A", "value": "1"}]}), Some("env[name=A].value"))]
    #[case::no_quantity(json!({"limits": {"cpu": "x"}}), json!({"limits": {"cpu": "y"}}), Some("limits.cpu"))]
    #[case::gone(json!({"limits": {"cpu": "1"}}), json!({"limits": {}}), Some("limits.cpu"))]
    fn quantities(#[case] wanted: Value, #[case] found: Value, #[case] path: Option<&str>) {
        assert_eq!(differs(&wanted, &found).as_deref(), path);
    }

    #[rstest]
    #[case::by_name(
        json!({"containers": [{"name": "proxy", "image": "a"}]}),
        json!({"containers": [{"name": "injected", "image": "x"}, {"name": "proxy", "image": "a", "tty": true}]}),
        None
    )]
    #[case::changed(
        json!({"containers": [{"name": "proxy", "image": "a"}]}), json!({"containers": [{"name": "proxy", "image": "b"}]}),
        Some("containers[name=proxy].image")
    )]
    #[case::gone(
        json!({"containers": [{"name": "proxy"}, {"name": "log"}]}), json!({"containers": [{"name": "proxy"}]}),
        Some("containers[name=log]")
    )]
    #[case::ports_of_a_service(
        json!({"ports": [{"port": 80, "targetPort": 8000}]}),
        json!({"ports": [{"port": 443, "protocol": "TCP"}, {"port": 80, "protocol": "TCP", "targetPort": 8000, "nodePort": 30080}]}),
        None
    )]
    #[case::another_protocol(json!({"ports": [{"port": 80}]}), json!({"ports": [{"port": 80, "protocol": "UDP"}]}), Some("ports[port=80,protocol=TCP]"))]
    #[case::ports_of_a_container(
        json!({"ports": [{"containerPort": 8000, "name": "proxy"}]}), json!({"ports": [{"containerPort": 8000, "protocol": "TCP", "name": "p"}]}),
        Some("ports[containerPort=8000,protocol=TCP].name")
    )]
    #[case::owners_by_uid(
        json!({"ownerReferences": [{"uid": "u-1", "controller": true}]}),
        json!({"ownerReferences": [{"uid": "u-0"}, {"uid": "u-1", "controller": true, "blockOwnerDeletion": true}]}),
        None
    )]
    #[case::no_controller(
        json!({"ownerReferences": [{"uid": "u-1", "controller": true}]}), json!({"ownerReferences": [{"uid": "u-1"}]}),
        Some("ownerReferences[uid=u-1].controller")
    )]
    #[case::order_of_variables(
        json!({"env": [{"name": "A"}, {"name": "B"}]}), json!({"env": [{"name": "B"}, {"name": "A"}]}), Some("env")
    )]
    #[case::variables_of_others_between(
        json!({"env": [{"name": "A"}, {"name": "B"}]}), json!({"env": [{"name": "X"}, {"name": "A"}, {"name": "Y"}, {"name": "B"}]}), None
    )]
    #[case::order_of_volumes(
        json!({"volumes": [{"name": "a"}, {"name": "b"}]}), json!({"volumes": [{"name": "b"}, {"name": "a"}]}), None
    )]
    #[case::another_source(
        json!({"volumes": [{"name": "a", "emptyDir": {}}]}), json!({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}),
        Some("volumes[name=a].emptyDir")
    )]
    #[case::none_of_ours(json!({"volumes": []}), json!({"volumes": [{"name": "injected"}]}), None)]
    #[case::a_whole_list(json!({"command": ["a", "b"]}), json!({"command": ["b", "a"]}), Some("command[0]"))]
    #[case::a_longer_list(json!({"tolerations": [{"key": "a"}]}), json!({"tolerations": [{"key": "a"}, {"key": "b"}]}), Some("tolerations"))]
    #[case::defaults_in_a_whole_list(
        json!({"metrics": [{"type": "Resource"}]}), json!({"metrics": [{"type": "Resource", "resource": {}}]}), None
    )]
    fn lists_of(#[case] wanted: Value, #[case] found: Value, #[case] path: Option<&str>) {
        assert_eq!(differs(&wanted, &found).as_deref(), path);
    }
}
