//! The verbs that can change the parameters of an Instance.

use serde_json::{Value, json};

use super::{Client, manifest};
use crate::support::client::Answer;

/// A write by one verb: of this object as it is, with these parameters.
pub type Write = fn(&Client, &str, &Value, &Value) -> Answer;

pub fn put(user: &Client, path: &str, _: &Value, parameters: &Value) -> Answer {
    user.put_edited(path, |object| object["spec"]["parameters"] = parameters.clone())
}

/// As a client that knows nothing of ours sends it.
pub fn put_of_a_manifest(user: &Client, path: &str, found: &Value, parameters: &Value) -> Answer {
    let mut sent = manifest(found);
    sent["spec"]["parameters"] = parameters.clone();
    user.put_edited(path, |object| {
        let version = object["metadata"]["resourceVersion"].take();
        *object = sent.clone();
        object["metadata"]["resourceVersion"] = version;
    })
}

pub fn json_patch(user: &Client, path: &str, _: &Value, parameters: &Value) -> Answer {
    user.json_patch(path, &json!([{"op": "replace", "path": "/spec/parameters", "value": parameters}]))
}

pub fn merge_patch(user: &Client, path: &str, found: &Value, parameters: &Value) -> Answer {
    let mut patch = parameters.clone();
    for gone in found["spec"]["parameters"].as_object().unwrap().keys() {
        if parameters.get(gone).is_none() {
            patch[gone] = Value::Null;
        }
    }
    user.merge_patch(path, &json!({"spec": {"parameters": patch}}))
}

pub fn forced_apply(user: &Client, path: &str, found: &Value, parameters: &Value) -> Answer {
    let mut object = manifest(found);
    object["spec"]["parameters"] = parameters.clone();
    user.server_side_apply(&format!("{path}?fieldManager=other&force=true"), &object)
}

/// All of them.
pub const WRITES: [Write; 5] = [put, put_of_a_manifest, json_patch, merge_patch, forced_apply];
