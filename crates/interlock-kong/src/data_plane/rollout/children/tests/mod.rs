//! Tables of what DataPlanes are made of.

mod deployments;
mod hostile;
mod services;

use serde_json::{Value, json};

use super::*;
use crate::data_plane::rollout::side::{Colour, DeploymentIdentity, SideState};

/// The DataPlane `edge` in the namespace `kong`.
fn edge() -> DataPlaneOwner {
    DataPlaneOwner {
        namespace: "kong".to_owned(),
        name: "edge".to_owned(),
        uid: "u-1".to_owned(),
        service_selector: None,
        kept: None,
    }
}

fn blue() -> DeploymentIdentity {
    edge().identity(Colour::Blue)
}

/// A spec with this pod template.
fn with_template(template: Value) -> Value {
    json!({"deployment": {"podTemplateSpec": template}})
}

/// A spec whose pod template has these members beside the container `proxy`.
fn with_proxy(proxy: Value, rest: Value) -> Value {
    let mut container = json!({"name": "proxy", "image": "kong:3.9"});
    json_patch::merge(&mut container, &proxy);
    let mut spec = json!({"containers": [container]});
    json_patch::merge(&mut spec, &rest);
    with_template(json!({"spec": spec}))
}

/// The live Deployment with one replica and a certificate.
fn live(spec: &Value) -> Value {
    deployment(&edge(), spec, &blue(), SideState::Live, Some(1), Some("edge-certificate")).unwrap()
}

fn owner_references() -> Value {
    json!([{
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane", "name": "edge", "uid": "u-1",
        "controller": true,
    }])
}

/// The element of a list with that name.
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|element| element["name"] == name).unwrap_or(&Value::Null)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|element| element["name"].as_str().unwrap()).collect()
}
