//! Which Limitador counts the requests of a Gateway, and which auth server decides about them.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{Index, NodeKey};
use interlock_core::api::interlock::{
    AuthEndpoint, AuthServers, LimitStore, Limitador, Limitadors, PoliciesSetting, limitadors,
};
use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use super::names;
use super::xds::NameScheme;

/// The controller of Envoy Gateway's GatewayClasses.
const ENVOY_GATEWAY: &str = "gateway.envoyproxy.io/gatewayclass-controller";

/// Where proxies reach a server: host and port.
pub(super) type Address = (String, u16);

/// Why nothing is carried out for a Gateway, or nothing of one kind of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Kuadrant's operator does it.
    Kuadrant,
    /// Something is missing; the text says what, and what to do.
    Lacks(String),
    /// Something is on its way; what was written stays.
    Awaits(String),
}

/// What the proxies of a Gateway ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The Limitador and its address.
    pub(super) limitador: Result<(Limitador, Address), Idle>,
    /// The auth server.
    pub(super) auth: Result<AuthEndpoint, Idle>,
    /// How Envoy Gateway names what it makes for them.
    pub(super) scheme: NameScheme,
}

/// The settings, and what they name.
#[derive(Clone, Default)]
pub(super) struct Counting {
    limitadors: Limitadors,
    auth_servers: AuthServers,
    /// Whether the settings are there, and all Limitadors can be honoured.
    are_limitadors_valid: bool,
    /// The same of the auth servers.
    are_auth_servers_valid: bool,
    scheme: NameScheme,
    /// Addresses of objects of the kind Limitador.
    addresses: BTreeMap<NamespacedName, Address>,
    /// Objects of the kind Kuadrant, whose operator carries policies out.
    pub(super) kuadrants: BTreeSet<NamespacedName>,
}

impl Counting {
    /// Takes in the settings; whether they are others than before. Without an object there are none: the leader makes it
    /// anew.
    pub(super) fn configure(&mut self, interlock: Option<&Value>) -> bool {
        let setting = interlock.and_then(|own| PoliciesSetting::of(&own["spec"]["policies"]));
        let has_v2 = setting.as_ref().is_some_and(|own| own.xds_name_scheme_v2);
        let read =
            setting.map(|own| (Limitadors::read(&own.limitadors), AuthServers::read(&own.auth_servers)));
        let scheme = if has_v2 { NameScheme::V2 } else { NameScheme::V1 };
        let mut found = Self { scheme, ..Self::default() };
        if let Some(((limitadors, wrong), (auth_servers, wrong_too))) = read {
            (found.limitadors, found.are_limitadors_valid) = (limitadors, wrong.is_empty());
            (found.auth_servers, found.are_auth_servers_valid) = (auth_servers, wrong_too.is_empty());
        }
        let is_new = self.settings() != found.settings();
        (self.limitadors, self.are_limitadors_valid) = (found.limitadors, found.are_limitadors_valid);
        (self.auth_servers, self.are_auth_servers_valid) = (found.auth_servers, found.are_auth_servers_valid);
        self.scheme = scheme;
        is_new
    }

    fn settings(&self) -> (&Limitadors, bool, &AuthServers, bool, NameScheme) {
        let auth_servers = &self.auth_servers;
        (&self.limitadors, self.are_limitadors_valid, auth_servers, self.are_auth_servers_valid, self.scheme)
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

    /// What the proxies of a Gateway ask, where its policies are carried out.
    pub(super) fn asked(&self, index: &Index, gateway: &NodeKey) -> Result<Asked, Idle> {
        if self.is_idle() {
            return Err(Idle::Kuadrant);
        }
        match index.controller_of(gateway) {
            Some(ENVOY_GATEWAY) => {}
            // It may be made anew.
            None => return Err(Idle::Awaits(format!("the GatewayClass of {gateway}"))),
            Some(_) => {
                return Err(Idle::Lacks(format!(
                    "{gateway} is not of a GatewayClass of Envoy Gateway ({ENVOY_GATEWAY}), and only those are carried out"
                )));
            }
        }
        let name = name_of(gateway);
        let (limitador, auth) = (self.limitador(gateway, &name), self.auth_server(gateway, &name));
        Ok(Asked { limitador, auth, scheme: self.scheme })
    }

    fn limitador(&self, gateway: &NodeKey, name: &NamespacedName) -> Result<(Limitador, Address), Idle> {
        let Some(limitador) = self.limitadors.of(name) else {
            return Err(lacks(self.are_limitadors_valid, "spec.policies.limitadors", |field| {
                format!("no Limitador counts for {gateway}; name one in {field}")
            }));
        };
        let address = limitador.address.clone().or_else(|| match &limitador.store {
            LimitStore::Limitador(name) => self.addresses.get(name).cloned(),
            LimitStore::ConfigMap(_) => None,
        });
        let address = address.ok_or_else(|| Idle::Awaits(names::store(&limitador.store)))?;
        Ok((limitador.clone(), address))
    }

    fn auth_server(&self, gateway: &NodeKey, name: &NamespacedName) -> Result<AuthEndpoint, Idle> {
        self.auth_servers.of(name).cloned().ok_or_else(|| {
            lacks(self.are_auth_servers_valid, "spec.policies.authServers", |field| {
                format!("no auth server decides for {gateway}; name one in {field}")
            })
        })
    }
}

/// What a Gateway lacks by a field of the settings; where that is invalid, it may not lack it.
fn lacks(is_valid: bool, field: &str, message: impl FnOnce(&str) -> String) -> Idle {
    let field = format!("{field} of Interlock default");
    if is_valid { Idle::Lacks(message(&field)) } else { Idle::Awaits(format!("{field}, which is invalid")) }
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
