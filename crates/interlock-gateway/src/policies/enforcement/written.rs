//! What is written already, and what the API server and Envoy Gateway say of it.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{Delivery, NodeKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::LimitStore;
use interlock_core::api::object::{NamespacedName, annotation};
use serde_json::Value;

use super::auth::config::AuthConfig;
use super::auth::seen::SeenAuthConfig;
use super::fleet::Fleet;
use super::names::{self, Patched, RENDERED};
use super::patches::TooLarge;
use super::rendering::Rendered;

/// Characters of what Envoy Gateway says: it may quote whole listeners.
const MESSAGE: usize = 200;

/// An EnvoyPatchPolicy of ours, as its watch reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenPatch {
    /// The Gateway or GatewayClass that it targets.
    pub(super) target: NodeKey,
    rendered: Option<String>,
    /// What Envoy Gateway says of this very version; none where it says nothing yet.
    programmed: Option<Result<(), String>>,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Written {
    pub(super) patches: BTreeMap<NamespacedName, SeenPatch>,
    pub(super) auth_configs: BTreeMap<NamespacedName, SeenAuthConfig>,
    /// The hash of the limits that each has.
    pub(super) stores: BTreeMap<LimitStore, Option<String>>,
    /// The write for each Gateway or GatewayClass that the API server refuses, and why.
    pub(super) refused: BTreeMap<(NodeKey, Patched), String>,
    /// AuthConfigs of each Gateway that it refuses, and why.
    pub(super) refused_configs: BTreeMap<NodeKey, BTreeMap<NamespacedName, String>>,
}

impl Written {
    /// Takes in the limits that a store has.
    pub(super) fn store(&mut self, store: LimitStore, object: &Value) {
        self.stores.insert(store, annotation(object, RENDERED).map(str::to_owned));
    }

    /// Takes in which write for a Gateway or GatewayClass the API server refuses, and why; none where it refuses none.
    pub(super) fn refuse(&mut self, target: &NodeKey, patched: Patched, refused: Option<String>) {
        let key = (target.clone(), patched);
        match refused {
            Some(why) => self.refused.insert(key, why),
            None => self.refused.remove(&key),
        };
    }

    /// Takes in which AuthConfigs of a Gateway it refuses.
    pub(super) fn refuse_configs(&mut self, gateway: &NodeKey, refused: BTreeMap<NamespacedName, String>) {
        match refused.is_empty() {
            true => self.refused_configs.remove(gateway),
            false => self.refused_configs.insert(gateway.clone(), refused),
        };
    }

    /// Forgets a Gateway.
    pub(super) fn drop(&mut self, gateway: &NodeKey) {
        Patched::ALL.into_iter().for_each(|patched| self.refuse(gateway, patched, None));
        self.refused_configs.remove(gateway);
    }

    /// Whether an EnvoyPatchPolicy of a fleet is there, Envoy Gateway has not refused it, and the API server refuses no
    /// change of it.
    pub(super) fn is_patched(&self, fleet: &Fleet, patched: Patched) -> bool {
        let seen = self.patches.get(&fleet.patch(patched, 0));
        !self.refused.contains_key(&(fleet.key.clone(), patched))
            && seen.is_some_and(|seen| !matches!(seen.programmed, Some(Err(_))))
    }

    /// Whether an auth server decides by the AuthConfig of a host.
    pub(super) fn is_auth_config_ready(&self, gateway: &NodeKey, host: &str) -> bool {
        let seen = self.auth_configs.get(&names::auth_config(gateway, host));
        seen.is_some_and(|own| own.is_ready(host).is_ok())
    }

    /// How far the AuthConfigs with rules of a policy have come.
    pub(super) fn auth_delivery(
        &self,
        gateway: &NodeKey,
        rendered: &Rendered,
        policy: &PolicyId,
    ) -> Delivery {
        let configs = rendered.guarded.iter().flat_map(|own| &own.configs);
        let is_one = |own: &AuthConfig| own.gateway == *gateway && own.policies.contains(policy);
        for (host, config) in configs.filter(|(_, own)| is_one(own)) {
            let name = names::auth_config(gateway, host);
            if let Some(why) = self.refused_configs.get(gateway).and_then(|own| own.get(&name)) {
                return Delivery::Pending(why.clone());
            }
            let seen = self.auth_configs.get(&name).filter(|own| own.rendered.as_ref() == Some(&config.hash));
            match seen.map(|own| own.is_ready(host)) {
                Some(Ok(())) => {}
                Some(Err(why)) => return Delivery::Pending(format!("AuthConfig {name}: {why}")),
                None => return Delivery::Pending(format!("AuthConfig {name}")),
            }
        }
        Delivery::Delivered
    }

    /// The namespaces with EnvoyPatchPolicies that target a GatewayClass.
    pub(super) fn namespaces_of(&self, class: &NodeKey) -> BTreeSet<&str> {
        let of_class = self.patches.iter().filter(|(_, seen)| seen.target == *class);
        of_class.map(|(name, _)| name.namespace.as_str()).collect()
    }

    /// How far EnvoyPatchPolicies of a fleet have come.
    pub(super) fn delivery(&self, rendered: &Rendered, patched: Patched) -> Delivery {
        let patches = match rendered.patches(patched) {
            Ok(patches) => patches,
            Err(TooLarge) => return Delivery::Failed(TooLarge::message()),
        };
        // It is tried again, so it is looked at again.
        if let Some(why) = self.refused.get(&(rendered.fleet.key.clone(), patched)) {
            return Delivery::Pending(why.clone());
        }
        for (position, (_, hash)) in patches.iter().enumerate() {
            let name = rendered.fleet.patch(patched, position);
            let seen = self.patches.get(&name).filter(|seen| seen.rendered.as_ref() == Some(hash));
            match seen.and_then(|seen| seen.programmed.as_ref()) {
                None => return Delivery::Pending(format!("EnvoyPatchPolicy {name}")),
                Some(Err(why)) => return Delivery::Failed(format!("EnvoyPatchPolicy {name}: {why}")),
                Some(Ok(())) => {}
            }
        }
        Delivery::Delivered
    }
}

impl SeenPatch {
    pub(super) fn of(object: &Value, name: &NamespacedName) -> Self {
        let reference = &object["spec"]["targetRef"];
        let is_class = reference["kind"] == ObjectKind::GatewayClass.name();
        let kind = if is_class { ObjectKind::GatewayClass } else { ObjectKind::Gateway };
        let target = NodeKey::new(kind, &name.namespace, reference["name"].as_str().unwrap_or_default());
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
        Self { target, rendered: annotation(object, RENDERED).map(str::to_owned), programmed }
    }
}

/// Whether an EnvoyPatchPolicy has a name and the label of those that Interlock makes.
pub(super) fn is_ours(object: &Value, name: &NamespacedName) -> bool {
    let patched = Patched::of_name(&name.name);
    patched.is_some_and(|own| !object["metadata"]["labels"][own.label()].is_null())
}
