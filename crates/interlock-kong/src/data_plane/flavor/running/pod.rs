//! A pod as the API server returns it: whether it is the gateway's, its Admin API, and the flavor in
//! its environment.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::object::meta_str;
use interlock_core::api::pod::PodTemplate;
use serde::Deserialize as _;
use serde_json::Value;

use crate::api::condition;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::environment::Surroundings;
use crate::data_plane::flavor::kong_container;
use crate::data_plane::flavor::reading::{Effective, FlavorReading};
use crate::data_plane::flavor::sources::Sources;

/// Name of the port that serves the Admin API without TLS, as charts call it; without that port, the
/// Admin API needs a certificate that Interlock lacks.
const ADMIN_PORT: &str = "admin";

/// The Admin API of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminEndpoint {
    /// The pod's IP address.
    pub address: String,
    pub port: u16,
}

/// Whether an object has a controller among these.
pub fn is_of(object: &Value, owners: &BTreeSet<String>) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut controllers = references.filter(|reference| reference["controller"] == true);
    controllers.any(|reference| reference["uid"].as_str().is_some_and(|uid| owners.contains(uid)))
}

/// Whether a pod runs or is about to.
pub fn is_alive(pod: &Value) -> bool {
    let over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    !over && meta_str(pod, "deletionTimestamp").is_none()
}

pub fn is_ready(pod: &Value) -> bool {
    condition(&pod["status"], "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Since when a pod has not been ready, as API text; `None` if it is ready.
pub fn unready_since(pod: &Value) -> Option<&str> {
    if is_ready(pod) {
        return None;
    }
    let reported = condition(&pod["status"], "Ready").and_then(|ready| ready["lastTransitionTime"].as_str());
    reported.or(meta_str(pod, "creationTimestamp"))
}

pub fn labels(object: &Value) -> BTreeMap<String, String> {
    texts(&object["metadata"]["labels"])
}

/// A map of strings.
pub fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// The Admin API of a pod, or why it is not available.
pub fn endpoint(pod: &Value) -> Result<AdminEndpoint, String> {
    if pod["spec"]["hostNetwork"] == true {
        return Err("it has the address of its node".to_owned());
    }
    let Some(address) = pod["status"]["podIP"].as_str().filter(|address| !address.is_empty()) else {
        return Err("it has no address yet".to_owned());
    };
    let template = PodTemplate::deserialize(pod).map_err(|error| format!("it cannot be read: {error}"))?;
    let kong = kong_container::find(&template).map_err(|unknown| unknown.to_string())?;
    let mut ports = kong.ports.iter().filter(|port| port.name == ADMIN_PORT);
    let port = ports.find_map(|port| u16::try_from(port.container_port).ok());
    let port =
        port.ok_or_else(|| format!("container \"{}\" has no port named \"{ADMIN_PORT}\"", kong.name))?;
    Ok(AdminEndpoint { address: address.to_owned(), port })
}

/// The flavor in the environment of a pod, or why it is unknown.
///
/// `sources` have the present values of ConfigMaps and Secrets, not those at the start of the pod.
pub fn declared(pod: &Value, sources: &dyn Sources) -> Result<Flavor, String> {
    let template = PodTemplate::deserialize(pod).map_err(|error| format!("it cannot be read: {error}"))?;
    let namespace = meta_str(pod, "namespace").unwrap_or_default();
    let surroundings = Surroundings { namespace, template: &template.metadata, sources };
    match FlavorReading::of_any(&template, surroundings).effective {
        Effective::Known(flavor) => Ok(flavor),
        Effective::Unknown(why) => Err(why.to_string()),
        other => Err(format!("its environment gives {other}")),
    }
}
