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
    /// Whether `metadata.managedFields` is read.
    pub managed_fields: bool,
}

impl Deref for CapabilityKind {
    type Target = Resource;

    fn deref(&self) -> &Resource {
        &self.resource
    }
}

/// The mode of each capability that the settings name, once they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes(pub Option<BTreeMap<String, Mode>>);

impl Modes {
    /// The mode of one; `None` until the settings are known.
    pub fn of(&self, capability: &Capability) -> Option<Mode> {
        self.0.as_ref().map(|modes| modes.get(capability.name).copied().unwrap_or(capability.default_mode))
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds::capabilities::{DATA_PLANES, FLAVORS};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::on_by_default(&FLAVORS, &[], Mode::Auto)]
    #[case::off_by_default(&DATA_PLANES, &[], Mode::Off)]
    #[case::switched_off(&FLAVORS, &[("flavors", Mode::Off)], Mode::Off)]
    #[case::switched_on(&DATA_PLANES, &[("dataplanes", Mode::Auto)], Mode::Auto)]
    #[case::another(&DATA_PLANES, &[("flavors", Mode::Auto)], Mode::Off)]
    fn the_settings_decide_before_the_default(
        #[case] capability: &Capability,
        #[case] settings: &[(&str, Mode)],
        #[case] expected: Mode,
    ) {
        let named = settings.iter().map(|(name, mode)| ((*name).to_owned(), *mode)).collect();
        assert_eq!(Modes(Some(named)).of(capability), Some(expected));
        assert_eq!(Modes(None).of(capability), None, "before the settings are known");
    }
}
