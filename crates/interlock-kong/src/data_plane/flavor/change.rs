//! A change of a gateway, with everything that its validation needs; the findings of the rules about it.

use std::fmt;

use interlock_core::api::display::one_line;
use interlock_core::api::rule::Rule;

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

/// A finding of a rule about a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// One sentence.
    pub text: String,
}

impl Finding {
    /// A finding. It stays one line whatever names it contains: custom resources may give a container
    /// any name, and the API server drops a warning with a line break.
    pub fn new(rule: Rule, text: impl Into<String>) -> Self {
        Self { rule, text: one_line(&text.into()).into_owned() }
    }

    /// The rule, and the sentence without what it names after a colon.
    pub fn sentence(&self) -> (Rule, &str) {
        (self.rule, self.text.split(": ").next().unwrap_or_default())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.rule.id(), self.text)
    }
}

/// The findings of all rules about a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Reasons to deny it; without any it is allowed.
    pub denied: Vec<Finding>,
    /// Warnings about it.
    pub warned: Vec<Finding>,
}

impl Findings {
    pub(in crate::data_plane) fn deny(&mut self, rule: Rule, text: impl Into<String>) {
        self.denied.push(Finding::new(rule, text));
    }

    pub(in crate::data_plane) fn warn(&mut self, rule: Rule, text: impl Into<String>) {
        self.warned.push(Finding::new(rule, text));
    }
}
