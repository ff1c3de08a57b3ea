//! `Operator`: the name of a family of packages. Nothing of it is carried out.

use interlock_core::admission::kind::{GuardedKind, SubResource, allow};
use interlock_core::api::meta::{KUDO_GROUP, KUDO_VERSION};
use interlock_core::api::resource::Resource;
use interlock_core::kinds::descriptor::{Kind, READ, Right, Role, WRITE};

use super::operator_version::links;

const RESOURCE: Resource = Resource::custom(KUDO_GROUP, &[KUDO_VERSION], "Operator", "operators");

/// Everything that is known of Operators.
pub static KIND: Kind = Kind {
    schema: Some(&links::OPERATOR),
    // KUDO's own webhook configurations may send them.
    admission: Some(&GuardedKind {
        resource: RESOURCE,
        capability: None,
        annotations: &[],
        decide: allow,
        restore: allow,
        sub_resources: &[SubResource { name: "status", decide: allow }],
    }),
    rights: &[
        Right::new(Role::Controller, KUDO_GROUP, "operators", READ),
        Right::new(Role::Viewer, KUDO_GROUP, "operators", READ),
        Right::new(Role::PackageInstaller, KUDO_GROUP, "operators", WRITE),
    ],
    ..Kind::new(RESOURCE)
};
