//! The Services of one side: for the traffic, and for the admin API of its pods.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::invalid::{FieldPlace, InvalidTemplate, TemplateProblem, at};
use super::owner::{ChildMetadata, DataPlaneOwner};
use crate::api::labels;
use crate::data_plane::rollout::side::{SideState, preview_of};

const INGRESS: [&str; 3] = ["network", "services", "ingress"];
const PLACE: &str = "spec.network.services.ingress";
const LONGEST: usize = 63;

/// Port of the admin API.
const ADMIN_PORT: u16 = 8444;
/// Where a port leads that names no target.
const DEFAULT_TARGET: u16 = 8000;

/// Name of the Service that a side's traffic comes through: the one that the spec fixes, or one that follows from
/// the DataPlane's.
pub fn ingress_service_name(
    owner: &DataPlaneOwner,
    spec: &Value,
    state: SideState,
) -> Result<String, InvalidTemplate> {
    let place = FieldPlace::root(PLACE);
    let place = place.field("name");
    let Some(fixed) = at(spec, &INGRESS).and_then(|ingress| at(ingress, &["name"])) else {
        return Ok(owner.ingress_name(state));
    };
    match (place.string(fixed)?, state) {
        ("", _) => Ok(owner.ingress_name(state)),
        (fixed, _) if !is_service_name(fixed) => Err(place.has(TemplateProblem::ServiceName)),
        (fixed, SideState::Live) => Ok(fixed.to_owned()),
        (fixed, SideState::Preview) => Ok(preview_of(fixed)),
    }
}

/// The Service that the traffic comes through.
///
/// That of the preview is reached inside the cluster only, and has neither the ports of nodes nor the labels and
/// annotations that the spec asks for: a load balancer or a DNS name would lead to what is not promoted.
pub fn ingress_service(
    owner: &DataPlaneOwner,
    spec: &Value,
    state: SideState,
    selector: &str,
) -> Result<Value, InvalidTemplate> {
    let users = match state {
        SideState::Live => ChildMetadata::of(spec, &INGRESS)?,
        SideState::Preview => ChildMetadata::default(),
    };
    let ingress = at(spec, &INGRESS).unwrap_or(&Value::Null);
    let mut body = json!({
        "type": "ClusterIP",
        "internalTrafficPolicy": "Cluster",
        "ports": ports(ingress, state)?,
        "selector": owner.selector_of_services(selector),
    });
    if state == SideState::Live {
        set_traffic(&mut body, ingress)?;
    }
    let labels = service_labels(state, labels::INGRESS);
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owner.metadata(&ingress_service_name(owner, spec, state)?, &labels, users),
        "spec": body,
    }))
}

/// The Service for the admin API of the pods: headless, as its clients speak to each pod, and with the pods that are
/// not ready, as they wait for their configuration.
pub fn admin_service(owner: &DataPlaneOwner, state: SideState, selector: &str) -> Value {
    let labels = service_labels(state, labels::ADMIN);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owner.metadata(&owner.admin_name(state), &labels, ChildMetadata::default()),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "ports": [{"name": "admin", "protocol": "TCP", "port": ADMIN_PORT, "targetPort": ADMIN_PORT}],
            "selector": owner.selector_of_services(selector),
        },
    })
}

fn service_labels(state: SideState, kind: &'static str) -> [(&'static str, &'static str); 2] {
    [(labels::SERVICE_STATE, state.as_str()), (labels::SERVICE_TYPE, kind)]
}

/// Type and policies of the live Service. What has a default is stated, so that a hand edit of it is one.
fn set_traffic(body: &mut Value, ingress: &Value) -> Result<(), InvalidTemplate> {
    let place = FieldPlace::root(PLACE);
    let text = |field: &str| match at(ingress, &[field]) {
        Some(value) => {
            place.field(field).string(value).map(|text| Some(text).filter(|text| !text.is_empty()))
        }
        None => Ok(None),
    };
    let service_type = text("type")?.unwrap_or("LoadBalancer");
    body["type"] = Value::from(service_type);
    if service_type != "ClusterIP" {
        body["externalTrafficPolicy"] = Value::from(text("externalTrafficPolicy")?.unwrap_or("Cluster"));
    }
    if let Some(policy) = text("internalTrafficPolicy")? {
        body["internalTrafficPolicy"] = Value::from(policy);
    }
    if let Some(distribution) = text("trafficDistribution")? {
        body["trafficDistribution"] = Value::from(distribution);
    }
    Ok(())
}

/// Ports of the Service: those of the spec, each once, or Kong's 80 and 443.
fn ports(ingress: &Value, state: SideState) -> Result<Vec<Value>, InvalidTemplate> {
    let place = FieldPlace::root(PLACE);
    let place = place.field("ports");
    let listed = at(ingress, &["ports"]).map_or(Ok(&[][..]), |ports| place.list(ports))?;
    if listed.is_empty() {
        return Ok(vec![
            json!({"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8000}),
            json!({"name": "https", "protocol": "TCP", "port": 443, "targetPort": 8443}),
        ]);
    }
    let mut seen = BTreeSet::new();
    let mut ports = Vec::new();
    for (i, value) in listed.iter().enumerate() {
        let place = place.index(i);
        let port = ServicePort::read(place.object(value)?, &place)?;
        if seen.insert((port.number, port.protocol)) {
            ports.push(port);
        }
    }
    let named = ports.len() > 1;
    Ok(ports.into_iter().map(|port| port.body(state, named)).collect())
}

struct ServicePort<'a> {
    name: Option<&'a str>,
    number: u16,
    protocol: &'a str,
    target: Value,
    node_port: Option<u16>,
}

impl<'a> ServicePort<'a> {
    fn read(port: &'a Map<String, Value>, place: &FieldPlace<'_>) -> Result<Self, InvalidTemplate> {
        let member = |field: &str| port.get(field).filter(|value| !value.is_null());
        let text = |field: &str| match member(field) {
            Some(value) => {
                place.field(field).string(value).map(|text| Some(text).filter(|text| !text.is_empty()))
            }
            None => Ok(None),
        };
        let number = |field: &str| match member(field).filter(|value| value.as_u64() != Some(0)) {
            Some(value) => {
                let number = value.as_u64().and_then(|number| u16::try_from(number).ok());
                number.map(Some).ok_or_else(|| place.field(field).has(TemplateProblem::Port))
            }
            None => Ok(None),
        };
        let target = match member("targetPort") {
            Some(Value::String(name)) if name.is_empty() => Value::from(DEFAULT_TARGET),
            // The API server takes no digits as a name.
            Some(Value::String(name)) => name.parse::<u16>().map_or(Value::from(name.as_str()), Value::from),
            _ => Value::from(number("targetPort")?.unwrap_or(DEFAULT_TARGET)),
        };
        Ok(Self {
            name: text("name")?,
            number: number("port")?.ok_or_else(|| place.field("port").has(TemplateProblem::Port))?,
            protocol: text("protocol")?.unwrap_or("TCP"),
            target,
            node_port: number("nodePort")?,
        })
    }

    /// The API server wants names where there is more than one port.
    fn body(self, state: SideState, named: bool) -> Value {
        let mut body = json!({"protocol": self.protocol, "port": self.number, "targetPort": self.target});
        let generated = named.then(|| format!("{}-{}", self.protocol.to_ascii_lowercase(), self.number));
        if let Some(name) = self.name.map(str::to_owned).or(generated) {
            body["name"] = Value::from(name);
        }
        if let (SideState::Live, Some(node_port)) = (state, self.node_port) {
            body["nodePort"] = Value::from(node_port);
        }
        body
    }
}

/// Whether the API server takes it as the name of a Service (RFC 1035).
fn is_service_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(inner)
        && !name.ends_with('-')
}
