//! A change of a gateway, with everything that its validation needs.

use super::compatibility::ProducerConfiguration;
use super::flavor_override::FlavorOverride;
use super::gateway_ref::{FlavorSpec, GatewayRef};
use super::group::ProducerGroup;
use super::reading::{Effective, FlavorReading};
use super::routes::Inventory;
use super::version::KongVersion;

#[derive(Clone, Copy)]
pub struct FlavorChange<'a> {
    /// The changed gateway.
    pub subject: &'a GatewayRef,
    /// What the live pods run with; `None` if there are none yet.
    pub live: Option<&'a FlavorReading>,
    /// The stored spec, which may be staged.
    pub stored: Option<&'a FlavorSpec>,
    pub new: &'a FlavorSpec,
    /// Whether no pod runs: the gateway is scaled to zero before and after.
    pub stopped: bool,
    /// The existing routes.
    pub routes: &'a Inventory,
    /// The configuration that the producer sends.
    pub configuration: ProducerConfiguration,
    /// The other gateways that the producer serves.
    pub group: Option<&'a ProducerGroup>,
    /// The override, if there is one.
    pub allowance: Option<&'a FlavorOverride>,
}

impl FlavorChange<'_> {
    /// The lower of both versions, as both must support the change; one before 3.0 does not count.
    pub fn version(&self) -> KongVersion {
        let new = self.new.reading.assumed_version();
        let live =
            self.live.filter(|live| live.effective != Effective::Legacy).map(FlavorReading::assumed_version);
        live.map_or(new, |live| live.min(new))
    }

    /// The version as text for people.
    pub fn kong(&self) -> String {
        let told = self.new.reading.version.is_some() && self.live.is_none_or(|live| live.version.is_some());
        let version = self.version();
        if told {
            format!("Kong {version}")
        } else {
            "a Kong whose version its image does not tell".to_owned()
        }
    }
}
