//! Which Limitador counts the requests of a Gateway, and which auth server decides about them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{Index, NodeKey, ObjectKind};
use interlock_core::api::interlock::{
    AuthEndpoint, AuthServers, LimitStore, Limitador, Limitadors, PoliciesSetting, limitadors,
};
use interlock_core::api::object::NamespacedName;
use serde_json::Value;

use super::fleet::{Address, Asked, Fleet};
use super::idle::Idle;
use super::listeners::UnreadyListeners;
use super::merging::MergingClasses;
use super::names;
use super::xds::NameScheme;

/// The controller of Envoy Gateway's GatewayClasses.
const ENVOY_GATEWAY: &str = "gateway.envoyproxy.io/gatewayclass-controller";

/// The settings, and what they name.
#[derive(Clone, Default)]
pub(super) struct Counting {
    settings: Settings,
    /// Addresses of objects of the kind Limitador.
    addresses: BTreeMap<NamespacedName, Address>,
    /// Objects of the kind Kuadrant, whose operator carries policies out.
    pub(super) kuadrants: BTreeSet<NamespacedName>,
    pub(super) merging: MergingClasses,
    /// Those of GatewayClasses, as many policies ask for one.
    fleets: BTreeMap<NodeKey, Arc<Fleet>>,
}

/// `spec.policies` of Interlock default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settings {
    limitadors: Limitadors,
    auth_servers: AuthServers,
    /// Whether the settings are there, and all Limitadors can be honoured.
    are_limitadors_valid: bool,
    /// The same of the auth servers.
    are_auth_servers_valid: bool,
    scheme: NameScheme,
}

impl Settings {
    /// Without an object there are none: the leader makes it anew.
    fn read(interlock: Option<&Value>) -> Self {
        let Some(setting) = interlock.and_then(|own| PoliciesSetting::of(&own["spec"]["policies"])) else {
            return Self::default();
        };
        let (limitadors, wrong_limitadors) = Limitadors::read(&setting.limitadors);
        let (auth_servers, wrong_auth_servers) = AuthServers::read(&setting.auth_servers);
        Self {
            limitadors,
            auth_servers,
            are_limitadors_valid: wrong_limitadors.is_empty(),
            are_auth_servers_valid: wrong_auth_servers.is_empty(),
            scheme: if setting.xds_name_scheme_v2 { NameScheme::V2 } else { NameScheme::V1 },
        }
    }
}

impl Counting {
    /// Takes in the settings; whether they are others than before.
    pub(super) fn configure(&mut self, interlock: Option<&Value>) -> bool {
        let found = Settings::read(interlock);
        let is_new = self.settings != found;
        self.settings = found;
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
        self.settings.limitadors.has(store)
    }

    /// Whether another operator carries policies out.
    pub(super) fn is_idle(&self) -> bool {
        !self.kuadrants.is_empty()
    }

    /// Whether limits are to be carried out here.
    pub(super) fn is_configured(&self) -> bool {
        !self.is_idle() && self.settings.limitadors != Limitadors::default()
    }

    /// The fleet that carries the requests of a Gateway.
    pub(super) fn fleet(
        &mut self,
        index: &Index,
        unready: &UnreadyListeners,
        gateway: &NodeKey,
    ) -> Arc<Fleet> {
        let class = index.class_of(gateway).map(|name| NodeKey::new(ObjectKind::GatewayClass, "", name));
        let merged = class.and_then(|class| self.fleet_of_class(index, unready, &class).ok().flatten());
        merged.unwrap_or_else(|| {
            let (namespace, gateways) = (gateway.namespace.to_string(), vec![gateway.clone()]);
            let asked = self.asked(index, gateway, &gateways);
            Arc::new(Fleet { key: gateway.clone(), namespace, gateways, asked })
        })
    }

    /// The fleet of a GatewayClass, where its Gateways are merged.
    pub(super) fn fleet_of_class(
        &mut self,
        index: &Index,
        unready: &UnreadyListeners,
        class: &NodeKey,
    ) -> Result<Option<Arc<Fleet>>, Idle> {
        let Some(namespace) = self.merging.namespace(&class.name)?.map(str::to_owned) else {
            return Ok(None);
        };
        if let Some(known) = self.fleets.get(class) {
            return Ok(Some(known.clone()));
        }
        let gateways: Vec<NodeKey> = index.gateways_of(class).into_iter().cloned().collect();
        // One that is left out decides nothing for the others.
        let mut asking = gateways.clone();
        asking.sort_by_key(|own| unready.is_refused(own));
        let asked = self.asked(index, class, &asking);
        let fleet = Arc::new(Fleet { key: class.clone(), namespace, gateways, asked });
        self.fleets.insert(class.clone(), fleet.clone());
        Ok(Some(fleet))
    }

    /// Forgets the fleets of GatewayClasses, as another Gateway or setting may be there.
    pub(super) fn forget_fleets(&mut self) {
        self.fleets.clear();
    }

    /// What the proxies of a fleet ask, where its policies are carried out.
    fn asked(&self, index: &Index, fleet: &NodeKey, gateways: &[NodeKey]) -> Result<Asked, Idle> {
        if self.is_idle() {
            return Err(Idle::Kuadrant);
        }
        // All are of one class.
        let none = || Idle::Lacks(format!("{fleet} has no Gateway"));
        let gateway = gateways.first().ok_or_else(none)?;
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
        let (limitador, uncounted) = of_oldest(gateways, |own| self.limitador(own)).ok_or_else(none)?;
        let (auth, undecided) = of_oldest(gateways, |own| self.auth_server(own)).ok_or_else(none)?;
        Ok(Asked { limitador, auth, uncounted, undecided, scheme: self.settings.scheme })
    }

    /// The Limitador that the settings give a Gateway, and its address.
    pub(super) fn limitador(&self, gateway: &NodeKey) -> Result<(Limitador, Address), Idle> {
        let settings = &self.settings;
        let Some(limitador) = settings.limitadors.of(&name_of(gateway)) else {
            return Err(lacks(settings.are_limitadors_valid, "spec.policies.limitadors", |field| {
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

    fn auth_server(&self, gateway: &NodeKey) -> Result<AuthEndpoint, Idle> {
        let settings = &self.settings;
        settings.auth_servers.of(&name_of(gateway)).cloned().ok_or_else(|| {
            lacks(settings.are_auth_servers_valid, "spec.policies.authServers", |field| {
                format!("no auth server decides for {gateway}; name one in {field}")
            })
        })
    }
}

/// What the oldest of these Gateways has, of those that have any, and the Gateways that have another, or none. One that is
/// added takes nothing from the others.
fn of_oldest<T: Clone + PartialEq>(
    gateways: &[NodeKey],
    of: impl Fn(&NodeKey) -> Result<T, Idle>,
) -> Option<(Result<T, Idle>, BTreeSet<NodeKey>)> {
    let all: Vec<_> = gateways.iter().map(|gateway| (gateway, of(gateway))).collect();
    let has_any = |(_, own): &&(_, Result<T, Idle>)| !matches!(own, Err(Idle::Lacks(_)));
    let (_, oldest) = all.iter().find(has_any).or(all.first())?;
    let others = all.iter().filter(|(_, own)| oldest.is_ok() && own.as_ref().ok() != oldest.as_ref().ok());
    Some((oldest.clone(), others.map(|(gateway, _)| (*gateway).clone()).collect()))
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
