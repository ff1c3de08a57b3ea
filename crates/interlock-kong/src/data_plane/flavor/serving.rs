//! Which routes a gateway can serve, by the class, the Gateways and the namespaces that its configuration
//! producer reads. Where that is unknown, the routes of its own namespaces count.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::object::{NamespacedName, annotation, meta_str};
use serde_json::Value;

use super::group::{DEFAULT_CLASS, ProducerSettings, Producers, Setting, name_of, namespace_of};

/// Domain of the names of Kong's controllers in GatewayClasses.
const KONG: &str = "konghq.com/";
/// Kong's operator makes a DataPlane of its own for each Gateway.
const OPERATOR: &str = "konghq.com/gateway-operator";

/// What a route asks to be served by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// The classes of an Ingress: by annotation and by field.
    Classes(Vec<String>),
    /// The Gateways of a route.
    Gateways(Vec<NamespacedName>),
}

const GATEWAY_API: &str = "gateway.networking.k8s.io";

impl Attachment {
    pub(super) fn classes(ingress: &Value) -> Self {
        let named = annotation(ingress, "kubernetes.io/ingress.class");
        let classes = named.into_iter().chain(ingress["spec"]["ingressClassName"].as_str());
        Self::Classes(classes.filter(|class| !class.is_empty()).map(str::to_owned).collect())
    }

    /// The Gateways among the parents of a route.
    pub(super) fn gateways(route: &Value, namespace: &str) -> Self {
        let parents = route["spec"]["parentRefs"].as_array().into_iter().flatten();
        let gateways = parents.filter(|parent| {
            parent["group"].as_str().unwrap_or(GATEWAY_API) == GATEWAY_API
                && parent["kind"].as_str().unwrap_or("Gateway") == "Gateway"
        });
        let named = gateways.filter_map(|parent| {
            let namespace = parent["namespace"].as_str().unwrap_or(namespace);
            Some(NamespacedName::new(namespace, parent["name"].as_str()?))
        });
        Self::Gateways(named.collect())
    }
}

/// Whether a route counts for a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// The gateway can serve it, or may.
    Yes,
    /// It cannot.
    No,
    /// It names another class, and that of the gateway is unknown.
    PassedOver,
}

/// What a gateway can serve.
pub(super) struct Serving<'o> {
    /// Those of the gateway and of its producer.
    own_namespaces: BTreeSet<String>,
    settings: ProducerSettings,
    /// The Gateway that the operator made it for.
    made_for: Option<NamespacedName>,
    gateways: BTreeMap<NamespacedName, &'o Value>,
    /// Names of the controllers, by class.
    controllers: BTreeMap<&'o str, &'o str>,
}

impl<'o> Serving<'o> {
    /// What a gateway, if it exists, can serve, among the objects of a cluster. `namespace` is the default for
    /// an absent one.
    pub(super) fn of(
        gateway: Option<&'o Value>,
        objects: &'o [impl Borrow<Value>],
        namespace: &'o str,
    ) -> Self {
        let producers = Producers::among(objects, namespace);
        let producer = gateway.and_then(|gateway| producers.confirmed(gateway));
        let settings =
            producer.map(|it| ProducerSettings::of(it, namespace_of(it, namespace))).unwrap_or_default();
        let mut own_namespaces = settings.namespaces.clone().unwrap_or_default();
        let own = gateway.into_iter().chain(producer).map(|it| namespace_of(it, namespace).to_owned());
        own_namespaces.extend(own);
        own_namespaces.extend(gateway.is_none().then(|| namespace.to_owned()));
        let of_kind = |kind: &'static str| {
            objects.iter().map(Borrow::borrow).filter(move |object: &&Value| object["kind"] == kind)
        };
        Self {
            own_namespaces,
            settings,
            made_for: gateway.and_then(|gateway| made_for(gateway, namespace)),
            gateways: of_kind("Gateway").filter_map(|it| Some((name_of(it, namespace)?, it))).collect(),
            controllers: of_kind("GatewayClass")
                .filter_map(|it| Some((meta_str(it, "name")?, it["spec"]["controllerName"].as_str()?)))
                .collect(),
        }
    }

    /// Whether a namespace is that of the gateway or of its producer, or one that its settings name.
    pub(super) fn owns(&self, namespace: &str) -> bool {
        self.own_namespaces.contains(namespace)
    }

    /// Whether a route of a namespace counts.
    pub(super) fn counts(&self, namespace: &str, attachment: &Attachment) -> Counts {
        if self.settings.namespaces.is_some() && !self.owns(namespace) {
            return Counts::No;
        }
        match attachment {
            Attachment::Classes(classes) => self.of_class(classes, self.owns(namespace)),
            Attachment::Gateways(gateways) => {
                let serves = |gateway| self.of_gateway(gateway, namespace);
                let unattached = gateways.is_empty() && self.owns(namespace);
                if unattached || gateways.iter().any(serves) { Counts::Yes } else { Counts::No }
            }
        }
    }

    /// An Ingress without a class is one of the default class, which is unknown.
    fn of_class(&self, classes: &[String], own: bool) -> Counts {
        let is = |class: &str| classes.is_empty() || classes.iter().any(|it| it == class);
        match &self.settings.ingress_class {
            Setting::Nothing => Counts::No,
            Setting::Named(class) if is(class) => Counts::Yes,
            Setting::Named(_) => Counts::No,
            Setting::Unknown if own || is(DEFAULT_CLASS) => Counts::Yes,
            Setting::Unknown => Counts::PassedOver,
        }
    }

    /// Whether it serves the routes of a namespace that name this Gateway.
    fn of_gateway(&self, name: &NamespacedName, namespace: &str) -> bool {
        let gateway = self.gateways.get(name);
        if gateway.is_some_and(|gateway| name.namespace != namespace && !admits_others(gateway)) {
            return false;
        }
        if let Some(made_for) = &self.made_for {
            return made_for == name;
        }
        let class = gateway.and_then(|gateway| gateway["spec"]["gatewayClassName"].as_str());
        if let (Some(only), Some(class)) = (self.settings.gateway_class.as_deref(), class) {
            return only == class;
        }
        match class.and_then(|class| self.controllers.get(class)) {
            None => self.owns(namespace),
            Some(controller) => match &self.settings.controller {
                Setting::Named(own) => own == controller,
                Setting::Nothing | Setting::Unknown => {
                    controller.starts_with(KONG) && *controller != OPERATOR
                }
            },
        }
    }
}

/// The Gateway that owns a DataPlane.
fn made_for(gateway: &Value, namespace: &str) -> Option<NamespacedName> {
    let owners = gateway["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| is_gateway(owner))?;
    Some(NamespacedName::new(namespace_of(gateway, namespace), owner["name"].as_str()?))
}

pub(super) fn is_gateway(owner: &Value) -> bool {
    let group = owner["apiVersion"].as_str().and_then(|it| it.strip_prefix(GATEWAY_API));
    owner["kind"] == "Gateway" && group.is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a listener may admit routes of other namespaces; by default none does.
fn admits_others(gateway: &Value) -> bool {
    let listeners = gateway["spec"]["listeners"].as_array().into_iter().flatten();
    let mut from = listeners.map(|listener| listener["allowedRoutes"]["namespaces"]["from"].as_str());
    from.any(|from| !matches!(from, None | Some("Same" | "None")))
}
