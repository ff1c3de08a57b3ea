//! Gateways that one configuration producer serves: they share one dialect.

use std::borrow::Borrow;

use serde_json::Value;

use super::Flavor;
use super::gateway::{Gateway, Unreadable};
use super::reading::Effective;
use super::sources::Sources;
use super::subject::Subject;
use crate::api::meta;
use crate::api::object::{NamespacedName, annotation, meta_str};

/// Flag and variable by which an ingress controller is told which gateway to configure.
const ADMIN_SERVICE_FLAG: &str = "--kong-admin-svc";
pub(super) const ADMIN_SERVICE_VARIABLE: &str = "CONTROLLER_KONG_ADMIN_SVC";

/// A producer and the other gateways that it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The producer.
    pub producer: String,
    /// The others, with what their live pods run with.
    pub others: Vec<(Subject, Effective)>,
}

impl Group {
    /// The group of a gateway among the objects of a cluster; `None` where no producer is known.
    pub fn of(
        gateway: &Value,
        objects: &[impl Borrow<Value>],
        namespace: &str,
        sources: &dyn Sources,
    ) -> Result<Option<Self>, Unreadable> {
        let Some(producer) = producer(gateway, objects, namespace) else { return Ok(None) };
        let own = Gateway::read(gateway, namespace, sources)?.map(|gateway| gateway.subject);
        let mut others = Vec::new();
        for object in objects.iter().map(Borrow::borrow).filter(|object| Gateway::is_guarded(object)) {
            if self::producer(object, objects, namespace).as_ref() != Some(&producer) {
                continue;
            }
            let other = Gateway::read(object, namespace, sources)?;
            others.extend(
                other
                    .filter(|o| Some(&o.subject) != own.as_ref())
                    .map(|o| (o.subject, o.spec.reading.effective)),
            );
        }
        Ok(Some(Self { producer, others }))
    }

    /// The first of the others that would be left with another dialect.
    pub fn left_behind(&self, to: Flavor) -> Option<(&Subject, Flavor)> {
        let mut known =
            self.others.iter().filter_map(|(subject, effective)| Some((subject, effective.known()?)));
        known.find(|(_, flavor)| flavor.dialect() != to.dialect())
    }
}

/// The producer of a gateway, among the objects of a cluster: the one that its annotation names,
/// a ControlPlane that refers to it, or an ingress controller whose admin Service selects it.
fn producer(gateway: &Value, objects: &[impl Borrow<Value>], namespace: &str) -> Option<String> {
    if let Some(named) = annotation(gateway, meta::CONFIG_PRODUCER) {
        return Some(if named.contains('/') {
            named.to_owned()
        } else {
            format!("{}/{named}", namespace_of(gateway, namespace))
        });
    }
    let name = meta_str(gateway, "name")?;
    let here = namespace_of(gateway, namespace);
    let refers = |object: &Value| match gateway["kind"].as_str() {
        Some("DataPlane") => {
            object["kind"] == "ControlPlane"
                && namespace_of(object, namespace) == here
                && controls(object, name)
        }
        Some("Deployment") => {
            is_guarded_controller(object)
                && admin_service(object, namespace_of(object, namespace)).is_some_and(|service| {
                    service.namespace == here
                        && objects.iter().map(Borrow::borrow).any(|o| {
                            is_service(o, &service, namespace_of(o, namespace)) && selects(o, gateway)
                        })
                })
        }
        _ => false,
    };
    let found = objects.iter().map(Borrow::borrow).find(|object| refers(object))?;
    Some(format!(
        "{} {}/{}",
        found["kind"].as_str()?,
        namespace_of(found, namespace),
        meta_str(found, "name")?
    ))
}

fn namespace_of<'a>(object: &'a Value, default: &'a str) -> &'a str {
    meta_str(object, "namespace").filter(|own| !own.is_empty()).unwrap_or(default)
}

/// Both shapes of the reference: a name until v1beta1, an object from v2beta1 on.
fn controls(control_plane: &Value, name: &str) -> bool {
    let reference = &control_plane["spec"]["dataplane"];
    reference == name || reference["ref"]["name"] == name
}

fn is_guarded_controller(object: &Value) -> bool {
    object["kind"] == "Deployment" && object["metadata"]["labels"][meta::GUARD] == meta::GUARD_FLAVOR
}

fn admin_service(controller: &Value, namespace: &str) -> Option<NamespacedName> {
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

fn is_service(object: &Value, name: &NamespacedName, namespace: &str) -> bool {
    object["kind"] == "Service"
        && namespace == name.namespace
        && meta_str(object, "name") == Some(name.name.as_str())
}

fn selects(service: &Value, deployment: &Value) -> bool {
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let selector = service["spec"]["selector"].as_object();
    selector
        .is_some_and(|wanted| !wanted.is_empty() && wanted.iter().all(|(key, value)| &labels[key] == value))
}
