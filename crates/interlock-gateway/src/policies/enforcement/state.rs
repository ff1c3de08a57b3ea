//! What is known of what carries policies out, beside the graph: settings, what is written already, and what is to be.

use std::sync::Arc;

use gateway_policies::{Delivery, Index, NodeKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::{DEFAULT, LimitStore, Limitador};
use interlock_core::api::object::{NamespacedName, meta_str};
use serde_json::Value;

use super::ancestors::Pruning;
use super::counting::{Address, Counting, Idle};
use super::limits::{LeftOut, is_of_route};
use super::names;
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
    pub(super) limitador: Limitador,
    pub(super) stored: Arc<StoredLimits>,
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
                match self.written.patches.insert(name, seen.clone()) {
                    Some(was) if was == seen => Concern::Gateway(gateway),
                    Some(was) if was.gateway != gateway => Concern::GatewayAndPolicies(was.gateway),
                    _ => Concern::GatewayAndPolicies(gateway),
                }
            }
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
                    self.written.refuse(&gateway, None);
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
        let (limitador, rendered) = self.rendered(index, gateway)?;
        let stored = self.rendering.of_limitador(index, &self.counting, &limitador);
        Ok(Wanted { rendered, limitador, stored })
    }

    /// Why limits of a policy are not carried out on a Gateway.
    pub(super) fn left_out(&mut self, index: &Index, gateway: &NodeKey, policy: &PolicyId) -> Option<String> {
        let Wanted { rendered, limitador, stored } = self.wanted(index, gateway).ok()?;
        let mut left_out = rendered.output.left_out.range(LeftOut::first_of(policy)..);
        if let Some(own) = left_out.next().filter(|own| own.policy == *policy) {
            return Some(format!("limit {} is not carried out: {}", own.limit, own.why));
        }
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
        let (_, rendered) = self.rendered(index, gateway).ok()?;
        rendered.output.redirects.get(policy).cloned()
    }

    fn rendered(&mut self, index: &Index, gateway: &NodeKey) -> Result<(Limitador, Arc<Rendered>), Idle> {
        let (limitador, address): (_, Address) = self.counting.limitador(index, gateway)?;
        Ok((limitador, self.rendering.of_gateway(index, gateway, &address)))
    }

    /// How far the outputs of a Gateway have come.
    pub(super) fn delivery(&mut self, index: &Index, gateway: &NodeKey) -> Delivery {
        let (limitador, rendered) = match self.rendered(index, gateway) {
            Ok(own) => own,
            Err(Idle::Kuadrant) => {
                return Delivery::Failed("Kuadrant carries policies out in this cluster".to_owned());
            }
            Err(Idle::Lacks(what)) => return Delivery::Failed(what),
            Err(Idle::Awaits(what)) => return Delivery::Pending(what),
        };
        let delivery = self.written.delivery(gateway, &rendered);
        if delivery != Delivery::Delivered || rendered.patches.as_ref().is_ok_and(Vec::is_empty) {
            return delivery;
        }
        let stored = self.rendering.of_limitador(index, &self.counting, &limitador);
        match self.written.stores.get(&limitador.store) == Some(&Some(stored.hash.clone())) {
            true => Delivery::Delivered,
            false => Delivery::Pending(names::store(&limitador.store)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_goes_takes_along_what_was_refused() {
        let mut enforcement = Enforcement::default();
        let gateway = NodeKey::new(ObjectKind::Gateway, "shop", "gw");
        enforcement.written.refuse(&gateway, Some("a quota".to_owned()));
        enforcement.drop("ListenerSet", &NamespacedName::new("shop", "gw"));
        assert_eq!(enforcement.written.refused.len(), 1);
        enforcement.drop("Gateway", &NamespacedName::new("shop", "gw"));
        assert!(enforcement.written.refused.is_empty());
    }
}
