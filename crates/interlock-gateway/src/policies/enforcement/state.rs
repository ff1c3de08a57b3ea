//! What is known of what carries policies out, beside the graph: settings, what is written already, and what is to be.

use std::sync::Arc;

use gateway_policies::{Delivery, Index, NodeKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::{DEFAULT, LimitStore, Limitador};
use interlock_core::api::object::{NamespacedName, meta_str};
use serde_json::Value;

use super::ancestors::Pruning;
use super::auth::seen::{self, SeenAuthConfig};
use super::counting::{Counting, Idle};
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

/// What one Gateway wants written.
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
            // Its label may have been taken away.
            "EnvoyPatchPolicy" if !is_ours(object, &name) && self.written.patches.contains_key(&name) => {
                self.drop(kind, &name)
            }
            "EnvoyPatchPolicy" if is_ours(object, &name) => {
                let seen = SeenPatch::of(object, &name);
                let gateway = seen.gateway.clone();
                match self.written.patches.insert(name, seen.clone()) {
                    Some(was) if was == seen => Concern::Gateway(gateway),
                    Some(was) if was.gateway != gateway => Concern::GatewayAndPolicies(was.gateway),
                    _ => Concern::GatewayAndPolicies(gateway),
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
            "Interlock" if name.name == DEFAULT => self.configure(Some(object)),
            "Interlock" => Concern::Nothing,
            _ => Concern::Graph,
        }
    }

    /// Takes in that an object is gone; what it concerns.
    pub(in crate::policies) fn drop(&mut self, kind: &str, name: &NamespacedName) -> Concern {
        match kind {
            "EnvoyPatchPolicy" => {
                let seen = self.written.patches.remove(name);
                seen.map_or(Concern::Graph, |seen| Concern::GatewayAndPolicies(seen.gateway))
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
            "Interlock" if name.name == DEFAULT => self.configure(None),
            "Interlock" => Concern::Nothing,
            _ => Concern::Graph,
        }
    }

    /// Forgets the objects of a kind, which may exist.
    pub(in crate::policies) fn forget(&mut self, kind: &str) -> Concern {
        match kind {
            "EnvoyPatchPolicy" => self.written.patches.clear(),
            "AuthConfig" => {
                let all = std::mem::take(&mut self.written.auth_configs);
                all.into_values().for_each(|own| self.rendering.outdate(&own.gateway));
            }
            "Kuadrant" => self.counting.kuadrants.clear(),
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

    /// What a Gateway wants written.
    pub(super) fn wanted(&mut self, index: &Index, gateway: &NodeKey) -> Result<Wanted, Idle> {
        let rendered = self.rendered(index, gateway)?;
        let limitador = rendered.asked.limitador.as_ref().ok().map(|(own, _)| own.clone());
        let stored = limitador.map(|own| {
            let stored = self.stored(index, &own);
            (own, stored)
        });
        Ok(Wanted { rendered, stored })
    }

    /// Why rules of a policy are not carried out on a Gateway.
    pub(super) fn left_out(&mut self, index: &Index, gateway: &NodeKey, policy: &PolicyId) -> Option<String> {
        let Wanted { rendered, stored } = self.wanted(index, gateway).ok()?;
        let first = LeftOut::first_of(policy);
        let of_policy = |own: &&LeftOut| own.policy == *policy;
        if let Some(own) = rendered.output.left_out.range(&first..).next().filter(of_policy) {
            return Some(format!("limit {} is not carried out: {}", own.rule, own.why));
        }
        let guarded = rendered.guarded.iter().filter(|_| rendered.asked.auth.is_ok());
        let mut guarded = guarded.flat_map(|own| own.left_out.range(&first..));
        if let Some(own) = guarded.next().filter(of_policy) {
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
        self.rendered(index, gateway).is_ok_and(|rendered| rendered.idle(Patched::of_kind(kind)).is_none())
    }

    fn rendered(&mut self, index: &Index, gateway: &NodeKey) -> Result<Arc<Rendered>, Idle> {
        let asked = self.counting.asked(index, gateway)?;
        let written = &self.written;
        let is_ready = |host: &str| written.is_auth_config_ready(gateway, host);
        Ok(self.rendering.of_gateway(index, gateway, asked, &is_ready))
    }

    fn stored(&mut self, index: &Index, limitador: &Limitador) -> Arc<StoredLimits> {
        let written = &self.written;
        let is_ready = |gateway: &NodeKey, host: &str| written.is_auth_config_ready(gateway, host);
        self.rendering.of_limitador(index, &self.counting, limitador, &is_ready)
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
        let delivery = self.written.delivery(gateway, &rendered, patched);
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
