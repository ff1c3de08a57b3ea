//! A change of a gateway, with everything that a judgement of it rests on.

use super::allowance::Allowance;
use super::group::ProducerGroup;
use super::matrix::ProducerConfiguration;
use super::reading::{Effective, FlavorReading};
use super::routes::Inventory;
use super::subject::{FlavorSpec, GatewayRef};
use super::version::KongVersion;

/// A change.
#[derive(Clone, Copy)]
pub struct FlavorChange<'a> {
    /// What is changed.
    pub subject: &'a GatewayRef,
    /// What the live pods run with; `None` where there are none yet.
    pub live: Option<&'a FlavorReading>,
    /// The spec that is stored, which may be staged.
    pub stored: Option<&'a FlavorSpec>,
    /// The spec that is wanted.
    pub new: &'a FlavorSpec,
    /// Whether no pod runs: the gateway is scaled to zero before and after.
    pub stopped: bool,
    /// The routes that exist.
    pub routes: &'a Inventory,
    /// What the producer sends.
    pub configuration: ProducerConfiguration,
    /// Who else the producer serves.
    pub group: Option<&'a ProducerGroup>,
    /// What somebody says who may override the rules.
    pub allowance: Option<&'a Allowance>,
}

impl FlavorChange<'_> {
    /// Both versions must be able; what came before flavors says nothing.
    pub fn version(&self) -> KongVersion {
        let new = self.new.reading.assumed_version();
        let live =
            self.live.filter(|live| live.effective != Effective::Legacy).map(FlavorReading::assumed_version);
        live.map_or(new, |live| live.min(new))
    }

    /// The same for people.
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
