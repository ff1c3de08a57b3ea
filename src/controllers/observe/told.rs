//! What comes of an event: whom it concerns, and what is gone.

use crate::api::object::NamespacedName;
use crate::topology::Id;

/// What came of something that a watch told.
#[derive(Debug, Default)]
pub struct Told {
    /// The Instances that it concerns and that have something to do.
    pub concerned: Vec<Concerned>,
    /// Objects that turned out to be gone.
    pub gone: Vec<Id>,
}

/// An Instance that an event concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concerned {
    /// Which.
    pub instance: NamespacedName,
    /// Whether it is at rest: no plan waits for its turn.
    pub resting: bool,
}
