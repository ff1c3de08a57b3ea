//! Accessors of the topology's rows.

use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::{fact, link};
use interlock_core::topology::schema::Side;
use interlock_core::topology::{NodeId, ObjectRow};

use super::SPEAKING;

/// Whether all objects of an Instance's package that report a health are healthy.
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
