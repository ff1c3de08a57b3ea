//! The projection of an object, and of a spec that an annotation only refers to: only the fields that
//! the rules and the overview read.

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use serde_json::{Map, Value, json};

use super::group;
use super::overview;
use super::reading::{FILE_VARIABLE, VARIABLE};
use super::serving;
use super::sources::LONGEST;
use crate::api::PROXY;
use crate::api::stamp::StatusSelectors;
use crate::data_plane::rollout::report::{GATES_PASSED, ROLLED_OUT};

/// Only the fields of a gateway, a producer or a Service that the rules read, and that tell people how it is.
pub(super) fn pruned(object: &Value, name: &NamespacedName) -> Value {
    let metadata = &object["metadata"];
    let spec = match object["kind"].as_str() {
        Some("DataPlane") => {
            let deployment = &object["spec"]["deployment"];
            let mut kept = some(deployment, &["replicas", "rollout"]);
            kept["podTemplateSpec"] = template(&deployment["podTemplateSpec"]);
            json!({ "deployment": kept })
        }
        Some("Deployment") => {
            let mut kept = some(&object["spec"], &["replicas"]);
            kept["template"] = template(&object["spec"]["template"]);
            kept
        }
        Some("Service") => some(&object["spec"], &["selector"]),
        Some("Gateway") => {
            let mut kept = some(&object["spec"], &["gatewayClassName"]);
            let listeners = object["spec"]["listeners"].as_array().into_iter().flatten();
            kept["listeners"] = listeners.map(|listener| some(listener, &["allowedRoutes"])).collect();
            kept
        }
        Some("GatewayClass") => some(&object["spec"], &["controllerName"]),
        _ => {
            const FIELDS: [&str; 4] = ["dataplane", "ingressClass", "gatewayClass", "watchNamespaces"];
            let mut kept = some(&object["spec"], &FIELDS);
            kept["deployment"]["podTemplateSpec"] =
                template(&object["spec"]["deployment"]["podTemplateSpec"]);
            kept
        }
    };
    let mut kept = some(object, &["apiVersion", "kind"]);
    kept["metadata"] = json!({
        "namespace": name.namespace,
        "name": name.name,
        "uid": metadata["uid"],
        "generation": metadata["generation"],
        "creationTimestamp": metadata["creationTimestamp"],
        "labels": some(&metadata["labels"], &[meta::GUARD]),
        "annotations": some(&metadata["annotations"], &[meta::CONFIG_PRODUCER, meta::GUARDED_SOURCES, meta::LAST_APPLIED_SPEC]),
    });
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let gateways: Vec<Value> = owners.filter(|owner| serving::is_gateway(owner)).cloned().collect();
    if !gateways.is_empty() {
        kept["metadata"]["ownerReferences"] = json!(gateways);
    }
    kept["spec"] = spec;
    kept["status"] = some(&object["status"], &["replicas", "readyReplicas", "selector"]);
    if let Some(preview) = StatusSelectors::of(&object["status"]).preview {
        kept["status"]["rollout"]["deployment"]["selector"] = json!(preview);
    }
    let rolled_out = told(&object["status"]["rollout"], &[ROLLED_OUT, GATES_PASSED]);
    if rolled_out.as_array().is_some_and(|found| !found.is_empty()) {
        kept["status"]["rollout"]["conditions"] = rolled_out;
    }
    kept["status"]["conditions"] = told(&object["status"], &overview::CONDITIONS);
    kept
}

/// The conditions of these types, without unused fields.
fn told(status: &Value, types: &[&str]) -> Value {
    const FIELDS: [&str; 6] =
        ["type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"];
    let all = status["conditions"].as_array().into_iter().flatten();
    let told = all.filter(|condition| condition["type"].as_str().is_some_and(|type_| types.contains(&type_)));
    told.map(|condition| {
        let mut kept = some(condition, &FIELDS);
        if let Some(Value::String(message)) = kept.get_mut("message") {
            message.truncate(message.floor_char_boundary(MESSAGE_LIMIT));
        }
        kept
    })
    .collect()
}

/// Limit of the bytes of a condition's message; the API server's is 32 KiB.
const MESSAGE_LIMIT: usize = 1024;

/// Limit of the bytes of an excerpt; the deciding fields are far smaller.
const EXCERPT_LIMIT: usize = 8 * 1024;

/// The fields of a DataPlane's spec that decide about its router flavor, as JSON that reads like the
/// spec; `None` beyond 8 KiB.
pub fn excerpt(spec: &Value) -> Option<String> {
    let found = &spec["deployment"]["podTemplateSpec"];
    let mut kept = template(found);
    for field in ["containers", "initContainers"] {
        for container in kept["spec"][field].as_array_mut().into_iter().flatten() {
            if field == "initContainers" || container["name"] != PROXY {
                // Of other containers, the rules read only whether they set the variable.
                *container = some(container, &["name", "env"]);
            }
        }
    }
    let names_fields = kept["spec"].to_string().contains("\"fieldRef\"");
    kept["metadata"] = if names_fields { shortened(&kept["metadata"]) } else { json!({}) };
    let text = json!({"deployment": {"podTemplateSpec": kept}}).to_string();
    (text.len() <= EXCERPT_LIMIT).then_some(text)
}

/// Labels and annotations, each cut to the length that can matter.
fn shortened(metadata: &Value) -> Value {
    let mut kept = metadata.clone();
    for member in kept.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
        for value in member.as_object_mut().into_iter().flat_map(|pairs| pairs.values_mut()) {
            if let Value::String(text) = value {
                text.truncate(text.floor_char_boundary(LONGEST + 4));
            }
        }
    }
    kept
}

/// The projection of a pod template.
pub(super) fn template(template: &Value) -> Value {
    let containers = |field: &str, keep: fn(&Value) -> Value| -> Value {
        template["spec"][field].as_array().into_iter().flatten().map(keep).collect()
    };
    json!({
        "metadata": some(&template["metadata"], &["labels", "annotations"]),
        "spec": {
            "containers": containers("containers", container),
            "initContainers": containers("initContainers", container),
        },
    })
}

fn container(container: &Value) -> Value {
    let mut kept = some(container, &["name", "image", "command", "args", "envFrom", "volumeMounts"]);
    kept["env"] = variables(&container["env"]);
    kept
}

/// The variables that decide, or all of them if these refer to others.
fn variables(env: &Value) -> Value {
    let decides = |entry: &&Value| {
        let name = entry["name"].as_str().unwrap_or_default();
        [VARIABLE, FILE_VARIABLE, group::ADMIN_SERVICE_VARIABLE].contains(&name)
            || group::VARIABLES.contains(&name)
    };
    let entries = || env.as_array().into_iter().flatten();
    let refers = |entry: &Value| entry["value"].as_str().is_some_and(|value| value.contains('$'));
    if entries().filter(decides).any(refers) {
        return env.clone();
    }
    entries().filter(decides).cloned().collect()
}

fn some(object: &Value, members: &[&str]) -> Value {
    let found = members.iter().filter_map(|member| Some(((*member).to_owned(), object.get(member)?.clone())));
    Value::Object(found.collect::<Map<_, _>>())
}
