//! Gateways that share one configuration producer, and with it one dialect; what a producer reads, by its flags,
//! variables and fields: an ingress controller (Kong/kubernetes-ingress-controller 3.x, `internal/manager/config.go`), or
//! a ControlPlane.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, annotation, meta_str};
use serde_json::Value;

use super::Flavor;
use super::gateway::{Gateway, UnreadableGateway};
use super::gateway_ref::GatewayRef;
use super::reading::Effective;
use super::sources::Sources;

/// Flag and variable that name the gateway for an ingress controller.
const ADMIN_SERVICE_FLAG: &str = "--kong-admin-svc";
pub(super) const ADMIN_SERVICE_VARIABLE: &str = "CONTROLLER_KONG_ADMIN_SVC";

/// A producer and its other gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerGroup {
    pub producer: String,
    /// Its namespace, where it has other gateways there and does not name this one: for those, the gateway is not
    /// one of its gateways.
    pub unconfirmed_in: Option<String>,
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
        let here = namespace_of(gateway, namespace);
        let mut others = Vec::new();
        for object in objects.iter().map(Borrow::borrow).filter(|object| Gateway::is_guarded(object)) {
            let same = |other: Producer<'_>| other.text == producer.text;
            let beside = namespace_of(object, namespace) == here;
            if !producers.of(object).is_some_and(same) || !(beside || producers.confirms(&producer, object)) {
                continue;
            }
            let Some(subject) = Gateway::subject_of(object, namespace) else { continue };
            let runs = Gateway::runs(object, namespace, sources)?;
            others.extend(runs.filter(|_| Some(&subject) != own.as_ref()).map(|runs| (subject, runs)));
        }
        let its_own = |subject: &GatewayRef| subject.name.namespace == producer.name.namespace;
        let unconfirmed =
            others.iter().any(|(other, _)| its_own(other)) && !producers.confirms(&producer, gateway);
        let unconfirmed_in = unconfirmed.then_some(producer.name.namespace);
        Ok(Some(Self { producer: producer.text, unconfirmed_in, others }))
    }

    /// The first of the others that would keep another dialect.
    pub fn conflicting(&self, to: Flavor) -> Option<(&GatewayRef, Flavor)> {
        let mut known =
            self.others.iter().filter_map(|(subject, effective)| Some((subject, effective.known()?)));
        known.find(|(_, flavor)| flavor.dialect() != to.dialect())
    }
}

/// The producer of a gateway.
struct Producer<'o> {
    /// For people.
    text: String,
    name: NamespacedName,
    /// If known.
    object: Option<&'o Value>,
}

/// The producers among the objects of a cluster, by gateway.
pub(super) struct Producers<'o> {
    /// Default for an absent namespace.
    namespace: &'o str,
    /// ControlPlanes, by the DataPlane that they refer to.
    of_planes: BTreeMap<NamespacedName, &'o Value>,
    /// Ingress controllers that name an admin Service, with the Service.
    of_services: Vec<(&'o Value, &'o Value)>,
    /// All of them; of a ControlPlane and a controller of one name, the controller.
    by_name: BTreeMap<NamespacedName, &'o Value>,
}

impl<'o> Producers<'o> {
    pub(super) fn among(objects: &'o [impl Borrow<Value>], namespace: &'o str) -> Self {
        let (of_planes, of_services, by_name) = Default::default();
        let mut producers = Self { namespace, of_planes, of_services, by_name };
        let objects = || objects.iter().map(Borrow::borrow);
        let services: BTreeMap<NamespacedName, &Value> = objects()
            .filter(|object| object["kind"] == "Service")
            .filter_map(|service| Some((name_of(service, namespace)?, service)))
            .collect();
        for object in objects() {
            let Some(own) = name_of(object, namespace) else { continue };
            if object["kind"] == "ControlPlane" {
                if let Some(name) = controlled(object) {
                    let plane = NamespacedName::new(&own.namespace, name);
                    producers.of_planes.entry(plane).or_insert(object);
                }
                producers.by_name.entry(own).or_insert(object);
            } else if is_guarded_controller(object) {
                let service = admin_service(object, &own.namespace).and_then(|name| services.get(&name));
                producers.of_services.extend(service.map(|service| (object, *service)));
                producers.by_name.insert(own, object);
            }
        }
        producers
    }

    /// The producer of a gateway: the one that its annotation names, a ControlPlane that refers
    /// to it, or an ingress controller whose admin Service selects it, one of its own namespace first.
    fn of(&self, gateway: &Value) -> Option<Producer<'o>> {
        let here = namespace_of(gateway, self.namespace);
        if let Some(named) = annotation(gateway, meta::CONFIG_PRODUCER) {
            let (namespace, name) = named.split_once('/').unwrap_or((here, named));
            let name = NamespacedName::new(namespace, name);
            let object = self.by_name.get(&name).copied();
            return Some(Producer { text: name.to_string(), name, object });
        }
        let found = match gateway["kind"].as_str() {
            Some("DataPlane") => *self.of_planes.get(&name_of(gateway, self.namespace)?)?,
            Some("Deployment") => {
                let reaches = |(controller, service): &(&'o Value, &'o Value)| {
                    self.reaches(service, gateway).then_some(*controller)
                };
                let elsewhere = |controller: &&Value| namespace_of(controller, self.namespace) != here;
                self.of_services.iter().filter_map(reaches).min_by_key(elsewhere)?
            }
            _ => return None,
        };
        let name = name_of(found, self.namespace)?;
        Some(Producer { text: format!("{} {name}", found["kind"].as_str()?), name, object: Some(found) })
    }

    /// The producer of a gateway, unless only an object of another namespace says so. A Deployment may hold its
    /// ingress controller itself.
    pub(super) fn confirmed<'g>(&self, gateway: &'g Value) -> Option<&'g Value>
    where
        'o: 'g,
    {
        let here = namespace_of(gateway, self.namespace);
        let named = annotation(gateway, meta::CONFIG_PRODUCER).is_some();
        match self.of(gateway) {
            Some(found) if named || found.name.namespace == here => found.object,
            _ => holds_controller(gateway).then_some(gateway),
        }
    }

    /// Whether a producer is of the namespace of a gateway, or reads it by its settings.
    fn confirms(&self, producer: &Producer<'o>, gateway: &Value) -> bool {
        let here = namespace_of(gateway, self.namespace);
        let Some(object) = producer.object else { return producer.name.namespace == here };
        let reaches = |(controller, service): &(&Value, &Value)| {
            name_of(controller, self.namespace).as_ref() == Some(&producer.name)
                && self.reaches(service, gateway)
        };
        let settings = || ProducerSettings::of(object, &producer.name.namespace);
        let reads = || settings().namespaces.is_some_and(|it| it.contains(here));
        producer.name.namespace == here || reads() || self.of_services.iter().any(reaches)
    }

    fn reaches(&self, service: &Value, gateway: &Value) -> bool {
        namespace_of(service, self.namespace) == namespace_of(gateway, self.namespace)
            && gateway["kind"] == "Deployment"
            && selects(service, gateway)
    }
}

/// The name of the ingress controller's container in the manifests and the chart of Kong.
const CONTROLLER_CONTAINER: &str = "ingress-controller";

fn holds_controller(gateway: &Value) -> bool {
    let containers = gateway["spec"]["template"]["spec"]["containers"].as_array();
    containers.into_iter().flatten().any(|container| container["name"] == CONTROLLER_CONTAINER)
}

pub(super) fn name_of(object: &Value, namespace: &str) -> Option<NamespacedName> {
    Some(NamespacedName::new(namespace_of(object, namespace), meta_str(object, "name")?))
}

pub(super) fn namespace_of<'a>(object: &'a Value, default: &'a str) -> &'a str {
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

/// The default of an ingress controller.
pub(super) const DEFAULT_CLASS: &str = "kong";
/// The default of an ingress controller.
const DEFAULT_CONTROLLER: &str = "konghq.com/kic-gateway-controller";

const CLASS_VARIABLE: &str = "CONTROLLER_INGRESS_CLASS";
const CONTROLLER_VARIABLE: &str = "CONTROLLER_GATEWAY_API_CONTROLLER_NAME";
/// Names the namespaces that a producer reads; may be given several times.
const NAMESPACE_FLAG: &str = "--watch-namespace";
const NAMESPACE_VARIABLE: &str = "CONTROLLER_WATCH_NAMESPACE";
pub(super) const VARIABLES: [&str; 3] = [CLASS_VARIABLE, CONTROLLER_VARIABLE, NAMESPACE_VARIABLE];

/// The settings of a producer that say what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// By a reference, or by an unknown producer.
    Unknown,
    /// Nothing of the kind.
    Nothing,
    /// What has this name.
    Named(String),
}

/// The settings of a producer that decide which routes it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProducerSettings {
    pub(super) ingress_class: Setting,
    /// Name of the controller, in GatewayClasses.
    pub(super) controller: Setting,
    /// The only class of Gateways of a ControlPlane.
    pub(super) gateway_class: Option<String>,
    /// The only namespaces that it reads; `None` for all, or where that is unknown.
    pub(super) namespaces: Option<BTreeSet<String>>,
}

impl Default for ProducerSettings {
    /// Those of an unknown producer.
    fn default() -> Self {
        Self {
            ingress_class: Setting::Unknown,
            controller: Setting::Unknown,
            gateway_class: None,
            namespaces: None,
        }
    }
}

impl ProducerSettings {
    /// The settings of a ControlPlane, or of an ingress controller's Deployment, in its namespace.
    pub(super) fn of(producer: &Value, own: &str) -> Self {
        match producer["kind"] == "ControlPlane" {
            true => Self::of_control_plane(producer, own),
            false => Self::of_controller(producer),
        }
    }

    fn of_control_plane(producer: &Value, own: &str) -> Self {
        let spec = &producer["spec"];
        let containers = containers(&spec["deployment"]["podTemplateSpec"]);
        let variable = variable(&containers, CLASS_VARIABLE);
        // "If omitted, Ingress resources will not be supported by the ControlPlane."
        let field =
            spec["ingressClass"].as_str().map_or(Setting::Nothing, |it| Setting::Named(it.to_owned()));
        let watched = &spec["watchNamespaces"];
        let listed = watched["list"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let namespaces = || listed.chain([own]).map(str::to_owned).collect();
        Self {
            ingress_class: variable.unwrap_or(field),
            controller: Setting::Unknown,
            gateway_class: spec["gatewayClass"].as_str().map(str::to_owned),
            namespaces: matches!(watched["type"].as_str(), Some("own" | "list")).then(namespaces),
        }
    }

    fn of_controller(producer: &Value) -> Self {
        let containers = containers(&producer["spec"]["template"]);
        let setting = |flag, name| flag_of(&containers, flag).or_else(|| variable(&containers, name));
        let or = |default: &str| Setting::Named(default.to_owned());
        let namespaces = match setting(NAMESPACE_FLAG, NAMESPACE_VARIABLE) {
            Some(Setting::Named(listed)) if !listed.is_empty() => {
                Some(listed.split(',').map(|it| it.trim().to_owned()).collect())
            }
            _ => None,
        };
        Self {
            ingress_class: setting("--ingress-class", CLASS_VARIABLE).unwrap_or_else(|| or(DEFAULT_CLASS)),
            controller: setting("--gateway-api-controller-name", CONTROLLER_VARIABLE)
                .unwrap_or_else(|| or(DEFAULT_CONTROLLER)),
            gateway_class: None,
            namespaces,
        }
    }
}

fn containers(template: &Value) -> Vec<&Value> {
    template["spec"]["containers"].as_array().into_iter().flatten().collect()
}

/// A flag that may be given several times: a list adds up, of others the last counts.
fn flag_of(containers: &[&Value], flag: &str) -> Option<Setting> {
    let args = containers.iter().flat_map(|c| c["args"].as_array().into_iter().flatten());
    let given = args.filter_map(|arg| match arg.as_str()?.strip_prefix(flag)? {
        "" => Some(Setting::Unknown),
        rest => rest.strip_prefix('=').map(text),
    });
    given.reduce(|before, next| match (before, next) {
        (Setting::Named(before), Setting::Named(next)) if flag == NAMESPACE_FLAG => {
            Setting::Named(format!("{before},{next}"))
        }
        (Setting::Unknown, _) if flag == NAMESPACE_FLAG => Setting::Unknown,
        (_, next) => next,
    })
}

fn variable(containers: &[&Value], name: &str) -> Option<Setting> {
    let mut entries = containers.iter().flat_map(|c| c["env"].as_array().into_iter().flatten());
    match entries.find(|entry| entry["name"] == name) {
        Some(entry) => Some(entry["value"].as_str().map_or(Setting::Unknown, text)),
        None => {
            let refers = |c: &&Value| c["envFrom"].as_array().is_some_and(|from| !from.is_empty());
            containers.iter().any(refers).then_some(Setting::Unknown)
        }
    }
}

/// A text of the pod, unless the kubelet expands it.
fn text(text: &str) -> Setting {
    if text.contains("$(") { Setting::Unknown } else { Setting::Named(text.to_owned()) }
}
