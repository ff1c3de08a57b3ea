//! `OperatorVersion`: an installed package.

pub mod ids;
pub mod links;
mod lister;
mod page;
pub mod rules;

pub use lister::{NAMES_LISTED, PackageLister, PackageUsers, packages};

use interlock_core::admission::kind::SubResource;
use interlock_core::admission::kind::{GuardedKind, allow};
use interlock_core::api::meta;
use interlock_core::api::meta::{KUDO_GROUP, KUDO_VERSION};
use interlock_core::api::resource::Resource;
use interlock_core::kinds::capabilities::INSTANCES;
use interlock_core::kinds::descriptor::{
    Calls, Kind, MatchCondition, MatchedObjects, OnFailure, READ, Right, Role, WRITE, Watch, WebhookEntry,
    cel,
};

const RESOURCE: Resource =
    Resource::custom(KUDO_GROUP, &[KUDO_VERSION], "OperatorVersion", "operatorversions");

/// Everything that is known of OperatorVersions.
pub static KIND: Kind = Kind {
    watch: Some(Watch::required(&INSTANCES)),
    schema: Some(&links::OPERATOR_VERSION),
    admission: Some(&GuardedKind {
        resource: RESOURCE,
        capability: Some(INSTANCES.name),
        annotations: &[meta::STEP_DEADLINE, meta::CLEANUP_PATIENCE],
        decide: rules::decide,
        restore: allow,
        sub_resources: &[SubResource { name: "status", decide: allow }],
    }),
    webhooks: &[
        WebhookEntry {
            name: "operatorversions",
            calls: Calls::Validating,
            resources: &["operatorversions"],
            operations: &["CREATE", "UPDATE"],
            on_failure: OnFailure::Refuse,
            conditions: &[MatchCondition::Cel("spec-changed", || cel::SPEC_CHANGED.to_owned())],
            objects: MatchedObjects::All,
        },
        WebhookEntry {
            name: "operatorversions-delete",
            calls: Calls::Validating,
            resources: &["operatorversions"],
            operations: &["DELETE"],
            on_failure: OnFailure::Admit,
            conditions: &[],
            objects: MatchedObjects::All,
        },
    ],
    rights: &[
        Right::new(Role::Viewer, KUDO_GROUP, "operatorversions", READ),
        Right::new(Role::PackageInstaller, KUDO_GROUP, "operatorversions", WRITE),
    ],
    rules: ids::RULES,
    page: Some(page::part),
    ..Kind::new(RESOURCE)
};
