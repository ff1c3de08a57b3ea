//! Which Limitador counts the requests of a Gateway.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{Index, NodeKey};
use interlock_core::api::interlock::{LimitStore, Limitador, Limitadors, limitadors};
use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use super::names;

/// The controller of Envoy Gateway's GatewayClasses.
const ENVOY_GATEWAY: &str = "gateway.envoyproxy.io/gatewayclass-controller";

/// Where proxies reach a Limitador: host and port.
pub(super) type Address = (String, u16);

/// Why nothing is carried out for a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Kuadrant's operator does it.
    Kuadrant,
    /// Something is missing; the text says what, and what to do.
    Lacks(String),
    /// Something is on its way.
    Awaits(String),
}

/// The settings, and what they name.
#[derive(Clone, Default)]
pub(super) struct Counting {
    limitadors: Limitadors,
    /// Whether the settings are there, and all their Limitadors can be honoured.
    are_valid: bool,
    /// Addresses of objects of the kind Limitador.
    addresses: BTreeMap<NamespacedName, Address>,
    /// Objects of the kind Kuadrant, whose operator carries policies out.
    pub(super) kuadrants: BTreeSet<NamespacedName>,
}

impl Counting {
    /// Takes in the settings; whether they are others than before. Without an object there are none: the leader makes it
    /// anew.
    pub(super) fn configure(&mut self, interlock: Option<&Value>) -> bool {
        let setting = interlock.and_then(|own| limitadors::PoliciesSetting::of(&own["spec"]["policies"]));
        let (limitadors, are_valid) = match setting.map(|setting| Limitadors::read(&setting.limitadors)) {
            Some((limitadors, problems)) => (limitadors, problems.is_empty()),
            None => (Limitadors::default(), false),
        };
        let is_new = self.limitadors != limitadors || self.are_valid != are_valid;
        (self.limitadors, self.are_valid) = (limitadors, are_valid);
        is_new
    }

    /// Takes in where an object of the kind Limitador is reached; none where it is gone, or does not say.
    pub(super) fn locate(&mut self, name: &NamespacedName, object: Option<&Value>) {
        match object.and_then(address_of) {
            Some(address) => self.addresses.insert(name.clone(), address),
            None => self.addresses.remove(name),
        };
    }

    /// Forgets where objects of the kind Limitador are reached.
    pub(super) fn forget_addresses(&mut self) {
        self.addresses.clear();
    }

    /// Whether the settings name a store of limits.
    pub(super) fn has(&self, store: &LimitStore) -> bool {
        self.limitadors.has(store)
    }

    /// Whether another operator carries policies out.
    pub(super) fn is_idle(&self) -> bool {
        !self.kuadrants.is_empty()
    }

    /// Whether limits are to be carried out here.
    pub(super) fn is_configured(&self) -> bool {
        !self.is_idle() && self.limitadors != Limitadors::default()
    }

    /// The Limitador of a Gateway and its address, where the policies of the Gateway are carried out.
    pub(super) fn limitador(&self, index: &Index, gateway: &NodeKey) -> Result<(Limitador, Address), Idle> {
        if self.is_idle() {
            return Err(Idle::Kuadrant);
        }
        if index.controller_of(gateway) != Some(ENVOY_GATEWAY) {
            return Err(Idle::Lacks(format!(
                "{gateway} is not of a GatewayClass of Envoy Gateway ({ENVOY_GATEWAY}), and only those are carried out"
            )));
        }
        let Some(limitador) = self.limitadors.of(&name_of(gateway)) else {
            if !self.are_valid {
                return Err(Idle::Awaits(
                    "spec.policies.limitadors of Interlock default, which is invalid".to_owned(),
                ));
            }
            return Err(Idle::Lacks(format!(
                "no Limitador counts for {gateway}; name one in spec.policies.limitadors of Interlock default"
            )));
        };
        let address = limitador.address.clone().or_else(|| match &limitador.store {
            LimitStore::Limitador(name) => self.addresses.get(name).cloned(),
            LimitStore::ConfigMap(_) => None,
        });
        match address {
            Some(address) => Ok((limitador.clone(), address)),
            None => Err(Idle::Awaits(names::store(&limitador.store))),
        }
    }
}

fn address_of(object: &Value) -> Option<Address> {
    let service = &object["status"]["service"];
    let port = service["ports"]["grpc"].as_u64().and_then(|port| u16::try_from(port).ok());
    Some((service["host"].as_str()?.to_owned(), port.unwrap_or(limitadors::GRPC_PORT)))
}

/// Namespace and name of a node.
fn name_of(node: &NodeKey) -> NamespacedName {
    NamespacedName::new(&*node.namespace, &*node.name)
}
