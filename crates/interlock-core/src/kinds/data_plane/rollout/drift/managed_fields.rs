//! Which fields an apply has owned: `metadata.managedFields` in the format `FieldsV1`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::kinds::data_plane::rollout::list_keys::ListKey;

type Fields = Map<String, Value>;

/// Whether a manager's last apply of an object owns a field that `wanted` leaves out: applying `wanted` removes it.
///
/// What is written in a way that is not known here counts as nothing more, as an apply would not change it.
pub fn owns_more(found: &Value, wanted: &Value, manager: &str) -> bool {
    let entries = found.pointer("/metadata/managedFields").and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter(|entry| is_apply_of(entry, manager))
        .filter_map(|entry| entry.get("fieldsV1")?.as_object())
        .any(|fields| names_more("", fields, wanted))
}

fn is_apply_of(entry: &Value, manager: &str) -> bool {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    text("manager") == manager && text("operation") == "Apply" && text("subresource").is_empty()
}

/// Whether the fields below a field name one that a value lacks.
fn names_more(field: &str, fields: &Fields, value: &Value) -> bool {
    let elements = Elements::new(field, value);
    fields.iter().any(|(name, below)| {
        let below = below.as_object();
        match name.split_once(':') {
            Some(("f", member)) => match value.get(member).filter(|value| !value.is_null()) {
                Some(value) => below.is_some_and(|below| names_more(member, below, value)),
                None => true,
            },
            Some(("k", key)) => match elements.keyed(key) {
                Found::Element(element) => below.is_some_and(|below| names_more("", below, element)),
                Found::Nothing => true,
                Found::Unknown => false,
            },
            Some(("v", text)) => match (serde_json::from_str::<Value>(text), value.as_array()) {
                (Ok(item), Some(list)) => !list.contains(&item),
                _ => false,
            },
            // `.` is the value itself; of others nothing is known.
            _ => false,
        }
    })
}

/// The elements of a list, by key.
struct Elements<'a> {
    key: Option<ListKey>,
    by_key: HashMap<String, &'a Value>,
}

enum Found<'a> {
    Element(&'a Value),
    Nothing,
    Unknown,
}

impl<'a> Elements<'a> {
    fn new(field: &str, value: &'a Value) -> Self {
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let key = ListKey::of(field, list);
        let by_key =
            key.map(|key| list.iter().filter_map(|element| Some((key.value(element)?, element))).collect());
        Self { key, by_key: by_key.unwrap_or_default() }
    }

    fn keyed(&self, text: &str) -> Found<'a> {
        let key = serde_json::from_str::<Fields>(text).ok();
        match (self.key, key) {
            (Some(list), Some(key)) => match list.of_element(&key) {
                Some(key) => self.by_key.get(&key).map_or(Found::Nothing, |element| Found::Element(element)),
                None => Found::Unknown,
            },
            _ => Found::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn owned(fields: Value) -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "interlock", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "interlock", "operation": "Apply", "subresource": "scale", "fieldsV1": {"f:spec": {"f:paused": {}}}},
            {"manager": "interlock", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields},
        ]}})
    }

    fn wanted() -> Value {
        json!({
            "metadata": {"labels": {"app": "edge"}, "ownerReferences": [{"uid": "u-1", "kind": "DataPlane"}]},
            "spec": {
                "selector": {"matchLabels": {"app": "edge"}},
                "ports": [{"port": 80, "targetPort": 8000}],
                "template": {"spec": {"containers": [{
                    "name": "proxy",
                    "image": "kong",
                    "command": ["kong"],
                    "ports": [{"containerPort": 8000, "protocol": "TCP"}],
                    "env": [{"name": "A", "value": "1"}],
                }]}},
            },
            "finalizers": ["a"],
        })
    }

    #[rstest]
    #[case::nothing(json!({}), false)]
    #[case::the_same(json!({
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:ownerReferences": {".": {}, "k:{\"uid\":\"u-1\"}": {}}},
        "f:spec": {"f:selector": {}, "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:targetPort": {}}},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": {
                ".": {}, "f:name": {}, "f:image": {}, "f:command": {},
                "f:ports": {"k:{\"containerPort\":8000,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
            }}}}},
    }), false)]
    #[case::a_label(json!({"f:metadata": {"f:labels": {"f:team": {}}}}), true)]
    #[case::a_label_with_a_colon(json!({"f:metadata": {"f:labels": {"f:a:b": {}}}}), true)]
    #[case::a_whole_map(json!({"f:metadata": {"f:annotations": {".": {}, "f:x": {}}}}), true)]
    #[case::the_replicas(json!({"f:spec": {"f:replicas": {}}}), true)]
    #[case::a_container(json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"log\"}": {".": {}}}}}}}), true)]
    #[case::a_variable(
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": {"f:env": {"k:{\"name\":\"B\"}": {".": {}}}}}}}}}),
        true
    )]
    #[case::a_field_of_a_variable(
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": {"f:env": {"k:{\"name\":\"A\"}": {"f:valueFrom": {}}}}}}}}}),
        true
    )]
    #[case::a_port_of_another_protocol(json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"UDP\"}": {}}}}), true)]
    #[case::a_value_of_a_set(json!({"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}), true)]
    #[case::the_values_of_a_set(json!({"f:finalizers": {"v:\"a\"": {}}}), false)]
    #[case::unknown_forms(json!({"x:y": {}, "f:spec": {"f:ports": {"i:7": {}, "k:no": {}, "k:{}": {}}}, "": {}, "f:metadata": 3}), false)]
    fn more(#[case] fields: Value, #[case] expected: bool) {
        assert_eq!(owns_more(&owned(fields), &wanted(), "interlock"), expected);
    }

    #[rstest]
    #[case::none(json!({}))]
    #[case::no_list(json!({"metadata": {"managedFields": {}}}))]
    #[case::no_entry(json!({"metadata": {"managedFields": [1, {"manager": "interlock", "operation": "Apply", "fieldsV1": []}]}}))]
    fn without_managed_fields_it_owns_nothing(#[case] found: Value) {
        assert!(!owns_more(&found, &wanted(), "interlock"));
    }
}
