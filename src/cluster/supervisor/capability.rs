//! The declaration of a capability, and its mode.

use std::collections::BTreeMap;

pub use interlock_core::api::interlock::Mode;
use interlock_core::api::watched::Labelled;

/// A named set of kinds, and the controller that uses them. Declared once, in
/// [`crate::controllers::capabilities`].
#[derive(Debug)]
pub struct Capability {
    /// Name in metrics, settings and conditions; one word.
    pub name: &'static str,
    /// It runs only while all of these can be read.
    pub required: &'static [CapabilityKind],
    /// These are read where they exist; the capability does not wait for them.
    pub optional: &'static [CapabilityKind],
    /// The required kind whose objects carry our finalizer, if one does: their deletions are completed also
    /// while another kind is missing, and while its own definition is being deleted.
    pub finalizes: Option<&'static str>,
    /// Whether admission needs its data; then every replica runs it, else only those with controllers.
    pub answers: bool,
}

/// A kind that a capability reads.
#[derive(Clone, Copy, Debug)]
pub struct CapabilityKind {
    /// API group, empty for core.
    pub group: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in the path.
    pub plural: &'static str,
    /// Versions that can be read, best first.
    pub versions: &'static [&'static str],
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether it is built into the API server: it has no definition.
    pub built_in: bool,
    /// Reads only these labelled objects; `None` for all.
    pub labelled: Option<&'static Labelled>,
}

impl CapabilityKind {
    /// `PLURAL.GROUP`, as the name of its definition.
    pub fn name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
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
