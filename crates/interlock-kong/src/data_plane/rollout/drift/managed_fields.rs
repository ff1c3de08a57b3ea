//! Whose fields they are: `metadata.managedFields` in the format `FieldsV1`.

use interlock_core::strategic_merge::list_key::ListKey;
use serde_json::{Map, Value};

type Fields = Map<String, Value>;

/// Whether all fields of an apply body are still those of a manager, whatever their values: no other manager has
/// written them since. Where one differs all the same, an admission plugin changed it in that manager's own request.
pub fn owns_all(found: &Value, body: &Value, manager: &str) -> bool {
    let entries = found.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let owned: Vec<&Fields> = entries
        .filter(|entry| entry["manager"] == manager && entry.get("subresource").is_none())
        .filter_map(|entry| entry.get("fieldsV1")?.as_object())
        .filter(|fields| !fields.is_empty())
        .collect();
    has_all("", &owned, body)
}

/// Whether the fields below a field have all of a value.
fn has_all(field: &str, owned: &[&Fields], value: &Value) -> bool {
    // A field without any below it is owned as a whole.
    if owned.iter().any(|fields| fields.is_empty()) {
        return true;
    }
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, member)| !member.is_null() && !IDENTITY.contains(&(field, name.as_str())))
            .all(|(name, member)| {
                let below = below(owned, |owned| owned.strip_prefix("f:") == Some(name));
                !below.is_empty() && has_all(name, &below, member)
            }),
        Value::Array(list) => ListKey::of(field, list).is_none_or(|key| {
            list.iter().all(|element| {
                let wanted = key.value(element);
                let below = below(owned, |owned| {
                    let owned = owned.strip_prefix("k:").and_then(|text| serde_json::from_str(text).ok());
                    wanted.is_some() && owned.and_then(|owned| key.of_element(&owned)) == wanted
                });
                !below.is_empty() && has_all("", &below, element)
            })
        }),
        _ => true,
    }
}

/// Fields that no manager owns.
const IDENTITY: [(&str, &str); 4] =
    [("", "apiVersion"), ("", "kind"), ("metadata", "name"), ("metadata", "namespace")];

/// The fields below those whose name is meant.
fn below<'f>(owned: &[&'f Fields], is_meant: impl Fn(&str) -> bool) -> Vec<&'f Fields> {
    let named = owned.iter().flat_map(|fields| fields.iter()).filter(|(name, _)| is_meant(name));
    named.filter_map(|(_, below)| below.as_object()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn owned(fields: Value) -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "interlock", "operation": "Apply", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            // What an admission plugin changed in a request of ours.
            {"manager": "interlock", "operation": "Update", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {
                "f:containers": {"k:{\"name\":\"proxy\"}": {"f:image": {}}},
            }}}}},
            {"manager": "interlock", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields},
        ]}})
    }

    fn fields() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:ownerReferences": {"k:{\"uid\":\"u-1\"}": {}}},
            "f:spec": {
                "f:selector": {},
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:targetPort": {}}},
                "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": {
                    ".": {}, "f:name": {}, "f:command": {}, "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
                }}}},
            },
        })
    }

    fn body() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "namespace": "ns", "name": "d", "labels": {"app": "edge"},
                "ownerReferences": [{"uid": "u-1", "kind": "DataPlane"}],
            },
            "spec": {
                "selector": {"matchLabels": {"app": "edge"}},
                "ports": [{"port": 80, "targetPort": 8000}],
                "template": {"spec": {"containers": [{
                    "name": "proxy", "image": "kong", "command": ["kong"], "env": [{"name": "A", "value": "1"}],
                }]}},
            },
        })
    }

    #[rstest]
    #[case::all(json!({}), json!({}), true)]
    #[case::a_label_of_others(json!({"f:metadata": {"f:labels": null}}), json!({}), false)]
    #[case::an_owner_that_was_taken_off(json!({"f:metadata": {"f:ownerReferences": null}}), json!({}), false)]
    #[case::a_port_of_others(json!({"f:spec": {"f:ports": null}}), json!({}), false)]
    #[case::replicas_of_others(json!({}), json!({"spec": {"replicas": 3}}), false)]
    #[case::nothing(json!({"f:metadata": null, "f:spec": null}), json!({}), false)]
    fn whose_fields_they_are(#[case] without: Value, #[case] more: Value, #[case] expected: bool) {
        let (mut fields, mut body) = (fields(), body());
        json_patch::merge(&mut fields, &without);
        json_patch::merge(&mut body, &more);
        assert_eq!(owns_all(&owned(fields), &body, "interlock"), expected);
    }

    #[rstest]
    #[case::none(json!({}))]
    #[case::no_list(json!({"metadata": {"managedFields": {}}}))]
    #[case::no_entry(json!({"metadata": {"managedFields": [1, {"manager": "interlock", "fieldsV1": []}]}}))]
    #[case::unknown_forms(owned(json!({"x:y": {}, "f:spec": {"f:ports": {"i:7": {}, "k:no": {}}}, "": {}, "f:metadata": 3})))]
    fn without_managed_fields_it_owns_nothing(#[case] found: Value) {
        assert!(!owns_all(&found, &body(), "interlock"));
    }
}
