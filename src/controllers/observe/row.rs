//! What is read of the rows of the topology.

use interlock_core::api::object::NamespacedName;
use interlock_core::topology::declare::Side;
use interlock_core::topology::kinds::{fact, link};
use interlock_core::topology::{NodeId, ObjectRow};

use super::SPEAKING;

/// Whether all that the package of an Instance made, and that says so, is as it should be.
pub(super) fn is_well(instance: &ObjectRow<'_>) -> bool {
    let speaks = |row: &ObjectRow<'_>| SPEAKING.contains(&&*row.id().kind.kind);
    instance.along(Side::Child, link::MADE_BY).filter(speaks).all(|row| is(&row, fact::HEALTHY))
}

pub(super) fn is(row: &ObjectRow<'_>, fact: &str) -> bool {
    row.word(fact) == Some(fact::YES)
}

pub(super) fn name(id: &NodeId) -> NamespacedName {
    NamespacedName::new(&*id.namespace, &*id.name)
}
