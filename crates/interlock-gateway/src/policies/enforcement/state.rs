//! What is known of what carries policies out, beside the graph: settings, what is written already, and what is to be.

use std::sync::Arc;

use gateway_policies::{Delivery, Index, NodeKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::{DEFAULT, LimitStore, Limitador};
use interlock_core::api::object::{NamespacedName, meta_str};
use serde_json::Value;

use super::ancestors::Pruning;
use super::auth::seen::{self, SeenAuthConfig};
use super::counting::Counting;
use super::fleet::Fleet;
use super::idle::Idle;
use super::left_out::LeftOut;
use super::limits::is_of_route;
use super::names::{self, Patched};
use super::output::Redirects;
use super::rendering::{Rendered, Rendering, StoredLimits};
use super::written::{SeenPatch, Written, is_ours};

/// See the module.
#[derive(Clone, Default)]
pub(in crate::policies) struct Enforcement {
    counting: Counting,
    pub(super) written: Written,
    rendering: Rendering,
    pub(super) pruning: Pruning,
}

/// What a Gateway, and those that it is merged with, want written.
pub(super) struct Wanted {
    pub(super) rendered: Arc<Rendered>,
    /// Its Limitador, and what that counts.
    pub(super) stored: Option<(Limitador, Arc<StoredLimits>)>,
}

/// What a report concerns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::policies) enum Concern {
    /// The graph.
    #[default]
    Graph,
    /// Nothing.
    Nothing,
    /// A Gateway, or a GatewayClass.
    Gateway(NodeKey),
    /// The same, and its policies.
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
        self.forget_fleets(kind);
        match kind {
            // Its label may have been taken away.
            "EnvoyPatchPolicy" if !is_ours(object, &name) && self.written.patches.contains_key(&name) => {
                self.drop(kind, &name)
            }
            "EnvoyPatchPolicy" if is_ours(object, &name) => {
                let seen = SeenPatch::of(object, &name);
                let target = seen.target.clone();
                match self.written.patches.insert(name, seen.clone()) {
                    Some(was) if was == seen => Concern::Gateway(target),
                    Some(was) if was.target != target => Concern::GatewayAndPolicies(was.target),
                    _ => Concern::GatewayAndPolicies(target),
                }
            }
            "AuthConfig" if seen::is_ours(object, &name) => {
                let was = self.written.auth_configs.get(&name);
                let seen = SeenAuthConfig::of(object, &name, was);
                let gateway = seen.gateway.clone();
                let was = self.written.auth_configs.insert(name, seen.clone());
                // An edit by hand is put right, and what else changes decides whether requests are let in.
                match was {
                    Some(was) if was == seen => Concern::Gateway(gateway),
                    Some(was) if was.gateway != gateway => {
                        self.rendering.outdate(&gateway);
                        self.reguard(was.gateway)
                    }
                    _ => self.reguard(gateway),
                }
            }
            // Its label may have been taken away.
            "AuthConfig" => self.drop("AuthConfig", &name),
            "ConfigMap" => self.store(LimitStore::ConfigMap(name), object),
            "Limitador" => {
                self.counting.locate(&name, Some(object));
                self.store(LimitStore::Limitador(name), object)
            }
            "Kuadrant" => {
                self.counting.kuadrants.insert(name);
                Concern::All
            }
            "EnvoyProxy" => self.merges(&name, Some(object)),
            "Interlock" if name.name == DEFAULT => self.configure(Some(object)),
            "Interlock" => Concern::Nothing,
            _ => Concern::Graph,
        }
    }

    /// Takes in that an object is gone; what it concerns.
    pub(in crate::policies) fn drop(&mut self, kind: &str, name: &NamespacedName) -> Concern {
        self.forget_fleets(kind);
        match kind {
            "EnvoyPatchPolicy" => {
                let seen = self.written.patches.remove(name);
                seen.map_or(Concern::Graph, |seen| Concern::GatewayAndPolicies(seen.target))
            }
            "AuthConfig" => match self.written.auth_configs.remove(name) {
                Some(seen) => self.reguard(seen.gateway),
                None => Concern::Nothing,
            },
            "ConfigMap" => {
                self.written.stores.remove(&LimitStore::ConfigMap(name.clone()));
                Concern::Gateways
            }
            "Limitador" => {
                self.counting.locate(name, None);
                self.written.stores.remove(&LimitStore::Limitador(name.clone()));
                Concern::All
            }
            "Kuadrant" => {
                self.counting.kuadrants.remove(name);
                Concern::All
            }
            "Gateway" | "ListenerSet" | "XListenerSet" => {
                self.rendering.unready.drop(kind, name);
                if kind == "Gateway" {
                    let gateway = NodeKey::new(ObjectKind::Gateway, &name.namespace, &name.name);
                    self.written.drop(&gateway);
                    self.rendering.drop(&gateway);
                }
                Concern::Graph
            }
            "EnvoyProxy" => self.merges(name, None),
            "GatewayClass" => {
                self.counting.merging.drop_class(&name.name);
                Concern::Graph
            }
            "Interlock" if name.name == DEFAULT => self.configure(None),
            "Interlock" => Concern::Nothing,
            _ => Concern::Graph,
        }
    }

    /// Forgets the objects of a kind, which may exist.
    pub(in crate::policies) fn forget(&mut self, kind: &str) -> Concern {
        self.forget_fleets(kind);
        match kind {
            "EnvoyPatchPolicy" => self.written.patches.clear(),
            "AuthConfig" => {
                let all = std::mem::take(&mut self.written.auth_configs);
                all.into_values().for_each(|own| self.rendering.outdate(&own.gateway));
            }
            "Kuadrant" => self.counting.kuadrants.clear(),
            "EnvoyProxy" => {
                self.counting.merging.forget_proxies();
                self.rendering.forget_stored();
            }
            "ConfigMap" => self.written.stores.retain(|store, _| !matches!(store, LimitStore::ConfigMap(_))),
            "Limitador" => {
                self.counting.forget_addresses();
                self.written.stores.retain(|store, _| !matches!(store, LimitStore::Limitador(_)));
            }
            _ => {
                self.rendering.unready.forget(kind);
                return Concern::Graph;
            }
        }
        Concern::All
    }

    /// Takes in the status of a Gateway or ListenerSet; the Gateway of which another listener is the first of a port by it.
    pub(in crate::policies) fn take_listeners(&mut self, object: &Value) -> Option<NodeKey> {
        let gateway = self.rendering.unready.take(object)?;
        self.outdate(&gateway);
        Some(gateway)
    }

    /// The auth server decides by other AuthConfigs of a Gateway than before.
    fn reguard(&mut self, gateway: NodeKey) -> Concern {
        self.rendering.outdate(&gateway);
        Concern::GatewayAndPolicies(gateway)
    }

    fn store(&mut self, store: LimitStore, object: &Value) -> Concern {
        // Anybody may give a ConfigMap the label.
        let concern = if self.counting.has(&store) { Concern::Gateways } else { Concern::Nothing };
        self.written.store(store, object);
        concern
    }

    fn merges(&mut self, name: &NamespacedName, proxy: Option<&Value>) -> Concern {
        match self.counting.merging.take_proxy(name, proxy) {
            true => {
                self.rendering.forget_stored();
                Concern::All
            }
            false => Concern::Nothing,
        }
    }

    /// A report of a kind may change what is merged, and what merged Gateways ask.
    fn forget_fleets(&mut self, kind: &str) {
        const KINDS: [&str; 6] =
            ["EnvoyProxy", "Gateway", "GatewayClass", "Interlock", "Kuadrant", "Limitador"];
        if KINDS.contains(&kind) {
            self.counting.forget_fleets();
        }
    }

    fn configure(&mut self, interlock: Option<&Value>) -> Concern {
        if !self.counting.configure(interlock) {
            return Concern::Nothing;
        }
        self.rendering.forget_stored();
        Concern::All
    }

    /// Whether another operator carries policies out.
    pub(super) fn is_idle(&self) -> bool {
        self.counting.is_idle()
    }

    /// Whether limits are to be carried out here.
    pub(in crate::policies) fn is_configured(&self) -> bool {
        self.counting.is_configured()
    }

    /// Forgets what was rendered for a Gateway.
    pub(in crate::policies) fn outdate(&mut self, gateway: &NodeKey) {
        self.rendering.outdate(gateway);
    }

    /// Policies whose conditions are to say something else than before, though their outputs are the same.
    pub(in crate::policies) fn take_restated(&mut self) -> impl Iterator<Item = PolicyId> + use<> {
        self.rendering.take_restated().into_iter()
    }

    /// What a Gateway, and those that it is merged with, want written.
    pub(super) fn wanted(&mut self, index: &Index, gateway: &NodeKey) -> Result<Wanted, Idle> {
        let rendered = self.rendered(index, gateway)?;
        Ok(self.with_stored(index, rendered))
    }

    /// The Limitador that the settings give a merged Gateway that is counted by none, and what that counts of others: what it
    /// counted before is not left there.
    pub(super) fn uncounted(
        &mut self,
        index: &Index,
        gateway: &NodeKey,
        wanted: &Wanted,
    ) -> Option<(Limitador, Arc<StoredLimits>)> {
        let is_uncounted = wanted.rendered.asked.uncounted.contains(gateway);
        let (limitador, _) = self.counting.limitador(gateway).ok().filter(|_| is_uncounted)?;
        let stored = self.stored(index, &limitador);
        Some((limitador, stored))
    }

    /// What the Gateways of a GatewayClass want written; none where they are not merged.
    pub(super) fn wanted_of_class(&mut self, index: &Index, class: &NodeKey) -> Result<Option<Wanted>, Idle> {
        let Some(fleet) = self.counting.fleet_of_class(index, &self.rendering.unready, class)? else {
            return Ok(None);
        };
        let rendered = self.of_fleet(index, fleet)?;
        Ok(Some(self.with_stored(index, rendered)))
    }

    fn with_stored(&mut self, index: &Index, rendered: Arc<Rendered>) -> Wanted {
        let limitador = rendered.asked.limitador.as_ref().ok().map(|(own, _)| own.clone());
        let stored = limitador.map(|own| {
            let stored = self.stored(index, &own);
            (own, stored)
        });
        Wanted { rendered, stored }
    }

    /// Why rules of a policy are not carried out on a Gateway.
    pub(super) fn left_out(&mut self, index: &Index, gateway: &NodeKey, policy: &PolicyId) -> Option<String> {
        let Wanted { rendered, stored } = self.wanted(index, gateway).ok()?;
        let first = LeftOut::first_of(policy);
        let of_policy = |own: &&LeftOut| own.policy == *policy;
        let is_here = |own: &&LeftOut| own.gateway.as_ref().is_none_or(|own| own == gateway);
        let mut limits = rendered.output.left_out.range(&first..).take_while(of_policy);
        if let Some(own) = limits.find(is_here) {
            return Some(format!("limit {} is not carried out: {}", own.rule, own.why));
        }
        let guarded = rendered.guarded.iter().filter(|_| rendered.asked.auth.is_ok());
        let mut guarded = guarded.flat_map(|own| own.left_out.range(&first..).take_while(of_policy));
        if let Some(own) = guarded.find(is_here) {
            return Some(format!(
                "{} is not carried out, and its routes let no request in: {}",
                own.rule, own.why
            ));
        }
        let (limitador, stored) = stored?;
        (stored.beyond.contains(&policy.namespace) && is_of_route(index, policy)).then(|| {
            format!(
                "this namespace has more limits than its share of {}; write fewer, or count them with another Limitador",
                names::store(&limitador.store)
            )
        })
    }

    /// What the proxies of a Gateway redirect of the requests of a policy.
    pub(super) fn redirects(
        &mut self,
        index: &Index,
        gateway: &NodeKey,
        policy: &PolicyId,
    ) -> Option<Redirects> {
        let rendered = self.rendered(index, gateway).ok()?;
        rendered.output.redirects.get(policy).cloned()
    }

    /// Whether policies of a kind are carried out on a Gateway.
    pub(super) fn carries_out(&mut self, index: &Index, gateway: &NodeKey, kind: &str) -> bool {
        let patched = Patched::of_kind(kind);
        self.rendered(index, gateway).is_ok_and(|rendered| {
            let is_uncounted = patched == Patched::Limits && rendered.asked.uncounted.contains(gateway);
            !is_uncounted && rendered.idle(patched).is_none()
        })
    }

    fn rendered(&mut self, index: &Index, gateway: &NodeKey) -> Result<Arc<Rendered>, Idle> {
        let fleet = self.counting.fleet(index, &self.rendering.unready, gateway);
        self.of_fleet(index, fleet)
    }

    fn of_fleet(&mut self, index: &Index, fleet: Arc<Fleet>) -> Result<Arc<Rendered>, Idle> {
        let written = &self.written;
        let is_ready = |gateway: &NodeKey, host: &str| written.is_auth_config_ready(gateway, host);
        self.rendering.of_fleet(index, fleet, &is_ready)
    }

    /// Whether what carries out the policies of a kind on a Gateway is there, and nothing is in the way of its next form.
    pub(super) fn is_patched(&mut self, index: &Index, gateway: &NodeKey, patched: Patched) -> bool {
        let fleet = self.counting.fleet(index, &self.rendering.unready, gateway);
        self.written.is_patched(&fleet, patched)
    }

    /// Whether the Gateways of a class are merged.
    pub(in crate::policies) fn is_merged(&self, class: &str) -> bool {
        self.counting.merging.namespace(class).is_ok_and(|own| own.is_some())
    }

    /// Takes in a GatewayClass; whether its Gateways may be merged since, or apart.
    pub(in crate::policies) fn take_class(&mut self, object: &Value) -> bool {
        let is_new = self.counting.merging.take_class(object);
        if is_new {
            self.rendering.forget_stored();
        }
        is_new
    }

    fn stored(&mut self, index: &Index, limitador: &Limitador) -> Arc<StoredLimits> {
        let written = &self.written;
        let is_ready = |gateway: &NodeKey, host: &str| written.is_auth_config_ready(gateway, host);
        self.rendering.of_limitador(index, &mut self.counting, limitador, &is_ready)
    }

    /// How far what a Gateway has for a policy has come.
    pub(super) fn delivery(&mut self, index: &Index, gateway: &NodeKey, policy: &PolicyId) -> Delivery {
        let rendered = match self.rendered(index, gateway) {
            Ok(own) => own,
            Err(idle) => return undelivered(&idle),
        };
        let patched = Patched::of_kind(&policy.kind);
        if let Some(idle) = rendered.idle(patched) {
            return undelivered(idle);
        }
        let delivery = self.written.delivery(&rendered, patched);
        if delivery != Delivery::Delivered {
            return delivery;
        }
        match patched {
            Patched::Guards => self.written.auth_delivery(gateway, &rendered, policy),
            Patched::Limits => self.limits_delivery(index, &rendered),
        }
    }

    fn limits_delivery(&mut self, index: &Index, rendered: &Rendered) -> Delivery {
        let Ok((limitador, _)) = &rendered.asked.limitador else { return Delivery::Delivered };
        if rendered.output.routes.is_empty() {
            return Delivery::Delivered;
        }
        let stored = self.stored(index, limitador);
        match self.written.stores.get(&limitador.store) == Some(&Some(stored.hash.clone())) {
            true => Delivery::Delivered,
            false => Delivery::Pending(names::store(&limitador.store)),
        }
    }
}

fn undelivered(idle: &Idle) -> Delivery {
    match idle {
        Idle::Kuadrant => Delivery::Failed("Kuadrant carries policies out in this cluster".to_owned()),
        Idle::Lacks(what) => Delivery::Failed(what.clone()),
        Idle::Awaits(what) => Delivery::Pending(what.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_goes_takes_along_what_was_refused() {
        let mut enforcement = Enforcement::default();
        let gateway = NodeKey::new(ObjectKind::Gateway, "shop", "gw");
        enforcement.written.refuse(&gateway, Patched::Limits, Some("a quota".to_owned()));
        enforcement.drop("ListenerSet", &NamespacedName::new("shop", "gw"));
        assert_eq!(enforcement.written.refused.len(), 1);
        enforcement.drop("Gateway", &NamespacedName::new("shop", "gw"));
        assert!(enforcement.written.refused.is_empty());
    }
}
