//! The gateways of a list of objects, and what affects their flavors.

use std::sync::Arc;

use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::{NamespacedName, ObjectKey};
use interlock_core::api::revision::Revisions;
use interlock_core::api::stamp::SpecHash;
use interlock_core::kinds::listed::ListedObjects;
use serde_json::Value;

use super::GatewayLister;
use super::flavor::gateway_ref::GatewayRef;
use super::flavor::inventory::{FlavorDependent, GatewayContext, GatewayInventory};
use super::flavor::sources::FlavorSource;

/// Gateways, their sources, producers and routes, and their archived specs.
#[derive(Clone, Debug, Default)]
pub struct ListedGateways {
    flavors: GatewayInventory,
    revisions: Revisions,
    /// Whether the list contains objects that flavors could depend on.
    has_flavor_objects: bool,
}

impl ListedGateways {
    /// None.
    pub fn empty() -> Arc<dyn ListedObjects> {
        Arc::new(Self::default())
    }
}

impl ListedObjects for ListedGateways {
    fn add(&mut self, key: &ObjectKey, object: &Value, namespace: &str) -> Result<(), serde_json::Error> {
        if Revisions::is(object) {
            self.revisions.add(object, key.namespace.as_deref().unwrap_or(namespace));
        } else if GatewayInventory::reads(object) {
            self.flavors.take(object, namespace);
            self.has_flavor_objects = true;
        }
        Ok(())
    }

    fn listers(self: Arc<Self>, listers: KindListers) -> KindListers {
        listers.with::<dyn GatewayLister>(self)
    }

    fn copied(&self) -> Arc<dyn ListedObjects> {
        Arc::new(self.clone())
    }
}

impl GatewayLister for ListedGateways {
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext {
        let gateway_context = self.flavors.context_of(gateway);
        match self.has_flavor_objects {
            true => gateway_context,
            false => GatewayContext { routes: GatewayContext::default().routes, ..gateway_context },
        }
    }

    fn live_spec(&self, data_plane: &NamespacedName, uid: &str, hash: &SpecHash) -> Option<String> {
        self.revisions.spec(data_plane, uid, hash)
    }

    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent> {
        self.flavors.dependents(source)
    }
}
