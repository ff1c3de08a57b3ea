//! The kinds of a capability, and its mode.

use std::collections::BTreeMap;
use std::ops::Deref;

pub use interlock_core::api::capability::Capability;
pub use interlock_core::api::interlock::Mode;
use interlock_core::api::resource::Resource;
use interlock_core::api::watched::Labelled;

/// A capability, and the kinds that it reads.
#[derive(Clone, Debug)]
pub struct CapabilityKinds {
    /// Its declaration.
    pub declared: &'static Capability,
    /// It runs only while all of these can be read.
    pub required: Vec<CapabilityKind>,
    /// These are read where they exist; the capability does not wait for them.
    pub optional: Vec<CapabilityKind>,
}

impl CapabilityKinds {
    /// All kinds, the required ones first.
    pub fn all(&self) -> impl Iterator<Item = &CapabilityKind> {
        self.required.iter().chain(&self.optional)
    }
}

/// A kind that a capability reads.
#[derive(Clone, Copy, Debug)]
pub struct CapabilityKind {
    /// How the API server serves it.
    pub resource: Resource,
    /// Reads only these labelled objects; `None` for all.
    pub labelled: Option<&'static Labelled>,
    /// The fields of `status` that its controller writes: its definition must have them.
    pub status_fields: &'static [&'static str],
}

impl Deref for CapabilityKind {
    type Target = Resource;

    fn deref(&self) -> &Resource {
        &self.resource
    }
}

/// The mode of each capability by name, once it is known; the default is [`Mode::Auto`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes(pub Option<BTreeMap<String, Mode>>);

impl Modes {
    /// The mode of one; `None` until the settings are known.
    pub fn of(&self, capability: &str) -> Option<Mode> {
        self.0.as_ref().map(|modes| modes.get(capability).copied().unwrap_or_default())
    }
}
