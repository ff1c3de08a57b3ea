//! A change of a gateway, with everything that a judgement of it rests on.

use super::allowance::Allowance;
use super::group::Group;
use super::matrix::Configuration;
use super::reading::{Effective, Reading};
use super::routes::Inventory;
use super::subject::{Spec, Subject};
use super::version::Version;

/// A change.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// What is changed.
    pub subject: &'a Subject,
    /// What the live pods run with; `None` where there are none yet.
    pub live: Option<&'a Reading>,
    /// The spec that is stored, which may be staged.
    pub stored: Option<&'a Spec>,
    /// The spec that is wanted.
    pub new: &'a Spec,
    /// Whether no pod runs: the gateway is scaled to zero before and after.
    pub stopped: bool,
    /// The routes that exist.
    pub routes: &'a Inventory,
    /// What the producer sends.
    pub configuration: Configuration,
    /// Who else the producer serves.
    pub group: Option<&'a Group>,
    /// What somebody says who may override the rules.
    pub allowance: Option<&'a Allowance>,
}

impl Change<'_> {
    /// Both versions must be able; what came before flavors says nothing.
    pub fn version(&self) -> Version {
        let new = self.new.reading.assumed_version();
        let live = self.live.filter(|live| live.effective != Effective::Legacy).map(Reading::assumed_version);
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
