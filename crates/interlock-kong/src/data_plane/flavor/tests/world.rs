//! Gateways and their related objects, in few words.

use serde_json::{Value, json};

use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::change::Findings;
use crate::data_plane::flavor::change::FlavorChange;
use crate::data_plane::flavor::compatibility::ProducerConfiguration;
use crate::data_plane::flavor::flavor_override::FlavorOverride;
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::routes::Inventory;
use crate::data_plane::flavor::sources::GivenSources;
use crate::data_plane::flavor::validate::judge;

/// A DataPlane `kong/edge` with one container, and changes staged or not.
pub fn data_plane(container: Value, staged: bool) -> Value {
    let strategy = if staged { json!({"strategy": {"blueGreen": {}}}) } else { Value::Null };
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1",
        "kind": "DataPlane",
        "metadata": {"namespace": "kong", "name": "edge"},
        "spec": {"deployment": {
            "rollout": strategy,
            "podTemplateSpec": {
                "metadata": {"labels": {"flavor": "expressions"}},
                "spec": {"containers": [container]},
            },
        }},
    })
}

/// The container of Kong, with a flavor in its environment.
pub fn proxy(image: &str, flavor: Option<&str>) -> Value {
    let env: Vec<Value> =
        flavor.into_iter().map(|value| json!({"name": "KONG_ROUTER_FLAVOR", "value": value})).collect();
    json!({"name": "proxy", "image": image, "env": env})
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "kong", "name": name}, "data": data})
}

pub fn http_route(namespace: &str, name: &str, matched: Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"parentRefs": [{"namespace": "kong", "name": "gw"}], "rules": [{"matches": [matched]}]},
    })
}

/// The routes of `kong/edge`, where Gateway `kong/gw` admits routes of all namespaces.
pub fn served(objects: &[Value]) -> Inventory {
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"namespace": "kong", "name": "gw"},
        "spec": {"gatewayClassName": "kong", "listeners": [{"allowedRoutes": {"namespaces": {"from": "All"}}}]},
    });
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "kong"},
        "spec": {"controllerName": "konghq.com/kic-gateway-controller"},
    });
    let edge = data_plane(proxy("kong:3.9", None), false);
    Inventory::of(&edge, &[objects, &[gateway, class]].concat(), "kong")
}

pub fn read(object: &Value, objects: &[Value]) -> Gateway {
    Gateway::read(object, "kong", &GivenSources::of(objects, "kong")).unwrap().unwrap()
}

/// A change to validate.
pub struct Case {
    pub live: Option<Gateway>,
    pub stored: Option<Gateway>,
    pub new: Gateway,
    pub routes: Inventory,
    pub configuration: ProducerConfiguration,
    pub stopped: bool,
    pub allowance: Option<FlavorOverride>,
}

impl Case {
    /// A change of a gateway that runs its stored spec.
    pub fn change(old: &Gateway, new: &Gateway) -> Self {
        Self {
            live: Some(old.clone()),
            stored: Some(old.clone()),
            new: new.clone(),
            routes: Inventory::Unseen,
            configuration: ProducerConfiguration::Usual,
            stopped: false,
            allowance: None,
        }
    }

    pub fn judge(&self) -> Findings {
        judge(&FlavorChange {
            subject: &self.new.subject,
            live: self.live.as_ref().map(|gateway| &gateway.spec.reading),
            stored: self.stored.as_ref().map(|gateway| &gateway.spec),
            new: &self.new.spec,
            stopped: self.stopped,
            routes: &self.routes,
            configuration: self.configuration,
            group: None,
            allowance: self.allowance.as_ref(),
        })
    }
}

/// A DataPlane with an image and a flavor.
pub fn plane(image: &str, flavor: Option<&str>, staged: bool) -> Gateway {
    read(&data_plane(proxy(image, flavor), staged), &[])
}

/// The findings of the rules, a line each.
pub fn lines(findings: &Findings) -> Vec<String> {
    let denied = findings.denied.iter().map(|finding| format!("denied {finding}"));
    denied.chain(findings.warned.iter().map(|finding| format!("warned {finding}"))).collect()
}

pub const T: Flavor = Flavor::Traditional;
pub const TC: Flavor = Flavor::TraditionalCompatible;
pub const EX: Flavor = Flavor::Expressions;
