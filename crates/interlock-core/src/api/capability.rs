//! A capability of Interlock: kinds that are read together, and switched on and off together.

use super::interlock::Mode;

/// A named set of kinds that is started and stopped as one, with its CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Name in metrics, settings and conditions; one word.
    pub name: &'static str,
    /// The required kind whose objects carry our finalizer, if one does: their deletions are completed also
    /// while another kind is missing, and while its own definition is being deleted.
    pub finalizes: Option<&'static str>,
    /// Whether admission needs its data; then every replica runs it, else only those with controllers.
    pub answers: bool,
    /// Whether the settings can switch it on and off.
    pub can_be_set: bool,
    /// Its mode where the settings name none.
    pub default_mode: Mode,
}
