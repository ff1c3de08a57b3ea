//! Which GatewayClasses have their Gateways merged into one proxy.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::object::{NamespacedName, meta_str};
use serde_json::Value;

use super::idle::Idle;
use crate::names::ENVOY_GATEWAY;

/// By the EnvoyProxy that a class names as its parameters. Without it, or while the class is being deleted, Envoy Gateway
/// merges nothing; by the defaults of its own configuration it may, which no object has.
#[derive(Clone, Default)]
pub(super) struct MergingClasses {
    /// By GatewayClass.
    named: BTreeMap<String, Named>,
    /// The EnvoyProxies that merge Gateways.
    merging: BTreeSet<NamespacedName>,
}

/// What a GatewayClass names.
#[derive(Clone, PartialEq, Eq)]
struct Named {
    proxy: NamespacedName,
    /// Whether Envoy Gateway refuses the EnvoyProxy: then it is not known whether it merges by it.
    is_refused: bool,
}

impl MergingClasses {
    /// Takes in a GatewayClass; whether that may change what is merged.
    pub(super) fn take_class(&mut self, object: &Value) -> bool {
        let Some(name) = meta_str(object, "name") else { return false };
        let reference = &object["spec"]["parametersRef"];
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let is_proxy = (text("group"), text("kind")) == (ENVOY_GATEWAY, "EnvoyProxy");
        let is_read = is_proxy && object["metadata"]["deletionTimestamp"].is_null();
        let named = is_read.then(|| Named {
            proxy: NamespacedName::new(reference["namespace"].as_str().unwrap_or("default"), text("name")),
            is_refused: is_refused(&object["status"]),
        });
        let before = match named.clone() {
            Some(named) => self.named.insert(name.to_owned(), named),
            None => self.named.remove(name),
        };
        before != named
    }

    /// Forgets a GatewayClass.
    pub(super) fn drop_class(&mut self, name: &str) {
        self.named.remove(name);
    }

    /// Takes in an EnvoyProxy, or that it is gone; whether that changes what is merged.
    pub(super) fn take_proxy(&mut self, name: &NamespacedName, object: Option<&Value>) -> bool {
        let is_new = match object.is_some_and(|own| own["spec"]["mergeGateways"] == true) {
            true => self.merging.insert(name.clone()),
            false => self.merging.remove(name),
        };
        is_new && self.named.values().any(|own| own.proxy == *name)
    }

    /// Forgets all EnvoyProxies.
    pub(super) fn forget_proxies(&mut self) {
        self.merging.clear();
    }

    /// The namespace of the EnvoyProxy that merges the Gateways of a class; none where they are not merged.
    pub(super) fn namespace(&self, class: &str) -> Result<Option<&str>, Idle> {
        match self.named.get(class).filter(|own| self.merging.contains(&own.proxy)) {
            None => Ok(None),
            Some(own) if own.is_refused => {
                Err(Idle::Awaits(format!("GatewayClass {class}, which Envoy Gateway does not accept")))
            }
            Some(own) => Ok(Some(&own.proxy.namespace)),
        }
    }
}

/// For a moment it is not accepted with another reason, where a Secret is missing, and is merged all the same.
fn is_refused(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|own| {
        own["type"] == "Accepted" && own["status"] == "False" && own["reason"] == "InvalidParameters"
    })
}
