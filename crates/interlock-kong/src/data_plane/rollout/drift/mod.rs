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
mod tests;
