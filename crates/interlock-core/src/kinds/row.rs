//! Accessors of the topology's rows.

use super::{fact, link};
use crate::api::object::NamespacedName;
use crate::topology::schema::Side;
use crate::topology::{NodeId, ObjectRow};

/// Kinds whose health makes an Instance ready; excludes Pods of Deployments and finished Pods of Jobs (KUDO
/// counted the latter as unhealthy for ever).
pub const SPEAKING: [&str; 2] = ["Deployment", "StatefulSet"];

/// Whether all objects of an Instance's package that report a health are healthy.
pub fn is_well(instance: &ObjectRow<'_>) -> bool {
    let speaks = |row: &ObjectRow<'_>| SPEAKING.contains(&&*row.id().kind.kind);
    instance.along(Side::Child, link::MADE_BY).filter(speaks).all(|row| is(&row, fact::HEALTHY))
}

/// Whether a fact of a row is yes.
pub fn is(row: &ObjectRow<'_>, fact: &str) -> bool {
    row.word(fact) == Some(fact::YES)
}

/// The name of an object.
pub fn name(id: &NodeId) -> NamespacedName {
    NamespacedName::new(&*id.namespace, &*id.name)
}
