//! What rules ask about gateways and about what determines their router flavors.

use interlock_core::admission::RuleContext;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;

use super::flavor::gateway_ref::GatewayRef;
use super::flavor::inventory::{FlavorDependent, GatewayContext};
use super::flavor::sources::FlavorSource;

/// The gateways, their sources, producers and routes.
pub trait GatewayLister: Send + Sync {
    /// What surrounds a gateway; empty if the cache has no such objects.
    fn context_of(&self, gateway: &GatewayRef) -> GatewayContext;

    /// The spec of that hash that a DataPlane's last-applied annotation refers to, as canonical JSON, if
    /// its ControllerRevision is known.
    fn live_spec(&self, _data_plane: &NamespacedName, _uid: &str, _hash: &SpecHash) -> Option<String> {
        None
    }

    /// The gateways whose flavor may come from a ConfigMap or Secret, as far as known.
    fn dependents(&self, source: &FlavorSource) -> Vec<FlavorDependent>;

    /// Whether the policy that checks overrides of flavor rules is in force; why not.
    fn overrides_guarded(&self) -> Result<(), String> {
        Ok(())
    }
}

/// No gateway is cached.
struct Unlisted;

impl GatewayLister for Unlisted {
    fn context_of(&self, _: &GatewayRef) -> GatewayContext {
        GatewayContext::default()
    }

    fn dependents(&self, _: &FlavorSource) -> Vec<FlavorDependent> {
        Vec::new()
    }
}

/// The gateways that a decision reads.
pub fn gateways<'a>(context: &RuleContext<'a>) -> &'a dyn GatewayLister {
    context.lister.kinds().get::<dyn GatewayLister>().unwrap_or(&Unlisted)
}
