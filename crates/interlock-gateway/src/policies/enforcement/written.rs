//! What is written already, and what the API server and Envoy Gateway say of it.

use std::collections::BTreeMap;

use gateway_policies::{Delivery, NodeKey, ObjectKind};
use interlock_core::api::interlock::LimitStore;
use interlock_core::api::object::{NamespacedName, annotation};
use serde_json::Value;

use super::names::{self, GATEWAY_UID, RENDERED};
use super::patches::TooLarge;
use super::rendering::Rendered;

/// Characters of what Envoy Gateway says: it may quote whole listeners.
const MESSAGE: usize = 200;

/// An EnvoyPatchPolicy of ours, as its watch reported it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenPatch {
    pub(super) gateway: NodeKey,
    rendered: Option<String>,
    /// What Envoy Gateway says of this very version; none where it says nothing yet.
    programmed: Option<Result<(), String>>,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Written {
    pub(super) patches: BTreeMap<NamespacedName, SeenPatch>,
    /// The hash of the limits that each has.
    pub(super) stores: BTreeMap<LimitStore, Option<String>>,
    /// The write for each Gateway that the API server refuses, and why.
    pub(super) refused: BTreeMap<NodeKey, String>,
}

impl Written {
    /// Takes in the limits that a store has.
    pub(super) fn store(&mut self, store: LimitStore, object: &Value) {
        self.stores.insert(store, annotation(object, RENDERED).map(str::to_owned));
    }

    /// Takes in which write for a Gateway the API server refuses, and why; none where it refuses none.
    pub(super) fn refuse(&mut self, gateway: &NodeKey, refused: Option<String>) {
        match refused {
            Some(why) => self.refused.insert(gateway.clone(), why),
            None => self.refused.remove(gateway),
        };
    }

    /// Whether an EnvoyPatchPolicy of a Gateway is there, Envoy Gateway has not refused it, and the API server refuses no
    /// change of it.
    pub(super) fn is_patched(&self, gateway: &NodeKey) -> bool {
        let seen = self.patches.get(&names::patch(gateway, 0));
        !self.refused.contains_key(gateway)
            && seen.is_some_and(|seen| !matches!(seen.programmed, Some(Err(_))))
    }

    /// How far the EnvoyPatchPolicies of a Gateway have come.
    pub(super) fn delivery(&self, gateway: &NodeKey, rendered: &Rendered) -> Delivery {
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
pub(super) fn is_ours(object: &Value, name: &NamespacedName) -> bool {
    name.name.starts_with(names::PATCH) && !object["metadata"]["labels"][GATEWAY_UID].is_null()
}
