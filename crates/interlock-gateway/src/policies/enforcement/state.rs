//! What is known of what carries policies out, beside the graph: settings, and what is written already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{Delivery, Index, NodeKey, ObjectKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::{LimitStore, Limitador, Limitadors, limitadors};
use interlock_core::api::object::{NamespacedName, annotation, meta_str};
use serde_json::Value;

use super::budget::{self, Shares, Sizes};
use super::limits::is_of_route;
use super::listeners::UnreadyListeners;
use super::names::{self, GATEWAY_UID, RENDERED};
use super::output::{GatewayOutput, ReadLimits, output_of};
use super::patches::{TooLarge, operations};
use super::{envoy, limitador};

/// The controller of Envoy Gateway's GatewayClasses.
pub(super) const ENVOY_GATEWAY: &str = "gateway.envoyproxy.io/gatewayclass-controller";

/// Characters of what Envoy Gateway says: it may quote whole listeners.
const MESSAGE: usize = 200;

/// Where proxies reach a Limitador.
type Address = (String, u16);

/// An EnvoyPatchPolicy of ours, as its watch reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenPatch {
    gateway: NodeKey,
    rendered: Option<String>,
    /// What Envoy Gateway says of this very version; none where it says nothing yet.
    programmed: Option<Result<(), String>>,
}

/// All that carries out the policies of one Gateway.
#[derive(Debug)]
pub(super) struct Rendered {
    address: Address,
    pub(super) output: GatewayOutput,
    /// The operations of each EnvoyPatchPolicy, and their hash.
    pub(super) patches: Result<Vec<(Vec<Value>, String)>, TooLarge>,
}

/// The limits of all Gateways of one Limitador.
#[derive(Debug)]
pub(super) struct StoredLimits {
    /// As it is written: the text of a file, or a list. Made once for all Gateways.
    pub(super) content: Value,
    pub(super) is_empty: bool,
    pub(super) hash: String,
    /// Namespaces that have more limits than their share.
    beyond: BTreeSet<Arc<str>>,
}

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

/// See the module.
#[derive(Clone, Default)]
pub(in crate::policies) struct Enforcement {
    limitadors: Limitadors,
    /// Whether the settings are there, and all their Limitadors can be honoured.
    are_settings_valid: bool,
    read: ReadLimits,
    rendered: BTreeMap<NodeKey, Arc<Rendered>>,
    stored: BTreeMap<LimitStore, Arc<StoredLimits>>,
    patches: BTreeMap<NamespacedName, SeenPatch>,
    /// The hash of the limits that each has.
    stores: BTreeMap<LimitStore, Option<String>>,
    /// Addresses of objects of the kind Limitador.
    addresses: BTreeMap<NamespacedName, Address>,
    kuadrants: BTreeSet<NamespacedName>,
    /// The write for each Gateway that the API server refuses, and why.
    refused: BTreeMap<NodeKey, String>,
    unready: UnreadyListeners,
}

/// What a report concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policies) enum Concern {
    /// The graph.
    #[default]
    Graph,
    /// Nothing.
    Nothing,
    /// A Gateway.
    Gateway(NodeKey),
    /// A Gateway, and its policies.
    GatewayAndPolicies(NodeKey),
    /// All Gateways.
    Gateways,
    /// All Gateways and policies.
    All,
}

impl Enforcement {
    /// Takes in an object; what it concerns.
    pub(in crate::policies) fn take(&mut self, object: &Value) -> Concern {
        let kind = object["kind"].as_str().unwrap_or_default();
        let Some(name) = meta_str(object, "name") else { return Concern::Graph };
        let name = NamespacedName::new(meta_str(object, "namespace").unwrap_or_default(), name);
        match kind {
            "EnvoyPatchPolicy" if is_ours(object, &name) => {
                let seen = SeenPatch::of(object, &name);
                let gateway = seen.gateway.clone();
                match self.patches.insert(name, seen.clone()) {
                    Some(was) if was == seen => Concern::Gateway(gateway),
                    Some(was) if was.gateway != gateway => Concern::GatewayAndPolicies(was.gateway),
                    _ => Concern::GatewayAndPolicies(gateway),
                }
            }
            "ConfigMap" => self.store(LimitStore::ConfigMap(name), object),
            "Limitador" => {
                match address_of(object) {
                    Some(address) => self.addresses.insert(name.clone(), address),
                    None => self.addresses.remove(&name),
                };
                self.store(LimitStore::Limitador(name), object)
            }
            "Kuadrant" => {
                self.kuadrants.insert(name);
                Concern::All
            }
            "Interlock" if name.name == interlock_core::api::interlock::DEFAULT => {
                let setting = limitadors::PoliciesSetting::of(&object["spec"]["policies"]);
                let Some(setting) = setting else { return self.configure(Limitadors::default(), false) };
                let (limitadors, problems) = Limitadors::read(&setting.limitadors);
                self.configure(limitadors, problems.is_empty())
            }
            "Interlock" => Concern::Nothing,
            _ => Concern::Graph,
        }
    }

    /// Takes in that an object is gone; what it concerns.
    pub(in crate::policies) fn drop(&mut self, kind: &str, name: &NamespacedName) -> Concern {
        match kind {
            "EnvoyPatchPolicy" => {
                let seen = self.patches.remove(name);
                seen.map_or(Concern::Graph, |seen| Concern::GatewayAndPolicies(seen.gateway))
            }
            "ConfigMap" => {
                self.stores.remove(&LimitStore::ConfigMap(name.clone()));
                Concern::Gateways
            }
            "Limitador" => {
                self.addresses.remove(name);
                self.stores.remove(&LimitStore::Limitador(name.clone()));
                Concern::All
            }
            "Kuadrant" => {
                self.kuadrants.remove(name);
                Concern::All
            }
            "Gateway" | "ListenerSet" | "XListenerSet" => {
                self.unready.drop(kind, name);
                if kind == "Gateway" {
                    self.refused.remove(&NodeKey::new(ObjectKind::Gateway, &name.namespace, &name.name));
                }
                Concern::Graph
            }
            "Interlock" if name.name == interlock_core::api::interlock::DEFAULT => {
                // The leader makes it anew.
                self.configure(Limitadors::default(), false)
            }
            "Interlock" => Concern::Nothing,
            _ => Concern::Graph,
        }
    }

    /// Forgets the objects of a kind, which may exist.
    pub(in crate::policies) fn forget(&mut self, kind: &str) -> Concern {
        match kind {
            "EnvoyPatchPolicy" => self.patches.clear(),
            "Kuadrant" => self.kuadrants.clear(),
            "ConfigMap" => self.stores.retain(|store, _| !matches!(store, LimitStore::ConfigMap(_))),
            "Limitador" => {
                self.addresses.clear();
                self.stores.retain(|store, _| !matches!(store, LimitStore::Limitador(_)));
            }
            _ => {
                self.unready.forget(kind);
                return Concern::Graph;
            }
        }
        Concern::All
    }

    /// Whether an EnvoyPatchPolicy of a Gateway is there, Envoy Gateway has not refused it, and the API server refuses no
    /// change of it.
    pub(super) fn is_patched(&self, gateway: &NodeKey) -> bool {
        let seen = self.patches.get(&names::patch(gateway, 0));
        !self.refused.contains_key(gateway)
            && seen.is_some_and(|seen| !matches!(seen.programmed, Some(Err(_))))
    }

    /// Takes in the status of a Gateway or ListenerSet; the Gateway of which another listener is the first of a port by it.
    pub(in crate::policies) fn take_listeners(&mut self, object: &Value) -> Option<NodeKey> {
        let gateway = self.unready.take(object)?;
        self.outdate(&gateway);
        Some(gateway)
    }

    /// Takes in which write for a Gateway the API server refuses, and why; none where it refuses none.
    pub(super) fn refuse(&mut self, gateway: &NodeKey, refused: Option<String>) {
        match refused {
            Some(why) => self.refused.insert(gateway.clone(), why),
            None => self.refused.remove(gateway),
        };
    }

    fn store(&mut self, store: LimitStore, object: &Value) -> Concern {
        // Anybody may give a ConfigMap the label.
        let concern = if self.limitadors.has(&store) { Concern::Gateways } else { Concern::Nothing };
        self.stores.insert(store, annotation(object, RENDERED).map(str::to_owned));
        concern
    }

    fn configure(&mut self, limitadors: Limitadors, are_valid: bool) -> Concern {
        if self.limitadors == limitadors && self.are_settings_valid == are_valid {
            return Concern::Nothing;
        }
        self.limitadors = limitadors;
        self.are_settings_valid = are_valid;
        self.stored.clear();
        Concern::All
    }

    /// Whether another operator carries policies out.
    pub(super) fn is_idle(&self) -> bool {
        !self.kuadrants.is_empty()
    }

    /// Whether limits are to be carried out here.
    pub(in crate::policies) fn is_configured(&self) -> bool {
        !self.is_idle() && self.limitadors != Limitadors::default()
    }

    /// Why limits of a policy are not carried out on a Gateway.
    pub(super) fn left_out(&mut self, index: &Index, gateway: &NodeKey, policy: &PolicyId) -> Option<String> {
        let (limitador, address) = self.limitador(index, gateway).ok()?;
        let rendered = self.rendered(index, gateway, &address);
        if let Some(own) = rendered.output.left_out.iter().find(|own| own.policy == *policy) {
            return Some(format!("limit {} is not carried out: {}", own.limit, own.why));
        }
        let is_beyond = self.stored(index, &limitador).beyond.contains(&policy.namespace);
        (is_beyond && is_of_route(index, policy)).then(|| {
            format!(
                "this namespace has more limits than its share of {}; write fewer, or count them with another Limitador",
                names::store(&limitador.store)
            )
        })
    }

    /// Forgets what was rendered for a Gateway.
    pub(in crate::policies) fn outdate(&mut self, gateway: &NodeKey) {
        self.rendered.remove(gateway);
        self.stored.clear();
    }

    /// The Limitador of a Gateway and its address, where the policies of the Gateway are carried out.
    pub(super) fn limitador(&self, index: &Index, gateway: &NodeKey) -> Result<(Limitador, Address), Idle> {
        if !self.kuadrants.is_empty() {
            return Err(Idle::Kuadrant);
        }
        if !is_of_envoy_gateway(index, gateway) {
            return Err(Idle::Lacks(format!(
                "{gateway} is not of a GatewayClass of Envoy Gateway ({ENVOY_GATEWAY}), and only those are carried out"
            )));
        }
        let Some(limitador) = self.limitadors.of(&name_of(gateway)) else {
            if !self.are_settings_valid {
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

    /// All that carries out the policies of a Gateway.
    pub(super) fn rendered(&mut self, index: &Index, gateway: &NodeKey, address: &Address) -> Arc<Rendered> {
        if let Some(rendered) = self.rendered.get(gateway).filter(|own| own.address == *address) {
            return rendered.clone();
        }
        let (host, port) = address;
        let cluster = names::cluster(address);
        let output = output_of(index, &mut self.read, &self.unready, gateway, &cluster);
        let patches = operations(&output, (&cluster, envoy::cluster(&cluster, host, *port)));
        let hashed = |operations: Vec<Value>| {
            let hash = names::hash(&Value::from(operations.clone()));
            (operations, hash)
        };
        let patches = patches.map(|patches| patches.into_iter().map(hashed).collect());
        let rendered = Arc::new(Rendered { address: address.clone(), output, patches });
        self.rendered.insert(gateway.clone(), rendered.clone());
        self.read.sweep();
        rendered
    }

    /// The limits of all Gateways of a Limitador.
    pub(super) fn stored(&mut self, index: &Index, limitador: &Limitador) -> Arc<StoredLimits> {
        if let Some(stored) = self.stored.get(&limitador.store) {
            return stored.clone();
        }
        let mut all = Vec::new();
        for object in index.objects() {
            let ObjectKey::Node(gateway) = object else { continue };
            if gateway.kind != ObjectKind::Gateway {
                continue;
            }
            let Ok((own, address)) = self.limitador(index, gateway) else { continue };
            if own.store == limitador.store {
                all.push(self.rendered(index, gateway, &address));
            }
        }
        let mut sizes = Sizes::default();
        for limit in all.iter().flat_map(|rendered| &rendered.output.limits) {
            let bytes = limit.entries.iter().map(|entry| entry.to_string().len() + 2).sum();
            sizes.add(limit.namespace.as_ref(), bytes);
        }
        let mut shares = Shares::of(sizes.share(budget::OF_LIMITADOR));
        let (mut entries, mut beyond) = (Vec::new(), BTreeSet::new());
        for limit in all.iter().flat_map(|rendered| &rendered.output.limits) {
            let bytes = limit.entries.iter().map(|entry| entry.to_string().len() + 2).sum();
            match shares.admits(limit.namespace.as_ref(), bytes) {
                true => entries.extend(limit.entries.iter().cloned()),
                false => beyond.extend(limit.namespace.clone()),
            }
        }
        let is_empty = entries.is_empty();
        let content = match limitador.store {
            LimitStore::ConfigMap(_) => limitador::file(&entries).into(),
            LimitStore::Limitador(_) => Value::from(entries),
        };
        let hash = names::hash(&content);
        let stored = Arc::new(StoredLimits { content, is_empty, hash, beyond });
        self.stored.insert(limitador.store.clone(), stored.clone());
        stored
    }

    /// How far the outputs of a Gateway have come.
    pub(super) fn delivery(&mut self, index: &Index, gateway: &NodeKey) -> Delivery {
        let (limitador, address) = match self.limitador(index, gateway) {
            Ok(own) => own,
            Err(Idle::Kuadrant) => {
                return Delivery::Failed("Kuadrant carries policies out in this cluster".to_owned());
            }
            Err(Idle::Lacks(what)) => return Delivery::Failed(what),
            Err(Idle::Awaits(what)) => return Delivery::Pending(what),
        };
        let rendered = self.rendered(index, gateway, &address);
        let patches = match &rendered.patches {
            Ok(patches) => patches,
            Err(TooLarge) => return Delivery::Failed(TooLarge::message()),
        };
        // It is tried again, so it is looked at again.
        if let Some(why) = self.refused.get(gateway) {
            return Delivery::Pending(why.clone());
        }
        for (position, (_, hash)) in patches.iter().enumerate() {
            let name = names::patch(gateway, position);
            let awaited = || Delivery::Pending(format!("EnvoyPatchPolicy {name}"));
            let seen = self.patches.get(&name).filter(|seen| seen.rendered.as_ref() == Some(hash));
            match seen.and_then(|seen| seen.programmed.as_ref()) {
                None => return awaited(),
                Some(Err(why)) => return Delivery::Failed(format!("EnvoyPatchPolicy {name}: {why}")),
                Some(Ok(())) => {}
            }
        }
        let stored = self.stored(index, &limitador);
        if patches.is_empty() || self.stores.get(&limitador.store) == Some(&Some(stored.hash.clone())) {
            return Delivery::Delivered;
        }
        Delivery::Pending(names::store(&limitador.store))
    }
}

impl SeenPatch {
    fn of(object: &Value, name: &NamespacedName) -> Self {
        let target = object["spec"]["targetRef"]["name"].as_str().unwrap_or_default();
        let gateway = NodeKey::new(ObjectKind::Gateway, &name.namespace, target);
        let generation = &object["metadata"]["generation"];
        let ancestors = object["status"]["ancestors"].as_array().into_iter().flatten();
        let conditions = ancestors.flat_map(|own| own["conditions"].as_array().into_iter().flatten());
        let conditions: Vec<&Value> =
            conditions.filter(|own| own["observedGeneration"] == *generation).collect();
        let is = |kind: &str, status: &str| {
            conditions.iter().find(|own| own["type"] == kind && own["status"] == status)
        };
        let refused = ["Accepted", "Programmed"].iter().find_map(|kind| is(kind, "False"));
        let programmed = match refused {
            Some(own) => {
                let text = |field: &str| own[field].as_str().unwrap_or_default();
                let message: String = text("message").chars().take(MESSAGE).collect();
                Some(Err(format!("{}: {message}", text("reason"))))
            }
            None => is("Programmed", "True").map(|_| Ok(())),
        };
        Self { gateway, rendered: annotation(object, RENDERED).map(str::to_owned), programmed }
    }
}

/// Whether an EnvoyPatchPolicy has a name and the label of those that Interlock makes.
fn is_ours(object: &Value, name: &NamespacedName) -> bool {
    name.name.starts_with(names::PATCH) && !object["metadata"]["labels"][GATEWAY_UID].is_null()
}

fn address_of(object: &Value) -> Option<Address> {
    let service = &object["status"]["service"];
    let port = service["ports"]["grpc"].as_u64().and_then(|port| u16::try_from(port).ok());
    Some((service["host"].as_str()?.to_owned(), port.unwrap_or(limitadors::GRPC_PORT)))
}

/// Namespace and name of a node.
pub(super) fn name_of(node: &NodeKey) -> NamespacedName {
    NamespacedName::new(&*node.namespace, &*node.name)
}

fn is_of_envoy_gateway(index: &Index, gateway: &NodeKey) -> bool {
    index.controller_of(gateway) == Some(ENVOY_GATEWAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_goes_takes_along_what_was_refused() {
        let mut enforcement = Enforcement::default();
        let gateway = NodeKey::new(ObjectKind::Gateway, "shop", "gw");
        enforcement.refuse(&gateway, Some("a quota".to_owned()));
        enforcement.drop("ListenerSet", &NamespacedName::new("shop", "gw"));
        assert_eq!(enforcement.refused.len(), 1);
        enforcement.drop("Gateway", &NamespacedName::new("shop", "gw"));
        assert!(enforcement.refused.is_empty());
    }
}
