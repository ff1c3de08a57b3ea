//! What comes of an event: whom it concerns, and what is gone.

use interlock_core::api::object::NamespacedName;
use interlock_core::rollout::flavor::subject::{Subject, SubjectKind};
use interlock_core::topology::Id;
use interlock_core::topology::kinds::{DATA_PLANE, GUARDED_DEPLOYMENT};

use super::row::name;

/// What came of something that a watch told.
#[derive(Debug, Default)]
pub struct Told {
    /// The Instances that it concerns and that have something to do.
    pub concerned: Vec<Concerned>,
    /// The gateways that it concerns.
    pub gateways: Vec<Subject>,
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

/// The gateways among objects.
pub(super) fn gateways(ids: &[Id]) -> Vec<Subject> {
    let kind_of = |id: &Id| match &id.kind {
        kind if *kind == DATA_PLANE => Some(SubjectKind::DataPlane),
        kind if *kind == GUARDED_DEPLOYMENT => Some(SubjectKind::Deployment),
        _ => None,
    };
    ids.iter().filter_map(|id| Some(Subject { kind: kind_of(id)?, name: name(id) })).collect()
}
