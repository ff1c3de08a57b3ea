//! What is declared of a capability, and what its users want of it.

use std::collections::BTreeMap;

pub use interlock_core::api::interlock::Mode;
use interlock_core::api::watched::Labelled;

/// A named set of kinds, and what runs on them. Declared once, in
/// [`crate::controllers::capabilities`].
#[derive(Debug)]
pub struct Capability {
    /// Name in metrics, settings and conditions; one word.
    pub name: &'static str,
    /// It runs only while all of these can be read.
    pub required: &'static [Kind],
    /// These are read where they are there, and nothing waits for them.
    pub optional: &'static [Kind],
    /// The required kind whose objects carry our finalizer, if one does: deletions of its objects
    /// are ended also while another kind is missing, and while its own definition is being deleted.
    pub finalizes: Option<&'static str>,
    /// Whether admission decides with what it reads; then every replica runs it, else only those
    /// with controllers.
    pub answers: bool,
}

/// A kind that a capability reads.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
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
    /// Whether the API server has it built in: no definition is looked for.
    pub built_in: bool,
    /// The labelled objects that alone are read; `None` for all.
    pub labelled: Option<&'static Labelled>,
}

impl Kind {
    /// `PLURAL.GROUP`, as the name of its definition.
    pub fn name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The mode of each capability by name, once that is known; those that are not named are
/// [`Mode::Auto`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes(pub Option<BTreeMap<String, Mode>>);

impl Modes {
    /// The mode of one; `None` while nobody knows whether it is switched off.
    pub fn of(&self, capability: &str) -> Option<Mode> {
        self.0.as_ref().map(|modes| modes.get(capability).copied().unwrap_or_default())
    }
}
