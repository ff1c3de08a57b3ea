//! Gateways that share one configuration producer, and with it one dialect.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::Flavor;
use super::gateway::{Gateway, UnreadableGateway};
use super::gateway_ref::GatewayRef;
use super::reading::Effective;
use super::sources::Sources;
use crate::api::meta;
use crate::api::object::{NamespacedName, annotation, meta_str};

/// Flag and variable that name the gateway for an ingress controller.
const ADMIN_SERVICE_FLAG: &str = "--kong-admin-svc";
pub(super) const ADMIN_SERVICE_VARIABLE: &str = "CONTROLLER_KONG_ADMIN_SVC";

/// A producer and its other gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerGroup {
    /// The producer.
    pub producer: String,
    /// The others, with the flavor of their live pods.
    pub others: Vec<(GatewayRef, Effective)>,
}

impl ProducerGroup {
    /// The group of a gateway among the objects of a cluster, with Deployments as they run; `None` if
    /// no producer is known.
    pub fn of(
        gateway: &Value,
        objects: &[impl Borrow<Value>],
        namespace: &str,
        sources: &dyn Sources,
    ) -> Result<Option<Self>, UnreadableGateway> {
        let producers = Producers::among(objects, namespace);
        let Some(producer) = producers.of(gateway) else { return Ok(None) };
        let own = Gateway::subject_of(gateway, namespace);
        let mut others = Vec::new();
        for object in objects.iter().map(Borrow::borrow).filter(|object| Gateway::is_guarded(object)) {
            if producers.of(object).as_ref() != Some(&producer) {
                continue;
            }
            let Some(subject) = Gateway::subject_of(object, namespace) else { continue };
            let runs = Gateway::runs(object, namespace, sources)?;
            others.extend(runs.filter(|_| Some(&subject) != own.as_ref()).map(|runs| (subject, runs)));
        }
        Ok(Some(Self { producer, others }))
    }

    /// The first of the others that would keep another dialect.
    pub fn conflicting(&self, to: Flavor) -> Option<(&GatewayRef, Flavor)> {
        let mut known =
            self.others.iter().filter_map(|(subject, effective)| Some((subject, effective.known()?)));
        known.find(|(_, flavor)| flavor.dialect() != to.dialect())
    }
}

/// The producers among the objects of a cluster, by gateway.
struct Producers<'o> {
    /// Default for an absent namespace.
    namespace: &'o str,
    /// ControlPlanes, by the DataPlane that they refer to.
    of_planes: BTreeMap<NamespacedName, &'o Value>,
    /// Ingress controllers that name an admin Service, with the Service.
    of_services: Vec<(&'o Value, &'o Value)>,
}

impl<'o> Producers<'o> {
    fn among(objects: &'o [impl Borrow<Value>], namespace: &'o str) -> Self {
        let mut producers = Self { namespace, of_planes: BTreeMap::new(), of_services: Vec::new() };
        let objects = || objects.iter().map(Borrow::borrow);
        let services: BTreeMap<NamespacedName, &Value> = objects()
            .filter(|object| object["kind"] == "Service")
            .filter_map(|service| Some((name_of(service, namespace)?, service)))
            .collect();
        for object in objects() {
            let here = namespace_of(object, namespace);
            if object["kind"] == "ControlPlane"
                && let Some(name) = controlled(object)
            {
                producers.of_planes.entry(NamespacedName::new(here, name)).or_insert(object);
            } else if is_guarded_controller(object)
                && let Some(service) = admin_service(object, here).and_then(|name| services.get(&name))
            {
                producers.of_services.push((object, service));
            }
        }
        producers
    }

    /// The producer of a gateway: the one that its annotation names, a ControlPlane that refers
    /// to it, or an ingress controller whose admin Service selects it.
    fn of(&self, gateway: &Value) -> Option<String> {
        let here = namespace_of(gateway, self.namespace);
        if let Some(named) = annotation(gateway, meta::CONFIG_PRODUCER) {
            return Some(if named.contains('/') { named.to_owned() } else { format!("{here}/{named}") });
        }
        let found = match gateway["kind"].as_str() {
            Some("DataPlane") => *self.of_planes.get(&name_of(gateway, self.namespace)?)?,
            Some("Deployment") => {
                let selects = |service: &Value| {
                    namespace_of(service, self.namespace) == here && selects(service, gateway)
                };
                self.of_services.iter().find(|(_, service)| selects(service))?.0
            }
            _ => return None,
        };
        Some(format!("{} {}", found["kind"].as_str()?, name_of(found, self.namespace)?))
    }
}

fn name_of(object: &Value, namespace: &str) -> Option<NamespacedName> {
    Some(NamespacedName::new(namespace_of(object, namespace), meta_str(object, "name")?))
}

fn namespace_of<'a>(object: &'a Value, default: &'a str) -> &'a str {
    meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(default)
}

/// The DataPlane of a ControlPlane, in both shapes of the reference: a name until v1beta1, an
/// object from v2beta1 on.
pub fn controlled(control_plane: &Value) -> Option<&str> {
    let reference = &control_plane["spec"]["dataplane"];
    reference.as_str().or(reference["ref"]["name"].as_str())
}

fn is_guarded_controller(object: &Value) -> bool {
    object["kind"] == "Deployment" && object["metadata"]["labels"][meta::GUARD] == meta::GUARD_FLAVOR
}

/// The Service through which an ingress controller reaches its gateway.
pub fn admin_service(controller: &Value, namespace: &str) -> Option<NamespacedName> {
    let containers = controller.pointer("/spec/template/spec/containers")?.as_array()?;
    let flag = containers
        .iter()
        .flat_map(|c| c["args"].as_array().into_iter().flatten())
        .find_map(|arg| arg.as_str()?.strip_prefix(ADMIN_SERVICE_FLAG)?.strip_prefix('='));
    let variable = || {
        let mut entries = containers.iter().flat_map(|c| c["env"].as_array().into_iter().flatten());
        entries.find(|entry| entry["name"] == ADMIN_SERVICE_VARIABLE)?["value"].as_str()
    };
    let named = flag.or_else(variable)?;
    Some(match named.split_once('/') {
        Some((namespace, name)) => NamespacedName::new(namespace, name),
        None => NamespacedName::new(namespace, named),
    })
}

fn selects(service: &Value, deployment: &Value) -> bool {
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selector = service["spec"]["selector"].as_object();
    selector
        .is_some_and(|wanted| !wanted.is_empty() && wanted.iter().all(|(key, value)| &labels[key] == value))
}
